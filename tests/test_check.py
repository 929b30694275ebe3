"""Every call computed both ways and compared: nothing changes, and differences are found."""

import numpy as np
import pytest

import numc_ufuncs as nc
from numc_ufuncs import _check

pytestmark = pytest.mark.thread_unsafe  # of the whole process

A = np.linspace(0, 1, 1001)


@pytest.fixture
def check():
    nc.patch_numpy()
    check = _check.Check()
    yield check
    check.stop()
    nc.restore_numpy()


def test_calls_are_compared_and_have_one_effect(check):
    a = A.copy()
    a += a
    a[1:] += a[:-1]
    np.add(a, 1, out=a, where=A > 0.5)
    expected = 2 * A
    expected[1:] = expected[1:] + expected[:-1]
    expected[A > 0.5] += 1
    np.testing.assert_array_equal(a, expected)
    before = check.calls
    results = A.sum(), np.cumsum(A), np.add.reduceat(A, [0, 5]), np.outer(A, A), A.max()
    results += divmod(A, 2), np.ones((9, 9), int) @ np.ones((9, 9), int)
    assert check.calls - before == 7
    assert check.differences == []
    assert len(results) == 7


def test_errors_and_warnings_stay(check):
    with pytest.raises(ValueError, match="broadcast"):
        np.add(A, A[:3])
    with pytest.warns(RuntimeWarning, match="divide by zero") as caught:
        np.divide(A[1:], 0)
    assert len(caught) == 1
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        np.divide(A[1:], 0)
    assert check.differences == []


class Counted:
    calls = 0

    def __array_ufunc__(self, *args, **keywords):
        Counted.calls += 1
        return 1


def test_code_of_others_runs_once(check):
    before = check.calls
    np.add(A, Counted())
    assert Counted.calls == 1
    np.add(np.array([1], object), 1)
    np.ma.ones(3) + 1
    assert check.differences == [] and check.calls - before <= 3


def test_stop(check):
    check.stop()
    np.add(A, A)
    assert check.calls == 0


@pytest.mark.parametrize(
    ("expected", "found", "text"),
    [
        (np.array([1, 2]), np.array([1, 3]), "1 of 2 elements differ, 3 instead of 2 at [1]"),
        (np.array([1.0, 2]), np.array([1.0, 2 + 1e-6]), "1 of 2 elements differ"),
        (np.array([1.0, np.nan]), np.array([1.0, 2]), "1 of 2"),
        (np.array([1.0]), np.array([1.0], "f"), "float32[1] instead of float64[1]"),
        (np.array([1.0]), np.array(1.0), "float64[] instead of float64[1]"),
        (np.float64(1), np.array(1.0), "ndarray instead of float64"),
        (np.float64(1), np.float64(2), "1 of 1 elements differ"),
        ((np.array([1]), np.array([2])), (np.array([1]), np.array([3])), "1 of 1"),
    ],
)
def test_differences(expected, found, text):
    assert text in _check._difference(expected, found)


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.0, np.nan, np.inf, -np.inf]),
        np.array([np.complex64(1 + 2j)]),
        np.array(["NaT", 3], "m8[s]"),
        np.array(["a"]),
        np.array([]),
        np.bool_(True),
    ],
)
def test_equal_results(value):
    assert _check._difference(value, value.copy()) is None
    if value.dtype.kind == "f":
        assert _check._difference(value, value * (1 + 1e-12)) is None


def test_a_difference_is_reported_with_its_line(check, monkeypatch):
    monkeypatch.setattr(_check, "_difference", lambda expected, found: "wrong")
    np.add(A, A)
    (difference,) = check.differences
    assert str(difference).startswith("add(float64[1001], float64[1001]) in " + __file__)
