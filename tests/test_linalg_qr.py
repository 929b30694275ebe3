"""QR decompositions of stacks of small matrices: in NumPy's layout, with its signs, in place."""

import numpy as np
import pytest
from linalg_cases import Call, compare
from linalg_errors import random_numbers

import numc_ufuncs as nc
from numc_ufuncs import linalg

GUFUNCS = np.linalg._umath_linalg
IS_OLD = not hasattr(GUFUNCS, "qr_r_raw")  # NumPy 2.0, which chooses by the shape
SQUARE = [(1, 1), (2, 2), (8, 8), (16, 16)]
ROWS_AND_COLUMNS = [*SQUARE, (3, 5), (7, 2), (4, 24), (40, 3), (1, 9), (9, 1)]


def raw_of(m, n):
    return getattr(GUFUNCS, f"qr_r_raw_{'m' if m <= n else 'n'}" if IS_OLD else "qr_r_raw")


def numbers(dtype, *shape):
    return random_numbers(np.random.default_rng([ord(dtype), *shape]), dtype, *shape)


def way_of(call):
    with nc.config(threads=1), nc.profile() as found:
        call()
    return {row["way"] for row in found.rows}


@pytest.mark.parametrize("dtype", "dD")
def test_kernels_compute_small_matrices(dtype):
    for (m, n), expected in {
        **dict.fromkeys(ROWS_AND_COLUMNS, "one thread"),
        (60, 60): "NumPy",
        (2000, 1): "NumPy",
    }.items():
        raw, k = nc.parallel(raw_of(m, n)), min(m, n)
        a, taus = numbers(dtype, 70, m, n), np.zeros((70, k), dtype)
        assert way_of(lambda: raw(a.copy())) == {expected}, (m, n)  # noqa: B023
        assert way_of(lambda: nc.parallel(GUFUNCS.qr_reduced)(a, taus)) == {expected}  # noqa: B023


def test_one_matrix_is_lapacks():
    a = numbers("d", 1, 4, 4)
    assert way_of(lambda: nc.parallel(raw_of(4, 4))(a)) == {"NumPy"}


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
@pytest.mark.parametrize("shape", ROWS_AND_COLUMNS, ids=str)
def test_layout_and_signs(shape, mode):
    """Close to NumPy's: no other signs, and reflections and tau are LAPACK's."""
    for dtype in "fdFD":
        a = numbers(dtype, 70, *shape).astype(dtype) + 3 * np.eye(*shape, dtype=dtype)
        by_columns = a.swapaxes(1, 2).copy().swapaxes(1, 2)
        for given in (a, a[::-2], by_columns, np.broadcast_to(a[0], a.shape)):
            before = given.copy()
            compare(Call("qr", (), {"mode": mode}, "close"), [given])
            assert np.array_equal(given, before)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("dtype", "dD")
