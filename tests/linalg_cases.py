"""Calls of numpy.linalg's functions for test_linalg.py and test_fuzz.py, and what makes two results
equally good.

Results need not have NumPy's bits: what is solved or decomposed must be so within a bound of the
backward error, computed in long double; what has one answer must be NumPy's within the bound of
well-conditioned matrices, which these are.
"""

import platform
import warnings
from typing import NamedTuple

import numpy as np
from checks import layouts

from numc_ufuncs import linalg

# ---- operands: functions of (rng, stack, n) ----


def square(rng, stack, n):
    return rng.uniform(-1, 1, (*stack, n, n)) + n * np.eye(n)


def symmetric(rng, stack, n):
    a = rng.uniform(-1, 1, (*stack, n, n))
    return a + a.swapaxes(-1, -2)


def indefinite(rng, stack, n):
    """Far from singular."""
    return symmetric(rng, stack, n) + 4 * n * np.diag((-1) ** np.arange(n))


def positive(rng, stack, n):
    a = rng.uniform(-1, 1, (*stack, n, n))
    return a @ a.swapaxes(-1, -2) + n * np.eye(n)


def tall(rng, stack, n):
    return rng.uniform(-1, 1, (*stack, 2 * n + 1, n)) + np.eye(2 * n + 1, n)


def wide(rng, stack, n):
    return tall(rng, stack, n).swapaxes(-1, -2)


def vector(rng, stack, n):
    return rng.uniform(-1, 1, (n,))


def vectors(rng, stack, n):
    return rng.uniform(-1, 1, (*stack, n))


def columns(rng, stack, n):
    return rng.uniform(-1, 1, (*stack, n, 3))


def right_sides(rng, stack, n):
    """Of `tall`."""
    return rng.uniform(-1, 1, (2 * n + 1, 2))


def of_three(rng, stack, n):
    return rng.uniform(-1, 1, (*stack, 3))


def several(count):
    def matrices(rng, stack, n):
        return [rng.uniform(-1, 1, (n + i, n + i + 1)) for i in range(count)]

    return matrices


def tensor(rng, stack, n):
    return rng.uniform(-1, 1, (n, 2, n, 2)) + 2 * n * np.eye(2 * n).reshape(n, 2, n, 2)


def tensor_side(rng, stack, n):
    return rng.uniform(-1, 1, (n, 2))


class Call(NamedTuple):
    name: str
    operands: tuple
    keywords: dict
    check: str = "close"
    takes_stacks: bool = True

    def __repr__(self):
        keywords = [f"{name}={value}" for name, value in self.keywords.items()]
        return f"{self.name}({', '.join([o.__name__ for o in self.operands] + keywords)})"


def _calls():
    def add(name, *operands, check="close", takes_stacks=True, **keywords):
        calls.append(Call(name, operands, keywords, check, takes_stacks))

    calls: list[Call] = []
    add("inv", square)
    add("solve", square, columns, check="solve")
    add("solve", square, vector, check="solve")
    add("det", square)
    add("slogdet", square, check="slogdet")
    add("cholesky", positive)
    add("cholesky", positive, upper=True)
    for uplo in "LU":
        add("eigh", symmetric, UPLO=uplo, check="eigh")
        add("eigvalsh", symmetric, UPLO=uplo)
    add("eig", square, check="eig")
    add("eigvals", square, check="eigvals")
    for shape in (tall, wide, square):
        add("svd", shape, check="svd")
        add("svd", shape, full_matrices=False, check="svd")
        add("svd", shape, compute_uv=False)
        add("svdvals", shape)
        for mode in ("reduced", "complete", "r"):
            add("qr", shape, mode=mode, check="qr" if mode != "r" else "r")
        add("pinv", shape)
        add("matrix_rank", shape)
    for p in (None, 2, -2):
        add("cond", tall, p=p, check="cond")
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        add("norm", tall, ord=order, axis=(-2, -1))
        add("matrix_norm", wide, ord=order, keepdims=True)
    add("svd", symmetric, hermitian=True, check="svd")
    add("qr", tall, mode="raw", check="raw")
    add("pinv", indefinite, hermitian=True)
    add("matrix_rank", symmetric, hermitian=True)
    add("lstsq", tall, right_sides, rcond=None, takes_stacks=False)
    add("lstsq", tall, right_sides, rcond=-1, takes_stacks=False)
    for p in (1, -1, np.inf, -np.inf, "fro"):
        add("cond", square, p=p, check="cond")
    for power in (-3, 0, 1, 2, 5):
        add("matrix_power", square, n=power)
    for order in (None, 0, 1, 2, 3, np.inf, -np.inf):
        add("norm", vectors, ord=order, axis=-1)
        add("vector_norm", vectors, **({} if order is None else {"ord": order}))
    add("norm", square)
    add("norm", square, keepdims=True)
    for count in (2, 3, 4):
        add("multi_dot", several(count), takes_stacks=False)
    add("tensorsolve", tensor, tensor_side, takes_stacks=False)
    add("tensorinv", tensor, takes_stacks=False)
    add("matmul", square, columns)
    add("vecdot", vectors, vectors)
    add("cross", of_three, of_three)
    add("outer", vector, vector)
    add("tensordot", square, columns, axes=0, takes_stacks=False)
    add("trace", square)
    add("diagonal", square)
    add("matrix_transpose", tall)
    return calls


