"""matmul, vecdot, matvec and vecmat against exact references.

Integers and truth values must be exact, half and long double have the bits of sums in ascending
order, in float32 for half; other floats are within what their precision allows. NUMC_FUZZ_CASES and
--hypothesis-seed work as in test_fuzz.py.
"""

import contextlib
import itertools
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from checks import STACK_BYTES
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy._core.tests import test_multiarray

import numc_ufuncs as nc
from numc_ufuncs import _core

CASES = int(os.environ.get("NUMC_FUZZ_CASES", "0"))
SHARE = 0.1
DEFAULT_CASES = 12000
INTEGERS = "bBhHiIlLqQ"
OURS = "?" + INTEGERS + "eg"  # products of nearly every size are ours
ALL = OURS + "fdFDG"
UFUNCS = ("matmul", "vecdot", "matvec", "vecmat")

pytestmark = pytest.mark.usefixtures("cpu", "three_threads")


# ---- references ----


def exact_integers(a, b, dtype):
    """Modulo 2**64 by way of 16-bit limbs in float64, whose sums of products are exact."""
    limbs = [
        [(x.astype("Q") >> np.uint64(16 * i)) & np.uint64(0xFFFF) for i in range(4)] for x in (a, b)
    ]
    total = np.uint64(0)
    for i, first in enumerate(limbs[0]):
        for j, second in enumerate(limbs[1][: 4 - i]):
            product = np.matmul(first.astype("d"), second.astype("d")).astype("Q")
            total = total + (product << np.uint64(16 * (i + j)))
    return np.asarray(total).astype(dtype)


def exact_python(a, b, dtype):
    product = np.matmul(a.astype(object), b.astype(object))
    bits = 8 * np.dtype(dtype).itemsize
    return (product % 2**bits).astype("Q").astype(dtype)


def in_order(a, b, dtype, wide):
    """Products summed in ascending order."""
    a, b = a.astype(wide), b.astype(wide)
    total = np.zeros(np.matmul(a[..., :0], b[..., :0, :]).shape, wide)
    for k in range(a.shape[-1]):
        total = total + a[..., :, k, None] * b[..., None, k, :]
    return total.astype(dtype)


def expected(a, b, dtype):
    """The product of stacks of matrices of a dtype, and how far from it a result may be."""
    code = np.dtype(dtype).char
    if code == "?":
        return np.matmul(a.astype("d"), b.astype("d")) > 0, 0
    if code in INTEGERS:
        result = exact_integers(a, b, dtype)
        if a.size * b.shape[-1] <= 500:
            assert np.array_equal(result, exact_python(a, b, dtype))
        return result, 0
    if code in "eg":
        return in_order(a, b, dtype, "f" if code == "e" else "g"), 0
    wide = "g" if code in "fd" else "G"
    exact = np.matmul(a.astype(wide), b.astype(wide))
    magnitude = np.matmul(np.abs(a).astype("g"), np.abs(b).astype("g"))
    return exact, magnitude * np.finfo(code).eps * (4 * a.shape[-1] + 4)


def as_matrices(ufunc, a, b):
    """The operands of matmul that compute the same, and what to take of its result."""
    if ufunc in ("vecdot", "vecmat"):
        a = np.conj(a)[..., None, :] if a.dtype.char in "FDG" else a[..., None, :]
    if ufunc in ("vecdot", "matvec"):
        b = b[..., :, None]
    index = {
        "matmul": (...,),
        "vecdot": (..., 0, 0),
        "matvec": (..., 0),
        "vecmat": (..., 0, slice(None)),
    }
    return a, b, index[ufunc]


# ---- operands ----


def random_length(rng):
    most = (2, 5, 20, 70, 300)[rng.choice(5, p=(0.15, 0.3, 0.3, 0.2, 0.05))]
    return int(rng.integers(0 if rng.integers(8) == 0 else 1, most + 1))