def test_columns_with_nothing_to_reflect(dtype):
    """tau is 0, and R keeps the sign; of complex numbers those that are not real are turned."""
    a = np.triu(numbers(dtype, 90, 4, 4))
    a[::3, 1:] = 0
    a[1::3] = a[1::3].real
    h, theirs = a.copy(), a.copy()
    raw = raw_of(4, 4)
    tau, tau_of_lapack = nc.parallel(raw)(h), raw(theirs)
    assert np.array_equal(tau == 0, tau_of_lapack == 0)
    assert (tau == 0).all() == (dtype == "d") and (tau[1::3] == 0).all()
    np.testing.assert_allclose(h, theirs, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(tau, tau_of_lapack, rtol=1e-14)


LEFT = {
    "tiny": lambda a: a * 1e-170,
    "huge": lambda a: a * 1e170,
    "nan": lambda a: np.where(np.eye(*a.shape, k=-1), np.nan, a),
    "inf": lambda a: np.where(np.eye(*a.shape), np.inf, a),
    "nan at the end": lambda a: np.where(
        np.arange(a.size).reshape(a.shape) + 1 == a.size, np.nan, a
    ),
    "tiny below": lambda a: np.where(np.eye(*a.shape), 0, a * 1e-200),
}


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize(
    "where", [slice(1), slice(-1, None), slice(3, 70), slice(None, None, 2)], ids=str
)
@pytest.mark.parametrize("kind", LEFT)
def test_matrices_that_kernels_leave(kind, where):
    """LAPACK computes in place, too: it is given what has not been written."""
    for dtype in "dD":
        for m, n in ((3, 3), (5, 2), (2, 5)):
            a = numbers(dtype, 150, m, n)
            plain = a.copy()
            a[where] = [LEFT[kind](x) for x in a[where]]
            left = np.zeros(len(a), bool)
            left[where] = True
            h, raw = a.copy(), raw_of(m, n)
            with np.errstate(all="ignore"):
                tau = nc.parallel(raw)(h)
                theirs = a[left]
                tau_of_lapack = raw(theirs)
                q = nc.parallel(GUFUNCS.qr_reduced)(h, tau)
            assert h[left].tobytes() == theirs.tobytes()
            assert tau[left].tobytes() == tau_of_lapack.tobytes()
            tau_of_plain = nc.parallel(raw)(plain)
            assert h[~left].tobytes() == plain[~left].tobytes()
            assert tau[~left].tobytes() == tau_of_plain[~left].tobytes()
            assert np.isfinite(q[~left]).all()


def test_matrices_in_one_place():
    """Each is computed from what is left of the one before, as NumPy does it."""
    a = np.ones((1, 3, 3)) + np.eye(3)
    results = []
    for gufunc in (raw_of(3, 3), nc.parallel(raw_of(3, 3))):
        one = a.copy()
        stack = np.lib.stride_tricks.as_strided(one, (80, 3, 3), (0, *one.strides[1:]))
        results.append((gufunc(stack).tobytes(), one.tobytes()))
    assert results[0] == results[1]


@pytest.mark.usefixtures("threads_always")
def test_results_do_not_depend_on_the_place():
    a = numbers("d", 1000, 6, 4)
    for call in (linalg.qr, lambda x: linalg.qr(x, mode="complete")):
        q, r = call(a)
        for part in (slice(37, 38), slice(5, 70), slice(None, None, -3)):
            chosen = np.concatenate([a[part], a[:2]])
            other_q, other_r = call(chosen)
            assert other_q[:-2].tobytes() == q[part].tobytes()
            assert other_r[:-2].tobytes() == r[part].tobytes()


# ---- R, whose other numbers NumPy's function replaces on one core ----


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["d", "D", "f", "F", ">f8", "i8"])
def test_triangles(dtype, threads):
    """numpy.triu's bits and strides."""
    triu = linalg._functions()["qr"].__globals__["triu"]
    rng = np.random.default_rng(0)
    with nc.config(threads=threads):
        for shape in ((2, 2), (3, 5), (5, 3), (8, 8), (70, 64)):
            count = linalg.LEAST_STACK_BYTES // (4 * shape[0] * shape[1]) + 7
            a = rng.integers(-9, 9, (count, *shape)).astype(dtype)
            if a.dtype.kind in "fc":
                a.real[::2] *= -0.0
                a[::5, 0, 0] = np.nan
            for m in (
                a,
                a[:, :-1],
                a[:, :, :-1],
                a[::2],
                a[::-1],
                a.swapaxes(1, 2),
                a.swapaxes(0, 1),
                a[:5],
            ):
                ours, theirs = triu(m), np.triu(m)
                assert ours.tobytes() == theirs.tobytes()
                assert (ours.dtype, ours.strides) == (theirs.dtype, theirs.strides)
        four = rng.uniform(-1, 1, (40, 1000, 3, 3))
        assert triu(four).tobytes() == np.triu(four).tobytes()
        assert triu(four, 1).tobytes() == np.triu(four, 1).tobytes()


@pytest.mark.usefixtures("threads_always")
def test_large_triangles_use_threads(regions):
    a = np.ones((1 << 16, 4, 4))
    regions()
    linalg._triu(a)
    assert regions() > 0