CALLS = _calls()
STACKS = ((), (1,), (3,), (0,), (70,), (2, 0, 3), (4, 25), (2, 3, 11))
SIZES = (0, 1, 2, 3, 4, 5, 8, 17)
SUPPORTED = "?bBhHiIlLqQfdFD"
OTHERS = ("e", "g", "G", "O", "M8[s]", "m8[s]", "U1", "S1")


def converted(array, dtype, rng):
    """As another dtype: complex ones get imaginary parts, which keep a matrix Hermitian."""
    if isinstance(array, list):
        return [converted(x, dtype, rng) for x in array]
    kind = np.dtype(dtype).kind
    if kind == "c":
        array = array.astype(dtype)
        if array.ndim >= 2 and array.shape[-1] == array.shape[-2]:
            part = rng.uniform(-0.1, 0.1, array.shape)
            return array + 1j * (part - part.swapaxes(-1, -2)).astype(array.real.dtype)
        return array + 1j * rng.uniform(-0.1, 0.1, array.shape).astype(array.real.dtype)
    if kind in "iu":
        return np.rint(np.abs(array) * 3).astype(dtype)
    if kind == "b":
        return array > 0.9
    if kind in "mMUS":
        return np.rint(array).astype(int).astype(dtype)
    return array.astype(dtype)


def arguments(call, dtype, stack, n, rng):
    stack = stack if call.takes_stacks else ()
    return [converted(make(rng, stack, n), dtype, rng) for make in call.operands]


class Case(NamedTuple):
    """For the fuzz."""

    call: Call
    dtype: str
    stack: tuple
    n: int
    layout: str
    values: str
    seed: int
    policy: str = "forced"


VALUES = ("plain", "plain", "plain", "large", "small", "zero", "NaN", "equal")


def random_case(choose, seed):
    return Case(
        CALLS[choose(tuple(range(len(CALLS))))],
        choose(tuple(SUPPORTED) + ("d", "f", "D", "F") * 6 + OTHERS),
        choose(STACKS),
        choose((*SIZES, 3, 4, 6, 7, 16)),
        choose(("plain", "plain", *layouts(np.ones((2, 2, 2))))),
        choose(VALUES),
        seed,
    )


def operands_of(case):
    """Operands, and whether results are determined but for rounding."""
    rng = np.random.default_rng(case.seed)
    args = arguments(case.call, case.dtype, case.stack, case.n, rng)
    first, is_regular = args[0], True
    if isinstance(first, list) or first.dtype.char not in "fdFD" or first.size == 0:
        return args, True
    if case.values in ("large", "small"):
        args[0] = first = first * first.dtype.type(2.0 ** (20 if case.values == "large" else -20))
    elif case.values != "plain" and first.ndim >= 2:
        is_regular = False
        one = first[tuple(int(rng.integers(n)) for n in first.shape[:-2])]
        if case.values == "equal":
            one[...] = np.rint(one)
            one[-1] = one[0]
        else:
            one[rng.integers(one.shape[0])] = 0 if case.values == "zero" else np.nan
    if case.layout != "plain" and first.ndim > 0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            args[0] = layouts(first)[case.layout]
        is_regular = is_regular and case.layout in ("strided", "Fortran", "unaligned", "read-only")
    return args, is_regular


