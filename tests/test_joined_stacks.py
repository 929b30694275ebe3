"""Stacks in which one operand is repeated: one product in every layout, with NumPy's results."""

import numpy as np
import pytest
from test_matmul import ALL, UFUNCS, expected, laid_out, random_values, same

import numc_ufuncs as nc
from numc_ufuncs import _core

pytestmark = pytest.mark.usefixtures("cpu", "three_threads")

CORES = {
    "matmul": ("mk", "kn"),
    "vecdot": ("k", "k"),
    "matvec": ("mk", "k"),
    "vecmat": ("k", "kn"),
}


def as_matrices(name, a, b):
    a = (a.conj() if name in ("vecdot", "vecmat") else a)[..., None, :] if name[0] == "v" else a
    return a, b[..., None] if name in ("vecdot", "matvec") else b


def wanted(name, a, b):
    """The exact result, and how far from it ours may be."""
    index = {"vecdot": (..., 0, 0), "matvec": (..., 0), "vecmat": (..., 0, slice(None))}
    exact, tolerance = expected(*as_matrices(name, a, b), a.dtype)
    at = index.get(name, ...)
    return exact[at], tolerance[at] if np.ndim(tolerance) else tolerance


def random_operands(rng, name, code):
    """Along each axis of the stack one operand is repeated, by length 1 or by steps of 0."""
    stack = rng.choice([2, 3, 11], rng.integers(1, 4))
    lengths = dict(zip("mkn", rng.choice([1, 2, 5, 8, 17, 33, 120], 3), strict=True))
    operands = [
        random_values(rng, code, (*stack, *(lengths[c] for c in core)), finite=code not in "eg")
        for core in CORES[name]
    ]
    only = rng.integers(3)  # the first or the second along all axes; one of both along each
    for axis in range(len(stack)):
        which = rng.integers(2) if only == 2 else only
        operands[which] = operands[which].take([0], axis)
    for i, values in enumerate(operands):
        operands[i] = laid_out(rng, values) if rng.integers(3) else values
        if rng.integers(3) == 0:  # steps of 0, perhaps of both
            shape = np.where(rng.integers(2, size=len(stack)), stack, values.shape[: len(stack)])
            operands[i] = np.broadcast_to(operands[i], (*shape, *values.shape[len(stack) :]))
    return operands


def check(seed, code=None):
    rng = np.random.default_rng(seed)
    name = UFUNCS[rng.choice(4, p=(0.6, 0.1, 0.15, 0.15))]
    a, b = random_operands(rng, name, code or ALL[rng.integers(len(ALL))])
    with np.errstate(all="ignore"):
        exact, tolerance = wanted(name, a, b)
        result = getattr(nc, name)(a, b)
        assert result.dtype == a.dtype and result.shape == exact.shape
        assert same(result, exact, tolerance), (seed, name, a.dtype, a.strides, b.strides)
        room = laid_out(rng, np.ones(exact.shape, a.dtype))
        assert getattr(nc, name)(a, b, out=room) is room
        assert same(room, exact, tolerance), (seed, name, a.dtype, room.strides)


@pytest.mark.parametrize("part", range(4))
def test_random_stacks(part):
    for seed in range(60):
        check(1000 * part + seed)


@pytest.mark.parametrize("code", "fdFD")
def test_random_stacks_of_floats(code):
    for seed in range(60):
        check(seed, code)


def loops():
    """How many products were computed so far, by us or by NumPy."""
    return sum(_core.matmuls())


LAYOUTS = {
    "contiguous": lambda a: a.copy(),
    "axes in another order": lambda a: a.transpose(1, 0, 2, 3).copy().transpose(1, 0, 2, 3),
    "gaps between products": lambda a: np.concatenate([a, a], 1)[:, : a.shape[1]],
    "gaps between rows": lambda a: np.concatenate([a, a], 3)[..., : a.shape[3]],
}


@pytest.mark.parametrize("code", "dFl")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_follow_each_other(layout, code):
    a = LAYOUTS[layout]((np.arange(70 * 5 * 120) % 9).reshape(70, 5, 1, 120).astype(code))
    b = (np.arange(120 * 65).reshape(120, 65) % 7).astype(code)
    for x, y in ((a, b), (b.T, a.swapaxes(2, 3))):
        before = loops()
        result = nc.matmul(x, y)
        assert loops() - before == 1  # apart, one for each of the longer axis
        assert np.array_equal(result, np.matmul(x, y))