def random_values(rng, code, shape, finite=False):
    n = int(np.prod(shape, dtype=int))
    if code == "?":
        return (rng.random(n) < (0.5, 0.02, 0.3)[rng.integers(3)]).reshape(shape)
    if code in INTEGERS:
        if rng.integers(2):
            return np.frombuffer(rng.bytes(n * np.dtype(code).itemsize), code).reshape(shape)
        return rng.integers(0, 100, shape).astype(code)
    values = rng.standard_normal(shape) * (1, 30, 0.01)[rng.integers(3)]
    if code in "FDG":
        values = values + 1j * rng.standard_normal(shape)
    values = values.astype(code)
    if code in "eg" and n and not finite and rng.integers(4) == 0:
        values.flat[rng.integers(n)] = (np.inf, -np.inf, np.nan, -0.0)[rng.integers(4)]
    return values


def laid_out(rng, values):
    """The same values, somewhere else, with other strides."""
    order = rng.permutation(values.ndim) if rng.integers(2) else np.arange(values.ndim)
    steps = [
        (1, 1, 2, 3, -1, -2)[i] for i in rng.integers(6 if rng.integers(2) else 1, size=values.ndim)
    ]
    turned = values.transpose(order)
    room = np.zeros(
        [n * abs(s) + 1 for n, s in zip(turned.shape, steps, strict=True)], values.dtype
    )
    at = (slice(0, n * abs(s), abs(s)) for n, s in zip(turned.shape, steps, strict=True))
    view = room[(*at,)][(*(slice(None, None, 1 if s > 0 else -1) for s in steps),)]
    view[...] = turned
    return view.transpose(np.argsort(order))


def random_operands(rng, ufunc, codes):
    m, k, n = (random_length(rng) for _ in range(3))
    stack = ((), (), (), (3,), (2, 3), (40,))[rng.integers(6)] if m * k * n < 40000 else ()
    cores = {"matmul": ((m, k), (k, n)), "vecdot": ((k,), (k,)), "matvec": ((m, k), (k,))}
    shapes = cores.get(ufunc, ((k,), (k, n)))
    finite = np.result_type(*codes).char not in OURS
    operands = []
    for core, code in zip(shapes, codes, strict=True):
        kept = tuple(1 if rng.integers(3) == 0 else length for length in stack)
        kept = kept[rng.integers(len(kept) + 1) :] if rng.integers(3) == 0 else kept
        operands.append(laid_out(rng, random_values(rng, code, kept + core, finite)))
    if ufunc == "matmul" and codes[0] == codes[1] and rng.integers(6) == 0:
        operands[1] = np.swapaxes(operands[0], -1, -2)
    return operands


def random_out(rng, shape, dtype, operands):
    """None, an array, or one that overlaps an operand; operands may be moved for it."""
    style = rng.integers(6)
    if style < 3 or shape == ():
        return None
    out = laid_out(rng, np.zeros(shape, dtype))
    which = int(rng.integers(2))
    if style == 5 and operands[which].dtype == dtype:
        operand = operands[which]
        room = np.zeros(operand.size + out.size + 8, dtype)
        first, second = rng.integers(8, size=2)
        moved = room[first : first + operand.size].reshape(operand.shape)
        moved[...] = operand
        operands[which] = moved
        out = room[second : second + out.size].reshape(shape)
    return out


@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("dtype", "fdFDl")
def test_outputs_with_gaps(name, dtype):
    # NumPy's own vecmat of complex numbers fills the gaps.
    rng = np.random.default_rng(1)
    shapes = {"matmul": ((10, 9), (9, 10)), "vecdot": ((5, 9), (9,)), "matvec": ((10, 9), (3, 9))}
    a, b = ((rng.normal(size=n) * 8).astype(dtype) for n in shapes.get(name, ((3, 9), (9, 10))))
    if dtype in "FD":
        a += 1j * a[::-1]
    expected = getattr(nc, name)(a, b)
    room = np.zeros((*expected.shape, 2), dtype)
    assert getattr(nc, name)(a, b, out=room[..., 0]) is not None
    np.testing.assert_allclose(room[..., 0], expected, rtol=1e-4)
    assert not room[..., 1].any()


