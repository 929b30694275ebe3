"""Products of floats with few columns or rows, which are as fast as reading the other operand."""

import numpy as np
import pytest
from test_joined_stacks import wanted
from test_matmul import UFUNCS, laid_out, raised, random_values, same, warned

import numc_ufuncs as nc
from numc_ufuncs import _core

pytestmark = pytest.mark.usefixtures("cpu", "threads_always")

CODES = "fdFD"
K = (64, 65, 71, 79, 129, 300, 1025, 4097)


def shapes(rng, name):
    k = int(rng.choice(K))
    long = int(rng.choice([1, 2, 3, 5, 6, 7, 30, 257, 300, 600, 5000]))
    long = long if k * long < 400_000 else 7
    thin = int(rng.integers(1, 10))
    m, n = (thin, long) if rng.integers(2) else (long, thin)
    return {
        "matmul": ((m, k), (k, n)),
        "vecdot": ((k,), (k,)),
        "matvec": ((long, k), (k,)),
        "vecmat": ((k,), (k, long)),
    }[name]


def random_operands(rng, name, code):
    stack = ((), (), (3,), (2, 2))[rng.integers(4)]
    return [
        laid_out(rng, random_values(rng, code, stack + shape, finite=True))
        for shape in shapes(rng, name)
    ]


def ours():
    return _core.matmuls()[0]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", UFUNCS)
def test_random_products(name, code):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        a, b = random_operands(rng, name, code)
        exact, tolerance = wanted(name, a, b)
        before = ours()
        result = getattr(nc, name)(a, b)
        core = exact.shape[-2:] if name == "matmul" else ()
        assert ours() > before or min(core, default=1) > (8 if code in "fd" else 4)
        assert result.dtype == a.dtype
        assert same(result, exact, tolerance), (seed, a.shape, a.strides, b.shape, b.strides)
        if exact.shape == ():
            continue
        out = laid_out(rng, np.ones(exact.shape, code))
        room = out if out.base is None else out.base
        total = room.size - out.size
        room[...], before = 7, room.copy()
        assert getattr(nc, name)(a, b, out=out) is out
        assert same(out, exact, tolerance), (seed, a.shape, a.strides, b.shape, b.strides)
        out[...] = 5
        assert np.count_nonzero(room == 7) == total  # nothing but the output was written


@pytest.mark.parametrize("code", "fd")
def test_short_k(code):
    for seed in range(120):
        rng = np.random.default_rng(seed)
        m, n = (int(x) for x in rng.choice([1, 2, 5, 9, 31, 70, 300, 700], 2))
        k = int(rng.integers(1, 18))
        stack = ((), (3,))[rng.integers(2)]
        a = laid_out(rng, random_values(rng, code, (*stack, m, k), finite=True))
        b = laid_out(rng, random_values(rng, code, (*stack, k, n), finite=True))
        exact, tolerance = wanted("matmul", a, b)
        out = np.full(exact.shape, 5, code, order="CF"[rng.integers(2)])
        before = ours()
        assert nc.matmul(a, b, out=out) is out
        assert ours() > before or min(m, n) < 70 or k * a.itemsize > 64 or stack != ()
        assert same(out, exact, tolerance), (seed, a.strides, b.strides, out.strides)
        assert same(nc.matmul(a, b), exact, tolerance), (seed, a.strides, b.strides)


@pytest.mark.parametrize("code", "fd")
def test_short_k_of_infinities(code):
    specials = [np.inf, -np.inf, np.nan, 0, np.finfo(code).max]
    rng = np.random.default_rng(6)
    for case in range(120):
        m, k, n = int(rng.choice([5, 9, 70])), 1 + case % 16, int(rng.choice([8, 17, 70]))
        a, b = np.full((m, k), case % 2, code), np.ones((k, n), code)
        for x in (a, b)[: 1 + case % 2]:
            x.flat[rng.integers(x.size)] = specials[rng.integers(len(specials))]
        for x, y in ((a, b), (np.asfortranarray(a), np.asfortranarray(b)), (b.T, a.T)):
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(nc.matmul(x, y), np.matmul(x, y), rtol=1e-6)
            assert set(warned(nc.matmul, x, y)) <= set(warned(np.matmul, x, y))


LARGE = [((3, 400_000), (400_000, 2)), ((500_000,), (500_000,)), ((70_001, 70), (70, 3)),
         ((2, 70), (70, 70_001))]  # fmt: skip


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("a_shape", "b_shape"), LARGE)
def test_slabs_and_threads_change_no_bit(a_shape, b_shape, code):
    rng = np.random.default_rng(1)
    a = random_values(rng, code, a_shape, finite=True)
    b = random_values(rng, code, b_shape, finite=True)
    for x, y in ((a, b), (np.asfortranarray(a), np.asfortranarray(b)), (laid_out(rng, a), b)):
        results = []
        for threads in (1, 2, 5):
            nc.set_config(threads=threads)
            results.append(nc.matmul(x, y))
        assert all(np.array_equal(results[0], other) for other in results[1:])
        wide = np.matmul(x.astype("G" if code in "FD" else "g"), y)
        scale = np.matmul(abs(x).astype("g"), abs(y).astype("g"))
        assert np.all(abs(results[0] - wide) <= scale * np.finfo(code).eps * 40)