# ---- a call ----


# Of complex64, of any matrix, NumPy's warn there of a division by zero that leaves no trace.
SPURIOUS_FLAGS = ("det", "slogdet") if platform.machine() == "aarch64" else ()


class Outcome:
    """What it gave or raised, and what it warned of."""

    def __init__(self, module, call, args):
        self.error, self.results, self.kind = None, (), None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                results = getattr(module, call.name)(*args, **call.keywords)
                self.kind = type(results)
                self.results = results if isinstance(results, tuple) else (results,)
            except Exception as error:
                self.error = type(error), str(error)
        self.warnings = [(w.category, str(w.message)) for w in caught]


def compare(call, args, is_regular=True):
    """Both sides, ours as good as NumPy's; with irregular operands, of one shape and dtype."""
    theirs, ours = Outcome(np.linalg, call, args), Outcome(linalg, call, args)
    assert ours.error == theirs.error
    assert ours.kind is theirs.kind
    if is_regular and (ours.warnings or call.name not in SPURIOUS_FLAGS):
        assert ours.warnings == theirs.warnings
    for a, b in zip(ours.results, theirs.results, strict=True):
        assert type(a) is type(b)
        if isinstance(b, np.ndarray | np.generic):
            assert a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides
    if theirs.error is None and is_regular:
        check_results(call, args, ours.results, theirs.results)
    return theirs


# ---- what is good ----


def precision_of(results):
    single = any(np.asarray(x).dtype.char in "fF" for x in results)
    return float(np.finfo("f" if single else "d").eps)


def wide_of(a):
    return np.asarray(a).astype(
        np.clongdouble if np.asarray(a).dtype.kind == "c" else np.longdouble
    )


def largest(a, axes):
    """Of each item, and 0 of none."""
    return np.max(np.abs(a), axis=axes, initial=0, keepdims=True)


def item_axes(a, call):
    return tuple(range(-min(a.ndim, 2), 0)) if call.takes_stacks else None


def assert_small(difference, scale, bound, what):
    size = np.max(np.abs(difference), axis=(-2, -1), initial=0)
    allowed = bound * np.max(np.abs(scale), axis=(-2, -1), initial=0)
    worst = size > allowed
    assert not np.any(worst), f"{what}: {size[worst][:3]} exceeds {allowed[worst][:3]}"


def adjoint(a):
    return a.swapaxes(-1, -2).conj()


def assert_orthonormal(q, bound):
    """Of columns."""
    q = wide_of(q)
    eye = np.eye(q.shape[-1])
    assert_small(
        adjoint(q) @ q - eye, np.broadcast_to(eye, (*q.shape[:-2], *eye.shape)), bound, "Q"
    )


def assert_close(ours, theirs, axes, bound):
    scale = largest(theirs, axes)
    if ours.dtype.kind in "fc":
        worst = np.abs(wide_of(ours) - wide_of(theirs)) > bound * scale
        assert not worst.any(), f"{ours[worst][:3]} instead of {theirs[worst][:3]}"
    else:
        np.testing.assert_array_equal(ours, theirs)


def check_solve(call, args, ours, theirs, bound):
    a, b, x = (wide_of(v) for v in (*args, ours[0]))
    if b.ndim == 1:
        b, x = b[:, None], x[..., None]
    scale = largest(a, (-2, -1)) * largest(x, (-2, -1)) + largest(b, (-2, -1))
    assert_small(a @ x - b, scale, bound, "A x - b")


def check_eigh(call, args, ours, theirs, bound):
    a = wide_of(args[0])
    half = np.tril(a, -1) if call.keywords.get("UPLO", "L") == "L" else adjoint(np.triu(a, 1))
    diagonal = np.real(np.diagonal(a, axis1=-2, axis2=-1))
    a = half + adjoint(half) + diagonal[..., None] * np.eye(a.shape[-1])
    w, v = map(wide_of, ours)
    assert np.all(np.diff(ours[0]) >= 0)
    assert_orthonormal(v, bound)
    assert_small(a @ v - v * w[..., None, :], a, bound * max(a.shape[-1], 1), "A v - v w")


