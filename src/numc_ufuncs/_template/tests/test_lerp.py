"""lerp against the same formula of NumPy's ufuncs, in every dtype and layout."""

import numpy as np
import pytest

import my_ufuncs

DTYPES = ["f", "d", "g"]


def formula(a, b, t):
    return a + t * (b - a)


def operands(dtype, shape):
    rng = np.random.default_rng(0)
    return [rng.integers(-99, 99, shape).astype(dtype) for _ in "abt"]  # their results are exact


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_dtypes(dtype, n):
    a, b, t = operands(dtype, n)
    result = my_ufuncs.lerp(a, b, t)
    assert result.dtype == dtype
    assert np.array_equal(result, formula(a, b, t))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", [np.s_[::2], np.s_[::-1], np.s_[5:], np.s_[:, ::3]])
def test_layouts(dtype, layout):
    a, b, t = (x[layout] for x in operands(dtype, (40, 30)))
    assert np.array_equal(my_ufuncs.lerp(a, b, t), formula(a, b, t))
    assert np.array_equal(my_ufuncs.lerp(a, b.T[0, 0], 0.5), formula(a, b.T[0, 0], np.float64(0.5)))


def test_bytes_that_are_swapped_or_not_aligned():
    a, b, t = operands("d", 100)
    shifted = np.zeros(801, np.uint8)[1:].view("d")
    shifted[:] = a
    assert np.array_equal(my_ufuncs.lerp(shifted, b.astype(">d"), t), formula(a, b, t))


def test_results_that_overlap_operands():
    a = operands("d", 1000)[0]
    expected = formula(a[:-1], 2.0, a[1:])
    my_ufuncs.lerp(a[:-1], 2.0, a[1:], out=a[1:])
    assert np.array_equal(a[1:], expected)


def test_integers_become_floats():
    assert my_ufuncs.lerp(0, 10, 0.25) == 2.5
    assert my_ufuncs.lerp(np.int64(0), 10, 1).dtype == np.float64


def test_errors():
    with pytest.raises(TypeError, match="lerp"):
        my_ufuncs.lerp("a", "b", "c")
    with pytest.raises(ValueError, match="broadcast"):
        my_ufuncs.lerp(np.zeros(2), np.zeros(3), 0.5)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        my_ufuncs.lerp(-1e308, 1e308, np.ones(9))


def test_all_cores():
    numc_ufuncs = pytest.importorskip("numc_ufuncs")
    a, b, t = operands("f", 300_000)
    assert np.array_equal(numc_ufuncs.parallel(my_ufuncs.lerp)(a, b, t), formula(a, b, t))
