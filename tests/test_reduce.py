"""Sums and products on all cores: NumPy's bits, whatever the number of threads."""

import itertools
import math
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import _numc_test
import numpy as np
import pytest
from checks import in_thread_of_small_stack, same_bits

import numc_ufuncs as nc

INTEGERS = "?bBhHiIlLqQ"
FLOATS = "efdFD"
SHAPES = [(100_003,), (1_000_001,), (7, 40_009), (40_009, 7), (300, 301), (9, 13, 97)]
THREADS = (1, 2, 3, 7, 16)

has_methods = np.lib.NumpyVersion(np.__version__) >= "2.2.0"


def random_array(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype in INTEGERS:
        return (
            rng.integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]
            if dtype != "?"
            else rng.integers(0, 2, shape).astype(bool)
        )
    x = rng.normal(size=shape) * 2.0 ** rng.integers(-4, 4, shape)
    return (x + 1j * rng.normal(size=shape) if dtype in "FD" else x).astype(dtype)


def layouts(x):
    padded = np.zeros((*x.shape[:-1], x.shape[-1] + 3), x.dtype)
    padded[..., 3:] = x
    yield x
    yield x[::-1]
    yield np.asfortranarray(x)
    yield padded[..., 3:]
    yield np.repeat(x, 2, axis=-1)[..., ::2]


def axes_of(ndim):
    yield None
    for count in range(1, ndim + 1):
        yield from itertools.combinations(range(ndim), count)