def test_both_operands_repeated_along_an_axis_each():
    a, b = (
        np.arange(5 * 40 * 30.0).reshape(5, 1, 40, 30),
        np.arange(6 * 30 * 20.0).reshape(6, 30, 20),
    )
    before = loops()
    assert np.array_equal(nc.matmul(a, b), np.matmul(a, b))
    assert loops() - before <= 30


@pytest.mark.parametrize("code", "fdFD")
def test_product_with_own_transpose_stays_symmetric(code):
    stack = np.random.default_rng(3).standard_normal((6, 16, 900)).astype(code)
    for i in (0, 3, 5):
        for x, y, own in (
            (stack, stack[i].T, i),
            (stack[i], stack.swapaxes(1, 2), i),
            (stack[::-1], stack[i].T, 5 - i),
        ):
            product = nc.matmul(x, y)[own]
            assert np.array_equal(product, product.T)


@pytest.mark.parametrize("code", "FD")
def test_conjugated_rows(code):
    rng = np.random.default_rng(8)
    for name, a_shape, b_shape in (
        ("vecmat", (30, 120), (120, 200)),
        ("vecmat", (30, 1, 120), (120, 200)),
        ("vecdot", (5, 9000), (9000,)),
        ("vecdot", (9000,), (5, 9000)),
    ):
        a, b = (random_values(rng, code, shape, finite=True) for shape in (a_shape, b_shape))
        exact, tolerance = wanted(name, a, b)
        assert same(getattr(nc, name)(a, b), exact, tolerance), (name, a_shape)


@pytest.mark.parametrize("code", "dF")
def test_copied_rows_in_several_parts(code):
    # Windows overlap: BLAS takes no such matrix. More than what is copied at a time.
    values = np.random.default_rng(4).standard_normal(3000).astype(code)
    windows = np.lib.stride_tricks.sliding_window_view(values, 300)
    b = np.random.default_rng(5).standard_normal((300, 200)).astype(code)
    result = nc.matmul(windows[:, None, :], b)
    np.testing.assert_allclose(result[:, 0], np.array(windows) @ b, rtol=1e-4, atol=1e-4)
    result = nc.matmul(b.T, windows[::-1, :, None])
    np.testing.assert_allclose(result[::-1, :, 0], np.array(windows) @ b, rtol=1e-4, atol=1e-4)


def test_nothing_else_is_written():
    a, b = np.ones((30, 2, 140)), np.ones((140, 50))
    room = np.zeros((30, 4, 60))
    nc.matmul(a, b, out=room[:, 1:3, 5:55])
    assert (room[:, 1:3, 5:55] == 140).all() and room.sum() == 30 * 2 * 50 * 140


@pytest.mark.parametrize("code", "fdFD")
def test_infinities_and_nans_stay_in_their_rows(code):
    for bad in (np.nan, np.inf):
        a, b = np.ones((20, 3, 140), code), np.ones((140, 100), code)
        a[7, 1, 3] = bad
        for x in (a, np.concatenate([a, a], 1)[:, :3]):
            with np.errstate(all="ignore"):
                ours, theirs = nc.matmul(x, b), np.matmul(x, b)
            assert np.array_equal(ours, theirs, equal_nan=True)
            assert np.isfinite(np.delete(ours, 7, 0)).all()


def test_empty_stacks():
    assert nc.matmul(np.ones((0, 1, 70)), np.ones((70, 60))).shape == (0, 1, 60)
    assert not nc.matmul(np.ones((3, 2, 0)), np.ones((0, 60))).any()
    assert nc.matmul(np.ones((3, 0, 70)), np.ones((70, 60))).shape == (3, 0, 60)


def test_output_that_overlaps():
    memory = np.random.default_rng(6).standard_normal((9, 2, 100))
    b = np.random.default_rng(7).standard_normal((100, 100))
    expected = np.matmul(memory[:-1].copy(), b)
    nc.matmul(memory[:-1], b, out=memory[1:])
    np.testing.assert_allclose(memory[1:], expected, rtol=1e-12, atol=1e-12)