@pytest.mark.parametrize("dtype", "dFl")
def test_stacks_of_long_vectors(dtype):
    rng = np.random.default_rng(2)
    rows = (rng.normal(size=(3, 9_500)) * 9).astype(dtype)
    matrices = (rng.normal(size=(3, 9_500, 2)) * 9).astype(dtype)
    expected = (rows.conj()[:, None, :] @ matrices)[:, 0]
    np.testing.assert_allclose(nc.vecmat(rows, matrices), expected, rtol=1e-3)
    expected = (matrices.swapaxes(1, 2) @ rows[..., None])[..., 0]
    np.testing.assert_allclose(nc.matvec(matrices.swapaxes(1, 2), rows), expected, rtol=1e-3)


def with_axes(rng, ufunc, operands, out_ndim):
    """Operands whose core axes are elsewhere, and the keyword that says where."""
    cores = {"matmul": (2, 2, 2), "vecdot": (1, 1, 0), "matvec": (2, 1, 1), "vecmat": (1, 2, 1)}
    places = []
    for ndim, core in zip((*(o.ndim for o in operands), out_ndim), cores[ufunc], strict=True):
        places.append(tuple(int(p) for p in rng.permutation(ndim)[:core]))
    for i in range(2):
        sources = tuple(range(-len(places[i]), 0))
        operands[i] = np.moveaxis(operands[i], sources, places[i])
    return places


def same(ours, wanted, tolerance):
    with np.errstate(all="ignore"):
        if np.ndim(tolerance) or tolerance:
            return np.all(np.abs(ours - wanted) <= tolerance)
        return np.array_equal(ours, wanted, equal_nan=wanted.dtype.kind in "fc")


def check(seed):
    rng = np.random.default_rng(seed)
    ufunc = UFUNCS[rng.choice(4, p=(0.7, 0.1, 0.1, 0.1))]
    codes = [ALL[rng.integers(len(ALL))]] * 2
    if rng.integers(4) == 0:
        codes[1] = ALL[rng.integers(len(ALL))]
    operands = random_operands(rng, ufunc, codes)
    dtype = np.result_type(*codes)
    casts = [o.astype(dtype) for o in operands]
    a, b, index = as_matrices(ufunc, *casts)
    with np.errstate(all="ignore"):
        wanted, tolerance = (np.asarray(x) for x in expected(a, b, dtype))
        wanted = wanted[index]
        tolerance = tolerance[index] if tolerance.ndim else tolerance[()]
        keywords = {}
        out = random_out(rng, wanted.shape, dtype, operands)
        if out is not None:
            keywords["out"] = out
        elif (
            ufunc == "vecdot"
            and rng.integers(2)
            and min(o.ndim for o in operands) == operands[0].ndim
        ):
            axis = int(rng.integers(operands[0].ndim)) - operands[0].ndim
            if operands[1].ndim == operands[0].ndim:
                operands = [np.moveaxis(o, -1, axis) for o in operands]
                keywords = {"axis": axis, "keepdims": True}
                wanted, tolerance = (
                    np.expand_dims(x, axis) if np.ndim(x) else x for x in (wanted, tolerance)
                )
                wanted = wanted.reshape([1]) if wanted.ndim == 0 else wanted
        elif rng.integers(4) == 0:
            places = with_axes(rng, ufunc, operands, wanted.ndim)
            keywords["axes"] = places
            core = len(places[2])
            sources = tuple(range(-core, 0))
            wanted = np.moveaxis(wanted, sources, places[2])
            tolerance = (
                np.moveaxis(tolerance, sources, places[2]) if np.ndim(tolerance) else tolerance
            )
        before = _core.matmuls()[0]
        result = getattr(nc, ufunc)(*operands, **keywords)
        taken = _core.matmuls()[0] - before
    assert result.dtype == dtype and np.shape(result) == wanted.shape
    assert out is None or result is out
    assert same(result, wanted, tolerance), (seed, ufunc, codes, [o.shape for o in operands])
    work = a.shape[-2] * a.shape[-1] * b.shape[-1]
    few_halves = dtype.char == "e" and (work <= 128 or a.shape[-2] * b.shape[-1] < 8)
    is_sum = a.shape[-2] * b.shape[-1] == 1  # which may be NumPy's
    is_ours = work > (256 if b.shape[-1] == 1 else 100) and not few_halves and not is_sum
    if dtype.char in OURS[1:] and np.size(result) and is_ours:
        assert taken, (seed, ufunc, codes)


