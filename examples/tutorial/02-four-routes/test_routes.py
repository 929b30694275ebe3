"""What each route computes, and what each gets wrong: the claims of the lesson's table."""

import by_buffer
import by_cpp
import by_ctypes
import by_ufunc
import numpy as np
import pytest

ROUTES = {
    "ctypes": by_ctypes.add,
    "buffer": by_buffer.add,
    "C++": by_cpp.add,
    "ufunc": by_ufunc.add,
}
REFUSED = (TypeError, ValueError, BufferError, by_ctypes.ctypes.ArgumentError)


@pytest.fixture(params=ROUTES)
def route(request):
    return request.param


@pytest.mark.parametrize("n", [0, 1, 7, 1000])
def test_sums(route, n):
    a, b = np.random.default_rng(0).random((2, n))
    out = np.full(n, np.nan)
    ROUTES[route](a, b, out)
    assert np.array_equal(out, a + b)


def takes(route, *operands):
    """Whether a route computes this rightly; it must refuse the rest, and leave the output."""
    before = operands[-1].copy()
    expected = operands[0] + operands[1]
    try:
        ROUTES[route](*operands)
    except REFUSED:
        assert np.array_equal(operands[-1], before)
        return False
    assert np.array_equal(operands[-1], expected)
    return True


def test_strides(route):
    a = np.arange(20.0)
    strided = a[::2], a[::-2], np.zeros(20)[1::2]
    assert takes(route, *strided) == (route in ("C++", "ufunc"))
    assert takes(route, np.ones((2, 3)), np.ones((2, 3)), np.zeros((2, 3))) == (route == "ufunc")
    assert takes(route, np.ones(3), np.ones(1), np.zeros(3)) == (route == "ufunc")


def test_dtypes(route):
    f, i = np.ones(3, "f"), np.ones(3, int)
    assert takes(route, f, f, f.copy()) == (route in ("C++", "ufunc"))  # the ufunc: by casts
    assert takes(route, f, i, np.zeros(3)) == (route == "ufunc")
    assert takes(route, np.ones(3, ">d"), np.ones(3), np.zeros(3)) == (route == "ufunc")
    shifted = np.zeros(25, np.uint8)[1:].view("d")
    assert takes(route, shifted, np.ones(3), np.zeros(3)) == (route == "ufunc")  # not aligned


def test_outputs(route):
    out = np.zeros(3)
    out.flags.writeable = False
    assert not takes(route, np.ones(3), np.ones(3), out)
    assert not takes(route, np.ones(3), np.ones(3), np.zeros(2))


def test_no_arrays(route):
    with pytest.raises((*REFUSED, AttributeError)):
        ROUTES[route]("a", None, np.zeros(1))


def test_overlap(route):
    """Each sum is needed again: only the ufunc copies first."""
    a = np.ones(5)
    ROUTES[route](a[:-1], np.ones(4), a[1:])
    assert a.tolist() == ([1, 2, 2, 2, 2] if route == "ufunc" else [1, 2, 3, 4, 5])


def test_errstate(route):
    huge = np.full(3, 1e308)
    with np.errstate(over="raise"):
        if route == "ufunc":
            with pytest.raises(FloatingPointError):
                ROUTES[route](huge, huge, np.zeros(3))
        else:
            ROUTES[route](huge, huge, np.zeros(3))  # silent


def test_the_views_are_released():
    """A resize is refused while a view of the memory exists."""
    for add in (by_buffer.add, by_cpp.add):
        a, short = np.ones(3), np.ones(2)
        with pytest.raises(ValueError, match="lengths"):
            add(a, short, np.zeros(3))
        with pytest.raises(TypeError):
            add(a, np.ones(3, int), np.zeros(3))
        a.resize(5)
        short.resize(5)


def test_what_the_ufunc_gets_for_nothing():
    assert by_ufunc.add.reduce(np.arange(5.0)) == 10
    assert by_ufunc.add.outer([1, 2], [3, 4]).tolist() == [[4, 5], [5, 6]]
    assert by_ufunc.add(1, [2, 3], where=[True, False], out=np.zeros(2)).tolist() == [3, 0]