def same_numbers(a, b):
    """Of long doubles, six bytes are undefined."""
    if a.dtype.char not in "gG":
        return same_bits(a, b)
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("always", [False, True], ids=["as usual", "threads always"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_threads_do_not_change_bits(dtype, shape, always, request, regions):
    if always:
        request.getfixturevalue("threads_always")
    x = random_array(shape, dtype)
    calls = [lambda axis=axis: np.asarray(nc.add.reduce(x, axis=axis)) for axis in axes_of(x.ndim)]
    if dtype in INTEGERS:
        calls.append(lambda: np.asarray(nc.multiply.reduce(x, axis=None)))
        # Short rows come one by one: threads for each of them would take minutes.
        if shape[-1] > 1000 or not always:
            calls.append(lambda: nc.add.accumulate(x, axis=-1))
            calls.append(lambda: nc.multiply.accumulate(x, axis=-1))
    for call in calls:
        results = []
        for threads in THREADS:
            with nc.config(threads=threads):
                results.append(call())
        assert all(same_bits(result, results[0]) for result in results)
    assert regions() > 0 or not always


@pytest.fixture
def all_workers_come():
    before = _numc_test.set_policy(500, True, False)
    yield
    _numc_test.set_policy(*before)


def random_reduction(rng):
    """Of up to a million elements, for which threads pay; a function without arguments."""
    ndim = int(rng.integers(1, 4))
    shape = np.maximum(1, np.exp(rng.dirichlet(np.ones(ndim)) * rng.uniform(3, 14))).astype(int)
    x = random_array(tuple(shape), str(rng.choice(list(INTEGERS + FLOATS))), int(rng.integers(99)))
    x = list(layouts(x))[rng.integers(5)].transpose(rng.permutation(ndim))
    axes = list(axes_of(ndim))
    axis = axes[rng.integers(len(axes))]
    if rng.random() < 0.2:
        return lambda: nc.add.accumulate(x.reshape(-1))
    return lambda: np.asarray(nc.add.reduce(x, axis, keepdims=True))


@pytest.mark.parametrize("seed", range(6))
def test_late_and_absent_workers_do_not_change_bits(seed, policy):
    """Callers leave threads to each other, and more are called than there are cores."""
    rng = np.random.default_rng(seed)
    calls = [random_reduction(rng) for _ in range(25)]
    with nc.config(threads=1):
        expected = [call() for call in calls]

    def results(threads):
        with nc.config(threads=threads):
            return [call() for call in calls]

    with ThreadPoolExecutor(3) as callers:
        for found in callers.map(results, THREADS):
            assert all(
                same_bits(ours, theirs) for ours, theirs in zip(found, expected, strict=True)
            )


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("shape", [(10_007,), (5, 2_003), (2_003, 5), (9, 11, 101)], ids=str)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_numpys(dtype, shape, reductions):
    for x in layouts(random_array(shape, dtype)):
        for name, axis in itertools.product(("add", "multiply"), axes_of(x.ndim)):
            ours, theirs = getattr(nc, name), getattr(np, name)
            for keywords in ({}, {"keepdims": True}, {"initial": None}, {"dtype": dtype}):
                result = np.asarray(ours.reduce(x, axis=axis, **keywords))
                expected = np.asarray(theirs.reduce(x, axis=axis, **keywords))
                assert same_bits(result, expected)
                assert result.strides == expected.strides
        for name, axis in itertools.product(("add", "multiply"), range(x.ndim)):
            rows = x.size // x.shape[axis]
            for keywords in ({}, {"dtype": dtype}) if rows < 100 and axis == x.ndim - 1 else ():
                assert same_bits(
                    getattr(nc, name).accumulate(x, axis, **keywords),
                    getattr(np, name).accumulate(x, axis, **keywords),
                )
    arrays, loops = reductions()
    assert arrays > 0 or not has_methods
    assert loops > 0


def random_operand(rng):
    """Of up to thirty thousand elements: inner calls of all lengths, buffered ones among them."""
    ndim = int(rng.integers(1, 5))
    shape = rng.integers(1, (30_000, 200, 40, 14)[ndim - 1], ndim)
    if rng.random() < 0.2:
        shape[rng.integers(ndim)] = rng.integers(1, 4)
    if rng.random() < 0.2:
        shape = rng.integers(1, 4, ndim)
    padded = shape + rng.integers(1, 4, ndim) * (rng.random(ndim) < 0.3)
    x = random_array(tuple(padded), str(rng.choice(list(INTEGERS + FLOATS + "g"))))
    x = x[tuple(slice(n) for n in shape)].transpose(rng.permutation(ndim))
    if rng.random() < 0.3:
        x = x[tuple(slice(None, None, int(step)) for step in rng.choice([1, 2, 3, -1, -2], ndim))]
    return x


def random_keywords(rng, ndim):
    axes = tuple(int(i) for i in rng.choice(ndim, rng.integers(1, ndim + 1), replace=False))
    keywords = {"axis": None if rng.random() < 0.2 else axes, "keepdims": bool(rng.integers(2))}
    if rng.random() < 0.4:
        keywords["dtype"] = str(rng.choice(list("efdFDglib")))
    if rng.random() < 0.1:
        keywords["initial"] = 3
    return keywords


def random_output(rng, expected):
    """With axes in any order, and gaps."""
    order = rng.permutation(expected.ndim)
    shape = [expected.shape[i] * int(rng.integers(1, 3)) for i in order]
    whole = np.empty(shape, expected.dtype).transpose(np.argsort(order))
    return whole[(..., *(slice(n) for n in expected.shape))]


@pytest.fixture
def buffer_size():
    before = np.getbufsize()
    yield
    np.setbufsize(before)


@pytest.mark.usefixtures("policy", "buffer_size")
@pytest.mark.parametrize("seed", range(8))
def test_bits_are_numpys(seed, reductions):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        name = "add" if rng.random() < 0.85 else "multiply"
        ours, theirs = getattr(nc, name), getattr(np, name)
        x = random_operand(rng)
        keywords = random_keywords(rng, x.ndim)
        np.setbufsize(int(rng.choice([16, 64, 1024, 32_768])) if rng.random() < 0.1 else 8192)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            expected = np.asarray(theirs.reduce(x, **keywords))
            result = np.asarray(ours.reduce(x, **keywords))
            assert same_numbers(result, expected), (x.shape, x.strides, x.dtype, keywords)
            assert result.strides == expected.strides
            if rng.random() < 0.2:
                out = random_output(rng, expected)
                expected = theirs.reduce(x, **keywords, out=out).copy()
                out[...] = 0
                assert ours.reduce(x, **keywords, out=out) is out
                assert same_numbers(out.copy(), expected), (x.shape, x.strides, x.dtype, keywords)
    assert reductions()[0] > 0 or not has_methods


@pytest.mark.parametrize("dtype", FLOATS)
def test_bits_of_large_sums_are_numpys(dtype):
    """Shared by threads: halves of inner calls, inner calls, columns."""
    x = random_array((3, 700_001), dtype)
    y = random_array((1201, 1733), dtype, 1)
    cases = [(x[0], None), (x, 1), (x, 0), (y, None), (y, 0), (y, 1), (y[:, 5:-7], None)]
    with np.errstate(all="ignore"):
        for a, axis in (*cases, *((a.T, axis) for a, axis in cases), (y[::-1, ::3], (0, 1))):
            axis = axis if axis is None or axis == (0, 1) else axis % a.ndim
            expected = np.asarray(np.add.reduce(a, axis=axis))
            for threads in THREADS:
                with nc.config(threads=threads):
                    assert same_bits(np.asarray(nc.add.reduce(a, axis=axis)), expected)


@pytest.mark.parametrize("source", "?bBhHiIlLefF")
def test_converted_elements_are_summed_by_kernels(source, reductions):
    x = random_array((300, 3_001), source)
    target = "D" if source == "F" else "d"
    for a, axis in itertools.product((x, x.T, x[:, ::2], x[::-1]), (None, 0, 1)):
        assert same_bits(
            np.asarray(nc.add.reduce(a, axis, target)), np.asarray(np.add.reduce(a, axis, target))
        )
    before_2_3 = np.lib.NumpyVersion(np.__version__) < "2.3.0"
    assert reductions()[0] == (0 if before_2_3 else 12)


@pytest.mark.parametrize("source", "qQ")
def test_integers_of_any_length_are_rounded_before_they_are_summed(source):
    rng, bits = np.random.default_rng(8), np.iinfo(source)
    x = rng.integers(bits.min, bits.max, (37, 1_003), source, endpoint=True)
    x >>= rng.integers(0, 64, x.shape).astype(source)
    x[::3, ::3] = x[::3, ::3] // 2048 * 2048 + 1024  # between two floats
    for a, axis in itertools.product((x, x.T, x[:, ::2], x[::-1, 5:]), (None, 0, 1)):
        assert same_bits(
            np.asarray(nc.add.reduce(a, axis, "d")), np.asarray(np.add.reduce(a, axis, "d"))
        )


# ---- maximum, logical_or and the like ----

ORDERLESS = {
    "maximum": "?bBhHiIlLqQefdgFD",
    "minimum": "?bBhHiIlLqQefdg",
    "fmax": "efdil",
    "fmin": "efdil",
    "logical_or": "?dil",
    "logical_and": "?di",
    "bitwise_or": "?bil",
    "bitwise_and": "?bilQ",
    "bitwise_xor": "?il",
    "gcd": "bilQ",
}


def few_values(rng, shape, dtype):
    """Small numbers, so that zeros of both signs, NaNs and what ends a search come about."""
    if dtype == "?":
        return rng.random(shape) < rng.choice([0, 0.001, 0.5, 0.999, 1])
    most = rng.choice([3, 100])
    x = rng.integers(0 if rng.random() < 0.5 else -most, most, shape)
    if dtype not in "efdgFD":
        return x.astype(dtype)
    x = np.where(rng.random(shape) < rng.choice([0, 0.3]), -0.0, x).astype(dtype)
    x[rng.random(shape) < rng.choice([0, 0, 0.0005, 1])] = np.nan
    return x


def outcome(function, *args, **keywords):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*args, **keywords)
        except Exception as error:
            result = type(error), str(error)
    return result, [str(warning.message) for warning in caught]


def same_but_for_nans(a, b):
    if a.dtype != b.dtype or a.strides != b.strides or a.dtype.kind not in "fc":
        return a.dtype == b.dtype and a.strides == b.strides and np.array_equal(a, b)
    signs = [np.signbit(x.real) | np.isnan(x) for x in (a, b)]
    return np.array_equal(a, b, equal_nan=True) and np.array_equal(*signs)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("byte", [0, 1, 2])
@pytest.mark.parametrize(
    "name",
    ["logical_or", "logical_and", "maximum", "fmin", "bitwise_or", "bitwise_and", "bitwise_xor"],
)
def test_repeated_bools_of_any_bytes(name, byte):
    """Of several, a loop makes 0 or 1; a single one stays as it is, unless there is an identity."""
    for shape in (1, 7), (7, 1), (1, 1), (5, 1_300), (1, 9_000):
        x = np.full(shape, byte, np.uint8).view(bool)
        x[:, shape[1] // 2 :: 2] = False
        for repeats in (1, 2, 700):
            for operand in (
                np.broadcast_to(x, (repeats, *shape)),
                np.broadcast_to(x[:, None], (shape[0], repeats, shape[1])),
                np.broadcast_to(x[..., None], (*shape, min(repeats, 99))),
            ):
                for axis in (0, 1, 2, (0, 1), None):
                    ours, theirs = (getattr(f, name).reduce(operand, axis) for f in (nc, np))
                    assert same_bits(np.asarray(ours), np.asarray(theirs)), (shape, repeats, axis)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("seed", range(6))
def test_operations_without_order_are_numpys(seed, reductions):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        name = str(rng.choice(list(ORDERLESS)))
        ndim = int(rng.integers(1, 4))
        shape = rng.integers(1, 4 if rng.random() < 0.3 else (30_000, 200, 40)[ndim - 1], ndim)
        x = few_values(rng, shape, str(rng.choice(list(ORDERLESS[name]))))
        x = x.transpose(rng.permutation(ndim))
        if rng.random() < 0.3:
            x = x[tuple(slice(None, None, int(step)) for step in rng.choice([1, 2, -1], ndim))]
        if rng.random() < 0.3:
            repeated = rng.random(ndim) < 0.5
            x = np.broadcast_to(x[tuple(slice(1 if is_ else None) for is_ in repeated)], x.shape)
        keywords = random_keywords(rng, ndim)
        keywords.pop("dtype", None)
        (ours, our_warnings), (theirs, their_warnings) = (
            outcome(getattr(package, name).reduce, x, **keywords) for package in (nc, np)
        )
        about = (name, x.shape, x.strides, x.dtype, keywords)
        assert our_warnings == their_warnings, about
        if isinstance(theirs, tuple):
            assert ours == theirs, about
        else:
            assert same_but_for_nans(np.asarray(ours), np.asarray(theirs)), about
    assert reductions()[0] > 0 or not has_methods


def reduced(ufunc, operand, axis, **keywords):
    """With an output in a larger array, if one is asked for: its rows lie apart."""
    if "out" in keywords:
        like = ufunc.reduce(operand, axis)
        shape = *like.shape[:-1], like.shape[-1] + 2
        keywords["out"] = np.zeros(shape, like.dtype)[..., 1:-1]
    return ufunc.reduce(operand, axis, **keywords)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("name", ["maximum", "bitwise_xor", "logical_or", "gcd"])
def test_short_rows_that_lie_apart(name, reductions):
    """Cropped images, for example: several rows are packed to one."""
    rng = np.random.default_rng(len(name))
    for dtype in ORDERLESS[name]:
        x = few_values(rng, (9, 40, 33), dtype)[..., 3:]
        y = few_values(rng, (6, 12, 5, 9, 33), dtype)[..., 3:]
        z = few_values(rng, (1500, 14, 9), dtype)[..., 2:]  # more rows than are packed at a time
        for operand, axis in (
            (x, 0),
            (z, 0),
            (z[::-3], 0),
            (x[::-1, ::2], 0),
            (x.swapaxes(0, 1), 1),
            (x.T, 2),
            (y[:, ::2, :, ::2], 0),
            (y[:, ::2, ::2], (0, 2)),
        ):
            for keywords in ({}, {"initial": 1}, {"keepdims": True}, {"out": True}):
                result, expected = (
                    reduced(getattr(f, name), operand, axis, **keywords) for f in (nc, np)
                )
                assert same_but_for_nans(result, expected)
    assert reductions()[0] > 0 or not has_methods


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("dtype", "bhiqefdFD")
def test_sums_of_short_rows_that_lie_apart(dtype):
    """Each column is added up as ever."""
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((3, 40, 8)) * 50).astype(dtype)[..., 3:]
    y = (rng.standard_normal((2, 12, 2, 9, 4)) * 50).astype(dtype)[..., 1:]
    for operand, axis in ((x, 0), (x[::-1, ::2], 0), (x.T, 2), (y[:, ::2, ::-1, ::2], (0, 2))):
        for keywords in ({}, {"initial": 1}, {"keepdims": True}, {"out": True}):
            result, expected = (reduced(f.add, operand, axis, **keywords) for f in (nc, np))
            assert same_but_for_nans(result, expected)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("name", [name for name in ORDERLESS if "?" in ORDERLESS[name]])
def test_bools_of_any_bytes(name):
    """One element alone stays as it is; what several become is up to NumPy's loop."""
    rng = np.random.default_rng(9)
    for least in (0, 1):
        x = rng.integers(least, 4, (9, 40, 33), np.uint8).view(bool)
        for operand in (x, x[..., 3:], np.broadcast_to(x[:1], x.shape), x[:1], x[:, :, :1]):
            for axis in (0, 1, None):
                ours, theirs = (
                    np.asarray(getattr(f, name).reduce(operand, axis=axis)) for f in (nc, np)
                )
                np.testing.assert_array_equal(ours.view(np.uint8), theirs.view(np.uint8))


@pytest.mark.skipif(not has_methods, reason="this NumPy's ufuncs have no attributes to shadow by")
@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
@pytest.mark.parametrize("dtype", "efd")
def test_the_order_decides_between_zeros(name, dtype, all_workers_come):
    """Only where there are both: then NumPy's order does."""
    ours, theirs = getattr(nc, name), getattr(np, name)
    for alone in (0.0, -0.0):
        x = np.full((1, 1), alone, dtype)
        assert np.signbit(ours.reduce(x, axis=None)) == np.signbit(alone)
    worst = -1 if name in ("maximum", "fmax") else 1
    with nc.config(threads=2):
        for at in (0, 1, 500_000, 999_999):
            x = np.full(1_000_000, worst, dtype)
            x[at] = 0
            assert not np.signbit(ours.reduce(x))
            assert nc._core.reduction_reason() is None
            for other in (0, 7, 999_998):
                x[other] = -0.0
                assert np.signbit(ours.reduce(x)) == np.signbit(theirs.reduce(x))
                assert nc._core.reduction_reason() == "no memory, or zeros of both signs"
        columns = np.array([[worst, 0.0, -0.0]] * 300_000, dtype)
        columns[5, 2] = 0.0
        result, expected = (ufunc.reduce(columns, axis=0) for ufunc in (ours, theirs))
        assert np.array_equal(np.signbit(result), np.signbit(expected))


@pytest.mark.parametrize("dtype", "efd")
@pytest.mark.parametrize("shape", [(450_001, 3), (3, 450_001), (3, 7, 120_001)])
def test_zeros_among_many_results(shape, dtype, all_workers_come):
    """Which several threads look for."""
    axis = int(np.argmin(shape))
    x = np.full(shape, -1, dtype)
    for at in (0, 1, -1):
        lines = np.moveaxis(x, axis, -1)[(at,) * (len(shape) - 1)]
        lines[:] = -0.0, 0.0, -1
        with nc.config(threads=2):
            ours = nc.maximum.reduce(x, axis=axis)
        assert np.array_equal(np.signbit(ours), np.signbit(np.maximum.reduce(x, axis=axis)))
        lines[:] = -1


@pytest.mark.parametrize("dtype", "efdFD")
@pytest.mark.parametrize("rows", range(2, 12))
def test_few_long_rows(rows, dtype):
    x = random_array((rows, 9_007), dtype)
    for operand in (x, x[:, 3:], x[::-1]):
        with nc.config(threads=1):
            ours = nc.add.reduce(operand, axis=0)
        assert same_bits(ours, np.add.reduce(operand, axis=0))


@pytest.mark.skipif(not has_methods, reason="this NumPy's ufuncs have no attributes to shadow by")
@pytest.mark.parametrize("dtype", "efd")
@pytest.mark.parametrize("shape", [(100, 7, 3), (30, 5, 2, 3), (2, 3, 400), (70, 3), (9, 2, 2, 90)])
def test_a_negative_zero_is_found_anywhere(shape, dtype):
    """Short axes are gathered, a part of the last one at a time."""
    rng = np.random.default_rng(0)
    x = np.zeros((*shape[:-1], shape[-1] + 2), dtype)[..., 1:-1]
    for axis in range(len(shape)):
        assert not np.signbit(nc.minimum.reduce(x, axis=axis)).any()
        assert nc._core.reduction_reason() is None
    corners = [(0,) * len(shape), tuple(n - 1 for n in shape)]
    for at in corners + [tuple(rng.integers(shape)) for _ in range(20)]:
        x[at] = -0.0
        for axis in (*range(len(shape)), None):
            ours, theirs = (of.minimum.reduce(x, axis=axis) for of in (nc, np))
            assert nc._core.reduction_reason() == "no memory, or zeros of both signs"
            assert np.array_equal(np.signbit(ours), np.signbit(theirs))
        x[at] = 0


@pytest.mark.parametrize("name", ["minimum", "maximum", "bitwise_xor", "bitwise_or"])
@pytest.mark.parametrize("dtype", "BhiL")
def test_long_lines_begin_anywhere(name, dtype):
    """They are cut where a cache line begins: each of the first elements counts, and once."""
    ours, theirs = getattr(nc, name), getattr(np, name)
    x = np.full(20_100, 9, dtype)
    for start in range(70):
        for extreme, at in ((3, start), (200 if dtype == "B" else 12, start + 40), (4, -1)):
            x[at] = extreme
            assert ours.reduce(x[start:]) == theirs.reduce(x[start:])
            x[at] = 9


@pytest.mark.skipif(not has_methods, reason="this NumPy's ufuncs have no attributes to shadow by")
def test_a_search_ends_where_the_result_is_known(regions, all_workers_come):
    x = np.zeros(10_000_000, bool)
    with nc.config(threads=2):
        assert not nc.logical_or.reduce(x) and regions() == 1
        for at, expected in ((0, 0), (100_000, 0), (5_000_000, 1), (9_999_999, 1)):
            x[at] = True
            for either, both in ((nc.logical_or, nc.logical_and), (nc.maximum, nc.fmin)):
                assert either.reduce(x) and regions() == expected
                assert not both.reduce(~x) and regions() == expected
            x[at] = False
        gathered = np.zeros((40, 300, 40), bool)[:, :, ::2]
        for at in (0, 39):
            gathered[at, 7, 3] = True
            assert nc.logical_or.reduce(gathered, axis=None)
            gathered[...] = False


def test_products_of_floats_keep_the_order():
    # Any other order overflows, or underflows.
    x = np.array([1e200, 1e-200] * 5000)
    assert nc.multiply.reduce(x) == np.multiply.reduce(x) == 1
    x = np.random.default_rng(1).normal(size=100_003)
    for dtype in FLOATS:
        y = x.astype(dtype)
        with np.errstate(all="ignore"):
            assert same_bits(nc.multiply.reduce(y), np.multiply.reduce(y))
            assert same_bits(nc.add.accumulate(y), np.add.accumulate(y))
            assert same_bits(nc.multiply.accumulate(y), np.multiply.accumulate(y))


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("dtype", "efd")
@pytest.mark.parametrize("special", [math.inf, -math.inf, math.nan])
def test_special_values(dtype, special):
    for n in (1, 17, 64, 10_007):
        for at in {0, n // 2, n - 1}:
            x = random_array((n,), dtype)
            x[at] = special
            assert same_bits(nc.add.reduce(x), np.add.reduce(x))
    x[:] = -0.0
    assert math.copysign(1, nc.add.reduce(x)) == math.copysign(1, np.add.reduce(x))


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("dtype", "efd")
def test_errors_are_told(dtype):
    largest = np.finfo(dtype).max
    x = np.zeros(70_001, dtype)
    x[[5, 69_000]] = largest
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        nc.add.reduce(x)
    x[[5, 69_000]] = math.inf, -math.inf
    with pytest.warns(RuntimeWarning, match="invalid value encountered in reduce"):
        assert np.isnan(nc.add.reduce(x))


class Logged(np.ndarray):
    pass


class Overriding:
    def __array_ufunc__(self, ufunc, method, *args, **keywords):
        return ufunc, method, args, keywords


def test_what_is_not_an_array(reductions):
    x = np.arange(12.0).reshape(3, 4)
    assert nc.add.reduce(x.tolist()).tolist() == np.add.reduce(x.tolist()).tolist()
    assert type(nc.add.reduce(x.view(Logged), axis=0)) is Logged
    matrix = x.view(np.matrix)
    assert nc.add.reduce(matrix, axis=1).tolist() == np.add.reduce(matrix, axis=1).tolist()
    masked = np.ma.masked_greater(x, 9)
    assert nc.add.reduce(masked, axis=0).tolist() == np.add.reduce(masked, axis=0).tolist()
    other = Overriding()
    assert nc.add.reduce(other, axis=0) == (nc.add, "reduce", (other,), {"axis": 0})
    assert nc.add.reduce(x, out=other)[:2] == (nc.add, "reduce")
    assert nc.add.outer(x, x, out=other)[:2] == (nc.add, "outer")
    with pytest.raises(np.exceptions.AxisError):
        nc.add.reduce(x, axis=2)
    with pytest.raises(TypeError, match="axes"):
        nc.add.reduce(x, axes=0)
    assert reductions()[0] == 0


@pytest.mark.parametrize("shape", [(1,), (1, 9), (7, 1), (33, 1, 2), (2, 4099, 1), (40_000, 1)])
@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin", "add"])
def test_results_of_one_element_each(name, shape):
    """Copies, with zeros of both signs: in NumPy's bits, and its strides."""
    values = np.array([0.0, -0.0, 1, -1, np.nan, np.inf])
    ours, theirs = getattr(nc, name), getattr(np, name)
    rng = np.random.default_rng(5)
    for dtype in "efd":
        x = rng.choice(values, (2 * shape[0], *shape[1:])).astype(dtype)
        for operand in x[: shape[0]], x[::2], np.asfortranarray(x[::2]):
            axis = operand.shape.index(1)
            for keywords in {}, {"keepdims": True}, {"initial": 0.0}, {"initial": -0.0}:
                result = ours.reduce(operand, axis=axis, **keywords)
                expected = theirs.reduce(operand, axis=axis, **keywords)
                assert same_bits(result, expected), (dtype, keywords)
                assert result.strides == expected.strides, (dtype, keywords)


@pytest.mark.skipif(not has_methods, reason="this NumPy's ufuncs have no attributes to shadow by")
def test_reasons():
    x = np.arange(24.0).reshape(2, 3, 4)
    long = np.arange(12_288.0).reshape(3, 4096)
    calls = {
        None: [
            (nc.add, x, {}),
            (nc.multiply, x.astype(int), {}),
            (nc.maximum, x.astype(int), {"axis": -1}),
            (nc.add, x, {"keepdims": True}),
            (nc.add, x, {"axis": None, "initial": 1, "where": x > 3}),
        ],
        "arguments": [
            (nc.add, x.tolist(), {}),
            (nc.add, x[0, 0, 0], {}),
        ],
        "initial= or where=": [
            (nc.add, x, {"initial": 1}),
            (nc.add, x, {"axis": -1, "where": x[..., :1] > 3}),
        ],
        "no kernel": [
            (nc.multiply, long, {}),
            (nc.power, long, {}),
            (nc.maximum, long.astype("g"), {}),
            (nc.add, x, {"dtype": "f"}),
        ],
        "short": [
            (nc.power, x, {}),
            (nc.maximum, x.astype("g"), {}),
            (nc.add, x.astype("g"), {}),
            (nc.add, np.broadcast_to(x, (3, *x.shape)), {"axis": 1}),
            (nc.add, x.astype(">d"), {}),
        ],
        "one thread": [(nc.maximum, long, {}), (nc.maximum, long[:2].astype(int), {})],
        "no elements": [(nc.add, x[:0], {})],
        "not aligned, of another byte order, or with metadata": [(nc.add, long.astype(">d"), {})],
        "broadcast elements": [(nc.add, np.broadcast_to(long, (3, *long.shape)), {"axis": 1})],
        "out=": [(nc.add, x, {"out": np.zeros((3, 4), "f")}), (nc.add, x, {"out": x[0]})],
        "more axes than kernels take": [(nc.add, np.ones((3,) * 9)[(slice(2),) * 9], {})],
        "a copy": [
            (nc.add, np.ones((1, 40_000)), {}),
            (nc.add, np.ones((99, 1, 4))[..., ::3], {"axis": 1}),
        ],
    }
    for reason, calls_of_reason in calls.items():
        for ufunc, operand, keywords in calls_of_reason:
            theirs = getattr(np, ufunc.__name__).reduce(operand, **keywords)
            np.testing.assert_array_equal(ufunc.reduce(operand, **keywords), theirs)
            assert nc._core.reduction_reason() == reason


@pytest.mark.skipif(not has_methods, reason="this NumPy's ufuncs have no attributes to shadow by")
@pytest.mark.parametrize("name", ["reduce", "accumulate", "reduceat", "at"])
@pytest.mark.parametrize("op", ["add", "multiply", "maximum"])
def test_methods_look_like_numpys(op, name):
    ours, theirs = getattr(getattr(nc, op), name), getattr(getattr(np, op), name)
    assert ours.__doc__ == theirs.__doc__
    assert ours.__name__ == name
    assert ours.__self__ is getattr(nc, op)


@pytest.mark.parametrize("method", ["reduce", "accumulate"])
@pytest.mark.parametrize("op", ["add", "multiply", "logical_or", "subtract"])
@pytest.mark.parametrize("dtype", "hlfF")
@np.errstate(all="ignore")
def test_loops_of_all_lengths(op, method, dtype):
    ours, theirs = getattr(getattr(nc, op), method), getattr(getattr(np, op), method)
    for shape in ((3, 5), (4, 1_500), (1_500, 4), (3, 40, 50), (0, 3), (1_500,)):
        x = random_array(shape, dtype)
        for operand in (x, np.asfortranarray(x), x[::-1], np.broadcast_to(x[:1], shape)):
            for axis in range(len(shape)):
                try:
                    expected = theirs(operand, axis=axis)
                except ValueError:  # nothing to subtract from
                    with pytest.raises(ValueError, match="zero-size"):
                        ours(operand, axis=axis)
                    continue
                result = ours(operand, axis=axis)
                assert result.dtype == expected.dtype
                assert result.strides == expected.strides
                assert same_bits(np.asarray(result), np.asarray(expected))
                out = np.empty_like(expected)
                if isinstance(expected, np.ndarray):
                    assert ours(operand, axis, None, out) is out
                    # Before NumPy 2.3, other bits than without an output.
                    assert same_bits(out, theirs(operand, axis, None, np.empty_like(expected)))


@pytest.mark.parametrize("method", ["reduce", "accumulate"])
@pytest.mark.parametrize("op", ["add", "maximum"])
def test_methods_are_our_ufuncs(op, method):
    ours, other, x = getattr(nc, op), Overriding(), random_array((4, 3), "d")
    assert getattr(ours, method)(other)[:2] == (ours, method)
    assert getattr(ours, method)(x, out=other)[:2] == (ours, method)
    assert getattr(ours, method)(x, out=(other,))[:2] == (ours, method)
    assert getattr(ours, method)(x, 1, None, other)[:2] == (ours, method)


@pytest.mark.parametrize("name", ["add", "maximum"])
@pytest.mark.parametrize("indices", [[0, 5, 3, 3, 19], np.arange(0, 20, 2), [0], [7, 0]])
def test_reduceat(name, indices):
    ours, theirs = getattr(nc, name), getattr(np, name)
    short, long = random_array((20, 31), "d"), random_array((20, 20_000), "d")[:, ::2]
    for x in (short, long):
        for axis in (0, 1):
            result = ours.reduceat(x, indices, axis)
            expected = theirs.reduceat(x, indices, axis=axis)
            assert same_bits(result, expected)
            out = np.empty_like(result)
            assert ours.reduceat(x, indices, axis=axis, out=out) is out
            assert same_bits(out, result)
            typed = ours.reduceat(x, indices, axis=axis, dtype="d")
            assert same_bits(typed, expected)


@pytest.mark.parametrize("name", ["add", "divmod", "maximum"])
def test_outer(name):
    ours, theirs = getattr(nc, name), getattr(np, name)
    x = np.arange(1.0, 13).reshape(3, 4)
    for left, right in (
        (x, x),
        (x[::2, ::-1].T, x[0]),
        (x[0, 0, None][0:0], x),
        (np.array(3.0), x),
        (x, np.array(2)),
        ([1, 2], x),
        (np.ones((1,) * 40), np.ones((1,) * 40)),
    ):
        for keywords in ({}, {"dtype": "f"}, {"where": True}, {"out": x[0]}, {"nope": 1}):
            result, expected = (
                outcome(f.outer, left, right, **keywords)[0] for f in (ours, theirs)
            )
            for a, b in zip(
                *(x if isinstance(x, tuple) else (x,) for x in (result, expected)), strict=True
            ):
                if not isinstance(b, np.ndarray):
                    assert a == b
                else:
                    assert same_bits(a, b) and a.strides == b.strides


@pytest.mark.skipif(not has_methods, reason="this NumPy's ufuncs have no attributes to shadow by")
def test_outer_takes_the_way_of_the_call(regions, all_workers_come):
    x = np.arange(1500.0)
    with nc.config(threads=2):
        assert same_bits(nc.multiply.outer(x, x), np.multiply.outer(x, x))
    assert regions() == 1


def test_reduceat_is_our_ufuncs():
    other = Overriding()
    x = random_array((20, 31), "d")
    assert nc.add.reduceat(other, [0, 1])[:2] == (nc.add, "reduceat")
    assert nc.add.reduceat(x, [0, 1], out=other)[:2] == (nc.add, "reduceat")
    assert nc.add.reduceat(x, [0, 1], out=(other,))[:2] == (nc.add, "reduceat")
    for arguments in ((x,), (x, []), (x, [0, 20]), (x, [0.5]), (x, np.array(3)), (x, [0], 2)):
        errors = []
        for function in (nc.add, np.add):
            try:
                errors.append(function.reduceat(*arguments).tolist())
            except Exception as error:
                errors.append((type(error), str(error)))
        assert errors[0] == errors[1]


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("dtype", "ldF")
def test_outputs(dtype):
    x = random_array((50, 2_003), dtype)
    for axis, shape in ((0, (2_003,)), (1, (50,)), (None, ())):
        for out in (np.zeros(shape, dtype), np.zeros((*shape, 2), dtype)[..., 0]):
            assert nc.add.reduce(x, axis=axis, out=out) is out
            assert same_bits(out, np.asarray(nc.add.reduce(x, axis=axis)))
    # Over its own operand, which NumPy copies.
    expected = x.copy()
    np.add.reduce(expected, axis=0, out=expected[7])
    nc.add.reduce(x, axis=0, out=x[7])
    assert same_bits(x, expected)


def results_of_all_layouts(dtype, shapes=((10, 10), (300, 700), (4, 9, 500))):
    """Reductions along all axes, of few and of many rows and columns; accumulate and reduceat."""
    results = []
    with np.errstate(all="ignore"):
        for shape in shapes:
            for x in layouts(random_array(shape, dtype)):
                for ufunc, axis in itertools.product((nc.add, nc.multiply), axes_of(x.ndim)):
                    results.append(np.asarray(ufunc.reduce(x, axis)))
                for axis in range(x.ndim):
                    results.append(nc.add.accumulate(x, axis))
                    results.append(nc.add.reduceat(x, [0, 3], axis))
    return results


no_asan = pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer makes frames larger"
)


@no_asan
@pytest.mark.parametrize("always", [False, True], ids=["as usual", "threads always"])
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_small_stacks(dtype, always, request):
    shapes = {}
    if always:
        request.getfixturevalue("threads_always")
        # NumPy's own method, before NumPy 2.3, makes a region of each row.
        shapes = {"shapes": ((10, 10), (30, 700), (700, 30), (4, 9, 50))}
    results = in_thread_of_small_stack(lambda: results_of_all_layouts(dtype, **shapes))
    expected = results_of_all_layouts(dtype, **shapes)
    assert len(results) == len(expected)
    assert all(same_bits(ours, theirs) for ours, theirs in zip(results, expected, strict=True))


@no_asan
@pytest.mark.parametrize("dtype", FLOATS)
def test_small_stacks_of_long_rows(dtype):
    """One thread halves a row down to its leaves."""
    row = random_array((4_000_000,), dtype)
    rows = row, row[::-1], row[::3]

    def reduce_rows():
        with nc.config(threads=1):
            return list(map(nc.add.reduce, rows))

    results = in_thread_of_small_stack(reduce_rows)
    assert all(same_bits(a, np.add.reduce(b)) for a, b in zip(results, rows, strict=True))


@no_asan
def test_small_stacks_of_workers():
    """The limit of the process is not that of workers."""
    code = (
        "import _numc_test, numpy as np, numc_ufuncs as nc\n"
        "_numc_test.set_parallel_threshold(1); nc.set_config(threads=3)\n"
        "for dtype in 'efdFDbhil':\n"
        "    x = np.ones((600, 9_000), dtype)\n"
        "    for axis in (0, 1, None): nc.add.reduce(x, axis=axis)\n"
        "    nc.add.accumulate(x[0])\n"
        "print(nc._core.regions() > 0)"
    )
    command = ["sh", "-c", 'ulimit -s 192; exec "$@"', "sh", sys.executable, "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "True\n"


@pytest.mark.parametrize("dtype", [None, "l", "u1", "d", "f", "D"])
@pytest.mark.parametrize("name", ["add", "multiply"])
def test_any_byte_but_0_is_true(name, dtype, threads_always):
    """As in arrays that `frombuffer` and `view` make."""
    bytes_ = np.random.default_rng(3).integers(0, 256, (40, 2500)).astype("B")
    bytes_[bytes_ < 50] = 0
    bools = bytes_.view(bool)
    for array in (bools, bools.T, bools[:, ::3], bools[0], bools.ravel(), np.abs(bools)):
        for axis in range(array.ndim):
            for method, arguments in (("reduce", ()), ("accumulate", ()), ("reduceat", ([0, 7],))):
                keywords = {"axis": axis, "dtype": dtype}
                ours = getattr(getattr(nc, name), method)(array, *arguments, **keywords)
                theirs = getattr(getattr(np, name), method)(array, *arguments, **keywords)
                np.testing.assert_array_equal(ours, theirs)
    mask = bools[::-1]
    np.testing.assert_array_equal(
        nc.add.reduce(bools, where=mask, axis=0), np.add.reduce(bools, where=mask, axis=0)
    )


@pytest.mark.parametrize("dtype", "efdFD")
def test_no_error_that_numpy_does_not_report(dtype):
    """Of sums that overflow in another order only, or in lanes that are not used."""
    rng = np.random.default_rng(9)

    def warned(function, *arguments, **keywords):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(*arguments, **keywords)
        return [str(warning.message) for warning in caught]

    for _ in range(800):
        n = int(rng.integers(6, 400))
        array = np.zeros(n, dtype)
        parts = array.view(array.real.dtype)
        per = len(parts) // n
        at = rng.permutation(n)[:3] * per + rng.integers(per)
        parts[at] = np.finfo(dtype).max * np.array([0.7, -0.7, 0.35]).astype(parts.dtype)
        rows = array[: n // 6 * 6]
        for operand in (array, array[::-1], rows.reshape(-1, 6), rows.reshape(6, -1)):
            for axis in range(operand.ndim):
                expected = warned(np.add.reduce, operand, axis=axis)
                assert warned(nc.add.reduce, operand, axis=axis) == expected
        expected = warned(np.add.reduceat, array, [0, 5])
        assert warned(nc.add.reduceat, array, [0, 5]) == expected


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("name", ["gcd", "add", "multiply", "maximum", "bitwise_xor"])
@pytest.mark.parametrize("dtype", "bhlQ")
def test_one_element_for_each_result(name, dtype):
    most = int(np.iinfo(dtype).max)
    numbers = (
        np.array([most // 2 + 1, most - 7, 0, 6, 1, most, 30], object).astype("Q").astype(dtype)
    )
    ours, theirs = getattr(nc, name), getattr(np, name)
    for shape in [(1,), (5,), (4, 1, 6), (8, 1, 3), (1, 1, 1), (3, 5, 2, 1), (40, 30, 2, 1)]:
        x = np.resize(numbers, shape)
        axis = shape.index(1) if 1 in shape else 0
        for operand in (x, x[::2], x[::-1], x[..., ::2], np.asfortranarray(x)):
            result, expected = (f.reduce(operand, axis=axis) for f in (ours, theirs))
            assert same_bits(np.asarray(result), np.asarray(expected))
        starts = np.arange(shape[axis])
        expected = theirs.reduceat(x, starts, axis=axis)
        assert same_bits(ours.reduceat(x, starts, axis=axis), expected)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("dtype", "bhilqBHILQ")
def test_gcd_over_axes_apart(dtype):
    rng = np.random.default_rng(ord(dtype))
    for shape in [(7, 90, 9), (11, 20, 12), (3, 2, 600), (9, 30, 3, 6)]:
        x = rng.integers(0, 100, shape, dtype) * 6
        for operand in (x, x[..., ::3], x[::2], x[::-1]):
            for axis in ((0, 2), (2,), None):
                ours = nc.gcd.reduce(operand, axis=axis)
                assert same_bits(np.asarray(ours), np.asarray(np.gcd.reduce(operand, axis=axis)))


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("dtype", FLOATS)
def test_few_rows_of_columns_apart(dtype):
    rng = np.random.default_rng(7)
    for rows in (1, 2, 3, 4, 5, 9, 33):
        x = ((rng.random((3, rows, 3 * 71)) - 0.5) * 100).astype(dtype)
        for operand in (x[..., ::3], x[..., ::-2], x[:, ::-1, ::3]):
            ours = nc.add.reduce(operand, axis=1)
            assert same_numbers(ours, np.add.reduce(operand, axis=1))


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("dtype", ["?", "int8", "uint16", "int32", "int64", "float32"])
def test_converted_columns_apart(dtype):
    rng = np.random.default_rng(8)
    for shape in [(2, 282, 3), (3, 50, 20), (9, 7, 3), (2, 40, 90), (2, 5, 30, 2)]:
        x = ((rng.random((*shape[:-1], shape[-1] + 3)) - 0.5) * 100).astype(dtype)
        for operand in (x[..., 3:], x[::-1, :, :-3], x[:, ::2, 1:]):
            for axis in (0, 1, (0, 1)):
                keywords = {"axis": axis, "dtype": "float64"}
                ours, theirs = (
                    nc.add.reduce(operand, **keywords),
                    np.add.reduce(operand, **keywords),
                )
                assert same_bits(ours, theirs)