@pytest.mark.parametrize("code", CODES)
def test_errors_are_no_larger_than_numpys(code):
    # The largest of many sums; those of random values differ by chance.
    rng = np.random.default_rng(2)
    for a_shape, b_shape in (((40, 9000), (9000, 3)), ((3, 9000), (9000, 40))):
        a, b = (random_values(rng, code, shape, finite=True) for shape in (a_shape, b_shape))
        for x, y in ((a, b), (np.asfortranarray(a), np.asfortranarray(b))):
            exact = np.matmul(x.astype("G" if code in "FD" else "g"), y)
            errors = [np.linalg.norm(matmul(x, y) - exact) for matmul in (nc.matmul, np.matmul)]
            assert errors[0] <= 1.3 * errors[1]


@pytest.mark.parametrize("code", CODES)
def test_infinities_and_nans_are_numpys(code):
    specials = [np.inf, -np.inf, np.nan, 0, np.finfo(code).max]
    rng = np.random.default_rng(3)
    said = set()
    for case in range(150):
        m, k, n = int(rng.choice([1, 5, 300])), int(rng.choice([64, 67, 99])), 1 + case % 3
        a, b = np.full((m, k), case % 2, code), np.ones((k, n), code) / 64
        for x in (a, b)[: 1 + case % 2]:
            x.flat[rng.integers(x.size)] = specials[rng.integers(len(specials))]
        for x, y in ((a, b), (np.asfortranarray(a), b), (b.T.copy(), a.T.copy())):
            with np.errstate(all="ignore"):
                result, expected = nc.matmul(x, y), np.matmul(x, y)
            if code in "fd":
                np.testing.assert_allclose(result, expected, rtol=1e-5)
                # BLAS multiplies infinities with the zeros that it pads with: it warns more often.
                ours_said, numpys_said = warned(nc.matmul, x, y), warned(np.matmul, x, y)
                assert set(ours_said) <= set(numpys_said)
                if np.isnan(result).any() and not np.isnan(x).any() and not np.isnan(y).any():
                    assert ours_said == numpys_said and raised(nc.matmul, x, y)
                said.update(ours_said)
            else:
                assert np.array_equal(np.isfinite(result), np.isfinite(expected))
    assert said or code in "FD"


@pytest.mark.parametrize("code", CODES)
def test_product_with_own_transpose_stays_symmetric(code):
    for n in range(1, 9):
        a = np.random.default_rng(n).standard_normal((n, 999)).astype(code)
        for x in (a, np.asfortranarray(a)):
            product = nc.matmul(x, x.T)
            assert np.array_equal(product, product.T)


@pytest.mark.parametrize("code", CODES)
def test_ordinary_policy(code, monkeypatch):
    """Without a test's threshold: what pays is ours, and agrees with NumPy's."""
    import _numc_test

    before = _numc_test.set_parallel_threshold(0)
    try:
        rng = np.random.default_rng(4)
        for m, k, n, step, is_ours in (
            (1100, 1000, 1, 1, False),  # BLAS reads a matrix for one vector as fast
            (1100, 1000, 1, 2, True),  # and does not take this one
            (1100, 1000, 2, 1, True),
            (2, 1000, 1100, 1, True),
            (30, 20, 2, 1, False),
        ):
            a = random_values(rng, code, (m, step * k), finite=True)[:, ::step]
            b = random_values(rng, code, (k, n), finite=True)
            first = ours()
            exact, tolerance = wanted("matmul", a, b)
            assert same(nc.matmul(a, b), exact, tolerance)
            assert (ours() > first) == is_ours
    finally:
        _numc_test.set_parallel_threshold(before)


@pytest.mark.parametrize("order", "CF")
def test_one_true_product_anywhere(order):
    """Rows of bools are read in pieces: none is left out, wherever the only true product is."""
    k = 700
    each = np.arange(k)
    a, b = np.zeros((k, 5, k), bool, order), np.zeros((k, k, 5), bool)
    a[each, 0, each] = b[each, each, 1] = True
    expected = np.zeros((k, 5, 5), bool)
    expected[:, 0, 1] = True
    assert (nc.matmul(a, b) == expected).all()
    a[:, :, ::3] = True  # where b has few
    expected[::3, :, 1] = True
    assert (nc.matmul(a, b) == expected).all()
