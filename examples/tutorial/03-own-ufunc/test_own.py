"""The two ufuncs against formulas of NumPy's, and on all cores against themselves."""

import numpy as np
import own
import pytest


def close(result, expected):
    tolerance = 4 * np.finfo(result.dtype).eps
    return np.allclose(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["f", "d", "g"])
@pytest.mark.parametrize("layout", [np.s_[:], np.s_[::3], np.s_[::-1], np.s_[:0]])
def test_logistic(dtype, layout):
    x = np.linspace(-9, 9, 1000, dtype=dtype)[layout]
    result = own.logistic(x)
    assert result.dtype == dtype
    assert close(result, 1 / (1 + np.exp(-x)))


def test_other_dtypes_are_cast_where_that_is_safe():
    assert own.logistic(np.int8(0)).dtype == "f"
    assert own.logistic(0) == 0.5 and own.logistic(0).dtype == "d"
    with pytest.raises(TypeError, match="logistic"):
        own.logistic(1j)


def test_extremes_raise_no_flags():
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        result = own.logistic([-np.inf, -1e4, -0.0, 0.0, 1e4, np.inf, np.nan, -np.nan])
    assert np.array_equal(result, [0, 0, 0.5, 0.5, 1, 1, np.nan, np.nan], equal_nan=True)


@pytest.mark.parametrize("dtype", ["f", "d"])
def test_distance(dtype):
    a, b = np.random.default_rng(0).random((2, 5, 1, 7)).astype(dtype)
    expected = np.sqrt(((a - b) ** 2).sum(-1))
    result = own.distance(a, b)
    assert result.dtype == dtype and result.shape == (5, 1)
    assert close(result, expected)
    assert close(own.distance(a[..., ::-1], b[..., ::-1]), expected)
    assert close(own.distance(a, np.repeat(b, 2, axis=-1)[..., ::2]), expected)


def test_distance_broadcasts_all_but_the_last_axes():
    points = np.random.default_rng(0).random((6, 3))
    table = own.distance(points[:, None], points)
    assert table.shape == (6, 6)
    assert np.array_equal(table, table.T) and not table.diagonal().any()
    assert np.array_equal(own.distance(points, points[1], axes=[1, 0, ()]), table[1])
    assert np.array_equal(own.distance(points.T, points[1], axes=[0, 0, ()]), table[1])


def test_distance_of_vectors_without_elements():
    assert own.distance(np.ones((4, 0)), np.ones(0)).tolist() == [0, 0, 0, 0]


def test_distance_refuses_other_lengths():
    with pytest.raises(ValueError, match="core dimension"):
        own.distance(np.ones(3), np.ones(2))


@pytest.mark.parametrize("n", [10, 300_000])
def test_all_cores(n):
    nc = pytest.importorskip("numc_ufuncs")
    x = np.random.default_rng(0).normal(size=n)
    assert np.array_equal(nc.parallel(own.logistic)(x), own.logistic(x))
    points = x.reshape(-1, 5)
    parallel_distance = nc.parallel(own.distance)
    assert np.array_equal(parallel_distance(points, points[0]), own.distance(points, points[0]))