# ---- tests ----


@settings(
    max_examples=int((CASES or DEFAULT_CASES) * SHARE),
    derandomize=CASES < DEFAULT_CASES,
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(st.integers(0, 2**63 - 1))
def test_random_products(seed):
    check(seed)


@pytest.mark.usefixtures("extension")
@pytest.mark.parametrize("isa", _core.isas()[1])
def test_every_instruction_set(isa):
    """In a process of its own, as the choice is made at import."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "import _numc_test, test_matmul as t, numc_ufuncs as nc;"
        "assert nc._core.isas()[0] == sys.argv[2], nc._core.isas();"
        "nc.set_config(threads=3); _numc_test.set_parallel_threshold(1);"
        "[t.check(seed) for seed in range(300)];"
        "[t.check_large(code) for code in t.OURS]"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__), isa],
        env={**os.environ, "NUMC_ISA": isa},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def check_large(code):
    """Several blocks, and more than one chunk of k."""
    rng = np.random.default_rng(3)
    for m, k, n in ((301, 299, 307), (3, 5000, 70), (70, 9000, 2), (500, 7, 1100)):
        if code == "g" and m * k * n > 10**7:
            continue
        a, b = random_values(rng, code, (m, k)), random_values(rng, code, (k, n))
        with np.errstate(all="ignore"):
            assert same(nc.matmul(a, b), *expected(a, b, code)), (code, m, k, n)


@pytest.mark.parametrize("code", OURS)
def test_large(code):
    check_large(code)


def scattered(matrix):
    """The same elements, apart in every direction."""
    apart = np.zeros((3, *matrix.shape[::-1], 2), matrix.dtype)
    apart[1, ..., 1] = matrix.T
    return apart[1, ..., 1].T


@pytest.mark.parametrize("density", [0.95, 0.5, 0.03, 0.0])
def test_bools_that_lie_apart(density):
    """More columns, and more k, than are decided at once; and so few that all are. The first k
    decide all of a product, or all but one row."""
    rng = np.random.default_rng(7)
    shapes = [(4, 34, 385), (2, 300, 600), (1, 9, 258), (32, 82, 17), (40, 300, 64), (20, 256, 9)]
    shapes += [(37, 24, 70), (8, 8, 8), (12, 17, 10), (10, 17, 12), (60, 5, 3), (3, 5, 60)]
    for m, k, n in shapes * 2:
        a, b = (rng.random(shape) < density for shape in ((m, k), (k, n)))
        a[m // 2] &= rng.random() < 0.5
        a[-1, -1] = b[-1, -1] = True
        expected = a.astype(int) @ b.astype(int) > 0
        lefts = a, np.asfortranarray(a), scattered(a)
        rights = b, np.asfortranarray(b), scattered(b)
        for threads in (1, 3):
            for left, right in itertools.product(lefts, rights):
                with nc.config(threads=threads):
                    np.testing.assert_array_equal(nc.matmul(left, right), expected)
                    stack = np.broadcast_to(left, (3, *left.shape)), np.stack([right] * 3)
                    np.testing.assert_array_equal(nc.matmul(*stack), [expected] * 3)


@pytest.mark.parametrize("long", [slice(0, 0), slice(None), slice(50, None), slice(0, 1)])
@pytest.mark.parametrize(("m", "apart"), [(3, False), (1, False), (1, True)])
def test_stacks_of_bools_that_end_at_once_or_not(m, apart, long, workers_come):
    """What a stack takes is found out as it is computed: some products first, then the others."""
    a, b = np.ones((700, m, 3000), bool), np.ones((700, 3000), bool)
    b[long, :-1] = False
    b[::7] = False
    expected = np.broadcast_to(b.any(axis=-1, keepdims=True), (700, m))
    if apart:
        a = np.repeat(a, 2, 2)[..., ::2]
    for threads in (1, 3):
        with nc.config(threads=threads):
            out = ~expected[..., None]
            nc.matmul(a, b[..., None], out=out)
            np.testing.assert_array_equal(out[..., 0], expected)
            if m == 1:
                out = ~expected[:, 0]
                nc.vecdot(a[:, 0], b, out=out)
                np.testing.assert_array_equal(out, expected[:, 0])


def test_small_stacks_of_threads():
    """STACK_BYTES are enough, as for NumPy's own loops. In a process of its own: it would crash."""
    code = (
        "import threading, numpy as np, numc_ufuncs as nc\n"
        "def products():\n"
        "    for code in '?bhlqeg':\n"
        "        for m, k, n in ((3, 3, 3), (20, 20, 20), (90, 70, 3), (130, 140, 150)):\n"
        "            a, b = np.ones((2, m, k), code), np.ones((2, k, n), code)\n"
        "            for x in (a, np.asfortranarray(a), np.repeat(a, 2, 2)[..., ::2]):\n"
        "                for y in (b, np.asfortranarray(b)):\n"
        "                    done.append(nc.matmul(x, y).shape)\n"
        "done = []\n"
        f"threading.stack_size({STACK_BYTES})\n"
        "for threads in (1, 2):\n"
        "    nc.set_config(threads=threads)\n"
        "    thread = threading.Thread(target=products)\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "assert len(done) == 2 * 7 * 4 * 6, len(done)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("code", "?" + INTEGERS)
def test_thin(code):
    rng = np.random.default_rng(5)
    for m, k, n in (
        (90, 700, 1),
        (77, 300, 3),
        (301, 64, 2),
        (80, 65, 16),
        (50, 63, 4),
        (6, 20, 3),
    ):
        for _ in range(4):
            a, b = random_values(rng, code, (m, k)), random_values(rng, code, (k, n))
            wanted = expected(a, b, code)
            for x in (a, laid_out(rng, a), np.asfortranarray(a)):
                for y in (b, laid_out(rng, b), np.asfortranarray(b)):
                    assert same(nc.matmul(x, y), *wanted), (code, m, k, n)
                    assert same(nc.matmul(y.T, x.T).T, *wanted), (code, m, k, n)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("code", OURS)
@pytest.mark.parametrize("shape", [(37, 70, 45), (130, 260, 200), (400, 3, 5), (2, 900, 300)])
def test_result_is_independent_of_threads(code, shape, regions):
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = random_values(rng, code, (m, k)), random_values(rng, code, (k, n))
    stack = random_values(rng, code, (20, 9, 11))
    results = []
    for threads in (1, 2, 3, 7, 16):
        nc.set_config(threads=threads)
        with np.errstate(all="ignore"):
            results.append((nc.matmul(a, b), nc.matmul(stack, np.swapaxes(stack, 1, 2))))
    assert regions() > 0
    for result in results[1:]:
        for one, other in zip(result, results[0], strict=True):
            assert np.array_equal(one, other, equal_nan=code in "eg")


@pytest.mark.parametrize("code", ALL)
@pytest.mark.parametrize("n", [1, 3, 8, 17, 31, 33, 70, 190])
def test_product_with_own_transpose_is_symmetric(code, n):
    rng = np.random.default_rng(n)
    for k in (1, 4, 17, 29, 150):
        a = rng.standard_normal((n, k)) * 50
        a = (a > 40) if code == "?" else a.astype(np.int64).astype(code) if code in INTEGERS else a
        a = a.astype(code)
        for operand in (a, np.asfortranarray(a), np.repeat(a, 2, 0)[::2]):
            with np.errstate(all="ignore"):
                product = nc.matmul(operand, operand.T)
            assert np.array_equal(product, product.T), (code, n, k)


def warned(function, *operands):
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        function(*operands)
    return sorted(str(w.message) for w in caught)


def raised(function, *operands):
    with np.errstate(all="raise"), contextlib.suppress(FloatingPointError):
        function(*operands)
        return False
    return True


@pytest.mark.parametrize("code", "eg")
def test_floating_point_errors_are_numpys(code):
    limits = np.finfo(code)
    specials = [np.inf, -np.inf, np.nan, limits.max, limits.tiny, limits.smallest_subnormal, 0, 1]
    rng = np.random.default_rng(5)
    kinds = set()
    for case in range(300):
        m, k, n = (int(length) for length in rng.integers(1, (40, 12, 40)))
        a, b = np.full((m, k), case % 2, code), np.ones((k, n), code) / 64
        for x in (a, b):
            x.flat[rng.integers(x.size)] = np.array(specials[rng.integers(8)], code)
        said = warned(np.matmul, a, b)
        kinds.update(said)
        assert warned(nc.matmul, a, b) == said, case
        assert raised(nc.matmul, a, b) == raised(np.matmul, a, b)
    assert len(kinds) >= (3 if code == "e" else 2), kinds


@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("code", ALL)
def test_against_numpys(name, code):
    if not hasattr(np, name):
        pytest.skip(f"NumPy {np.__version__} has no {name}")
    rng = np.random.default_rng(2)
    shapes = {"matmul": ((7, 40), (40, 9)), "vecdot": ((7, 40), (7, 40))}
    shapes |= {"matvec": ((7, 40), (40,)), "vecmat": ((40,), (40, 9))}
    a, b = (random_values(rng, code, shape) for shape in shapes[name])
    with np.errstate(all="ignore"):
        ours, theirs = getattr(nc, name)(a, b), getattr(np, name)(a, b)
    assert ours.dtype == theirs.dtype
    if code in OURS:
        assert np.array_equal(ours, theirs, equal_nan=code in "eg")
    else:
        assert np.allclose(ours, theirs, rtol=1e-4 if code in "fF" else 1e-12)


def test_conjugation():
    a, b = np.array([[1 + 2j, 3j], [2, 1 - 1j]]), np.array([1 - 1j, 2 + 5j])
    assert np.allclose(nc.vecdot(b, a), (np.conj(b) * a).sum(-1))
    assert np.allclose(nc.vecmat(b, a), np.conj(b) @ a)
    assert np.allclose(nc.matvec(a, b), a @ b)
    c = b.astype(object)
    assert nc.vecdot(c, c) == 31


def test_core_dimensions_must_match():
    for name, shapes in (
        ("matvec", ((2, 3), (2,))),
        ("vecmat", ((3,), (2, 3))),
        ("vecdot", ((3,), (2,))),
    ):
        with pytest.raises(ValueError, match="core dimension"):
            getattr(nc, name)(*map(np.ones, shapes))


def test_no_terms_give_zeros():
    for code in ALL:
        out = np.ones((2, 3, 4), code)
        assert not nc.matmul(np.ones((2, 3, 0), code), np.ones((0, 4), code), out=out).any()
        assert not out.any()
        assert not nc.matvec(np.ones((3, 0), code), np.ones(0, code)).any()


class TestNumpysOwn(test_multiarray.TestMatmul):
    """NumPy's tests of matmul, run on ours."""

    matmul = nc.matmul


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "int64"])
def test_stacks_along_the_nearest_axis(dtype):
    rng = np.random.default_rng(3)
    for shape in [(50, 130, 67), (3, 150, 97), (5, 210, 193), (2, 9, 8)]:
        a = np.asfortranarray(rng.integers(0, 100, shape).astype(dtype))
        b = np.asfortranarray(rng.integers(0, 100, (shape[0], shape[2], 2)).astype(dtype))
        np.testing.assert_array_equal(nc.matmul(a, b), np.matmul(a, b))


@pytest.mark.parametrize("code", ALL)
def test_stacks_of_wide_matrices(code):
    rng = np.random.default_rng(4)
    for m, k, n in [(5, 5, 967), (15, 2, 1531), (4, 7, 3333), (9, 3, 193), (7, 1, 6145)]:
        a = rng.integers(0, 5, (3, m, k)).astype(code)
        b = rng.integers(0, 5, (3, k, n + 3)).astype(code)[..., 3:]
        np.testing.assert_array_equal(nc.matmul(a, b), np.matmul(a, b))