def check_eig(call, args, ours, theirs, bound):
    a, w, v = map(wide_of, (args[0], *ours))
    assert_small(a @ v - v * w[..., None, :], a, bound * max(a.shape[-1], 1), "A v - v w")


def check_eigvals(call, args, ours, theirs, bound):
    a = np.asarray(args[0])
    shifted = a[..., None, :, :] - ours[0][..., None, None] * np.eye(a.shape[-1])
    least = np.linalg.svd(shifted, compute_uv=False)[..., -1:, None] if a.size else shifted
    assert_small(least[..., 0], largest(a, (-2, -1))[..., 0], bound * 10, "A - w")


# Older NumPys lose the vectors of Hermitian matrices whose values are 0; kernels find more zeros.
LOSES_VECTORS = not np.linalg.svd(np.zeros((1, 1)), hermitian=True)[2].any()


def check_svd(call, args, ours, theirs, bound):
    a, (u, s, vh) = wide_of(args[0]), map(wide_of, ours)
    k = s.shape[-1]
    assert np.all(ours[1] >= 0) and np.all(np.diff(ours[1]) <= 0)
    assert_orthonormal(u, bound)
    is_lost = LOSES_VECTORS and call.keywords.get("hermitian", False)
    assert_orthonormal(adjoint(vh[np.all(s != 0, axis=-1)] if is_lost else vh), bound)
    product = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
    assert_small(product - a, a, bound * max(*a.shape[-2:], 1), "U S V - A")


def check_qr(call, args, ours, theirs, bound):
    a, (q, r) = wide_of(args[0]), map(wide_of, ours)
    assert np.array_equal(ours[1], np.triu(ours[1]))
    assert_orthonormal(q, bound)
    assert_small(q @ r - a, a, bound * max(*a.shape[-2:], 1), "Q R - A")


def check_r(call, args, ours, theirs, bound):
    """Of columns that depend on each other R itself is not known, its product with itself is."""
    a, r = wide_of(args[0]), wide_of(ours[0])
    assert np.array_equal(r, np.triu(r))
    squared = adjoint(a) @ a
    assert_small(adjoint(r) @ r - squared, squared, bound * max(*a.shape[-2:], 1), "R^H R - A^H A")


def check_raw(call, args, ours, theirs, bound):
    h = np.swapaxes(ours[0], -1, -2)
    check_r(call, args, [np.triu(h[..., : ours[1].shape[-1], :])], theirs, bound)


def check_slogdet(call, args, ours, theirs, bound):
    assert_close(ours[0], theirs[0], None, bound)
    difference = np.abs(wide_of(ours[1]) - wide_of(theirs[1]))
    assert np.all(
        (difference <= bound * 30 * np.maximum(1, np.abs(theirs[1]))) | (ours[1] == theirs[1])
    )


def check_cond(call, args, ours, theirs, bound):
    """Of matrices that are almost singular, the reciprocal is known, to rounding."""
    small = [np.minimum(np.abs(x), 1 / np.maximum(np.abs(x), 1e-300)) for x in (ours[0], theirs[0])]
    assert np.all(np.abs(small[0] - small[1]) <= bound * 30)


CHECKS = {
    "slogdet": check_slogdet,
    "cond": check_cond,
    "solve": check_solve,
    "eigh": check_eigh,
    "eig": check_eig,
    "eigvals": check_eigvals,
    "svd": check_svd,
    "qr": check_qr,
    "r": check_r,
    "raw": check_raw,
}


def check_results(call, args, ours, theirs):
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(ours, theirs, strict=True)]
    if all(a.tobytes() == b.tobytes() for a, b in pairs):
        return
    shape = np.shape(args[0][0] if isinstance(args[0], list) else args[0])
    bound = 30 * max(*shape[-2:], 1) * precision_of(ours)
    if call.check in CHECKS:
        CHECKS[call.check](call, args, ours, theirs, bound)
        return
    for a, b in pairs:
        assert_close(a, b, item_axes(b, call), bound * 30)
