"""numc_ufuncs.linalg, and numpy.linalg under a patch, compared with NumPy's."""

import inspect
import pickle
import subprocess
import sys
import threading
import types
import warnings

import _numc_test
import numpy as np
import pytest
from checks import in_thread_of_small_stack, layouts, status_of_child
from linalg_cases import (
    CALLS,
    OTHERS,
    SIZES,
    STACKS,
    SUPPORTED,
    Call,
    Outcome,
    arguments,
    compare,
    converted,
    positive,
    square,
    symmetric,
)

import numc_ufuncs as nc
from numc_ufuncs import linalg

NAMES = [name for name in linalg.__all__ if name != "LinAlgError"]
GUFUNCS = nc._ufuncs.linalg_ufuncs()


def random(*key):
    """A generator of its own for each case."""
    return np.random.default_rng([*map(ord, str(key))])


# ---- the module ----


def test_every_function_is_compared():
    assert {call.name for call in CALLS} == set(NAMES)
    assert set(np.linalg._linalg.__all__) == set(linalg.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_is_a_function_like_numpys(name):
    ours, theirs = getattr(linalg, name), getattr(np.linalg, name)
    assert ours is not theirs and type(ours) is types.FunctionType
    assert (ours.__name__, ours.__qualname__, ours.__module__) == (name, name, linalg.__name__)
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert f"numpy.linalg.{name}" in ours.__doc__
    assert ours.__doc__.partition("\n")[0] == theirs.__doc__.strip().partition("\n")[0]
    assert pickle.loads(pickle.dumps(ours)) is ours is getattr(nc.linalg, name)


def test_names():
    assert linalg.LinAlgError is np.linalg.LinAlgError
    assert set(linalg.__all__) <= set(dir(linalg)) and "linalg" in dir(nc)
    assert nc.linalg is linalg
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        _ = linalg.nosuch
    with pytest.raises(AttributeError, match="no attribute '_umath_linalg'"):
        _ = linalg._umath_linalg


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_is_imported_when_it_is_used():
    loaded = "'numc_ufuncs.linalg' in sys.modules"
    assert run(f"import sys, numc_ufuncs as nc; nc.patch_numpy(); print({loaded})") == ["False"]
    assert run(f"import sys, numc_ufuncs as nc; nc.linalg.inv; print({loaded})") == ["True"]
    assert run("import numc_ufuncs.linalg as l; print(l.inv([[2.0]])[0, 0])") == ["0.5"]
    assert run("from numc_ufuncs.linalg import det; print(det([[2.0]]))") == ["2.0"]
    assert run("from numc_ufuncs.linalg import *; print(det([[2.0]]))") == ["2.0"]
    assert run("from numc_ufuncs import *; print(linalg.det([[2.0]]))") == ["2.0"]


@pytest.mark.parametrize(
    "change",
    [
        "del L._umath_linalg",
        "L._umath_linalg = None",
        "del L.inv",
        "L.inv = len",
        "import types; L.inv = types.SimpleNamespace(_implementation=len)",
        "sys.modules['numpy.linalg._linalg'] = None",
        "sys.modules['numpy.linalg._umath_linalg'] = None",
    ],
)
def test_a_numpy_whose_module_is_another(change):
    """Then a function is NumPy's own."""
    code = (
        "import sys, numpy as np; L = np.linalg._linalg; kept = dict(vars(L)); "
        f"{change}; import numc_ufuncs as nc; from numc_ufuncs.linalg import inv; "
        "vars(L).update(kept); nc.patch_numpy(); "
        "print(inv(np.full((1, 1), 2.0))[0, 0], np.linalg.inv([[4.0]])[0, 0])"
    )
    assert run(code) == ["0.5", "0.25"]


# ---- results ----


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_dtypes(call):
    for dtype in (*SUPPORTED, *OTHERS):
        compare(call, arguments(call, dtype, (70,), 3, random(call, dtype)))


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_shapes(call):
    for dtype in "dF":
        shapes = [(stack, n) for stack in STACKS for n in (0, 3)] * call.takes_stacks
        for stack, n in (*shapes, *(((70,), n) for n in SIZES)):
            compare(call, arguments(call, dtype, stack, n, random(call, dtype, stack, n)))


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("call", [c for c in CALLS if c.takes_stacks], ids=str)
def test_layouts(call):
    for n in (2, 4):
        args = arguments(call, "d", (70,), n, random(call, n))
        for position, plain in enumerate(args):
            for other in layouts(plain).values():
                compare(call, [*args[:position], other, *args[position + 1 :]])


@pytest.mark.usefixtures("threads_always", "policy")
@pytest.mark.parametrize("name", ["inv", "solve", "eigh", "svd", "qr"])
def test_under_each_policy(name):
    for call in CALLS:
        if call.name == name:
            for n in (3, 4, 20):
                compare(call, arguments(call, "d", (200,), n, random(call, n)))


CALL_OF = {call.name: call for call in reversed(CALLS)}
BASIC = ["inv", "solve", "det", "slogdet", "cholesky", "eigh", "eig", "svd", "qr", "pinv"]


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("name", BASIC)
def test_matrices_in_other_axes(name):
    a = positive(random(name), (4, 50), 3)
    for axes in ((2, 3, 0, 1), (1, 0, 3, 2), (2, 0, 3, 1)):
        args = arguments(CALL_OF[name], "d", (4, 50), 3, random(name))
        compare(
            CALL_OF[name],
            [np.ascontiguousarray(a.transpose(axes)).transpose(np.argsort(axes)), *args[1:]],
        )


@pytest.mark.usefixtures("threads_always")
def test_solve_broadcasts():
    rng = random("broadcast")
    solve = CALL_OF["solve"]
    for stack_a, stack_b in (
        ((), (90,)),
        ((90,), ()),
        ((90, 1), (5,)),
        ((3, 1, 4), (30, 1)),
        ((2,), (3,)),
        ((0, 1), (5,)),
    ):
        compare(solve, [square(rng, stack_a, 3), rng.uniform(size=(*stack_b, 3, 2))])
    compare(solve, [square(rng, (90,), 3), rng.uniform(size=(90, 3))])


WRONG = {
    "no matrix": np.ones(3),
    "a number": np.float64(2),
    "not square": np.ones((70, 2, 3)),
    "not square, empty": np.ones((70, 0, 3)),
    "no columns": np.ones((70, 3, 0)),
    "empty stack": np.ones((0, 3, 3)),
    "empty stack, not square": np.ones((0, 3, 2)),
    "None": None,
    "text": "abc",
    "ragged": [[1, 2], [3]],
    "set": {1, 2},
}


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_wrong_operands(call):
    plain = arguments(call, "d", (70,), 3, random(call))
    for position in range(len(plain)):
        for value in WRONG.values():
            compare(call, [*plain[:position], value, *plain[position + 1 :]])
    compare(call, plain[1:])
    compare(call, [*plain, 1, 2, 3, 4, 5])
    compare(call._replace(keywords={**call.keywords, "nosuch": 1}), plain)


def test_wrong_keywords():
    a = positive(random("wrong"), (70,), 3)
    for name, keywords in (
        ("eigh", {"UPLO": "X"}),
        ("eigvalsh", {"UPLO": 1}),
        ("qr", {"mode": "nosuch"}),
        ("qr", {"mode": "full"}),
        ("qr", {"mode": "economic"}),
        ("cond", {"p": 7}),
        ("norm", {"ord": "nosuch"}),
        ("norm", {"axis": 9}),
        ("norm", {"axis": (0, 0)}),
        ("matrix_power", {"n": 1.5}),
        ("matrix_power", {}),
        ("pinv", {"rcond": 1e-3, "rtol": 1e-3}),
        ("lstsq", {"b": a[0], "rcond": "x"}),
        ("cholesky", {"upper": 1}),
        ("svd", {"hermitian": True, "compute_uv": False}),
    ):
        compare(Call(name, (), keywords), [a])
    compare(Call("multi_dot", (), {}), [5])
    compare(Call("multi_dot", (), {}), [[a[0]]])
    compare(Call("multi_dot", (), {}), [(a[0] for _ in range(3))])
    compare(Call("multi_dot", (), {"out": np.empty((3, 3))}), [[a[0]] * 3])
    compare(Call("multi_dot", (), {"out": np.empty((3, 3), int)}), [[a[0]] * 3])


def test_warnings_name_the_line_of_the_caller():
    for module in (np.linalg, linalg):
        with pytest.warns(DeprecationWarning, match="'full'") as caught:
            module.qr(np.eye(2), mode="full")
        assert caught[0].filename == __file__


@pytest.mark.parametrize("dtype", ["i8", "e", "?"])
def test_products_without_blas_are_ours(dtype):
    a = np.ones((60, 60), dtype)
    before = nc._core.short_calls()[4]
    linalg.multi_dot([a, a, a])
    linalg.matrix_power(a, 3)
    assert nc._core.short_calls()[4] - before == 4
    compare(Call("multi_dot", (), {}), [[a, a, a]])


# ---- what is irregular ----


def with_one_bad(kind, stack, n):
    a = positive(random(kind, n), (stack,), n)
    at = a[stack // 2]
    if kind == "zero row":
        at[n // 2] = 0
    elif kind == "zeros":
        at[...] = 0
    elif kind == "equal rows":
        at[...] = np.rint(at)
        at[-1] = at[0]
    elif kind == "negative":
        at[...] = -at
    elif kind == "indefinite":
        at[-1, -1] = -1e3
    else:
        at[n // 2, 0] = float(kind)
    return a


# LAPACK's singular value decomposition never ends with infinities.
BY_SVD = ("svd", "svdvals", "pinv", "cond", "matrix_rank")
IRREGULAR = ["zero row", "zeros", "equal rows", "negative", "indefinite", "nan", "inf", "-inf"]


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("kind", IRREGULAR)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("name", [*BASIC, "eigvals", "eigvalsh", "svdvals", "cond", "matrix_rank"])
def test_one_irregular_matrix_of_a_stack(name, n, kind):
    """The whole call fails, or that matrix alone has no result; flags are handled as before."""
    if name in BY_SVD and "inf" in kind:
        return
    before = np.geterr()
    for stack in (1, 90):
        a = with_one_bad(kind, stack, n)
        for dtype in "fdFD":
            args = [a.astype(dtype), *([np.ones((n, 2), dtype)] if name == "solve" else [])]
            call = CALL_OF[name]._replace(keywords={})
            with np.errstate(all="warn"):
                theirs = compare(call, args, is_regular=False)
                if theirs.error is None:
                    others = np.arange(stack) != stack // 2
                    rest = [args[0][others], *args[1:]]
                    ours = Outcome(linalg, call, args)
                    both = zip(Outcome(linalg, call, rest).results, ours.results, strict=True)
                    for x, y in both:
                        np.testing.assert_array_equal(y[others], x)
                    assert_same_finiteness(name, dtype, ours, theirs)
    assert np.geterr() == before


def assert_same_finiteness(name, dtype, ours, theirs):
    for x, y in zip(ours.results, theirs.results, strict=True):
        if name == "cond":  # of singular matrices it is infinite, or what rounding errors are
            x, y = (np.where(z > 0.01 / np.finfo(dtype).eps, np.inf, z) for z in (x, y))
        assert np.array_equal(np.isfinite(x).all(), np.isfinite(y).all())


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("inv", "Singular matrix"),
        ("solve", "Singular matrix"),
        ("cholesky", "Matrix is not positive definite"),
        ("eigh", "Eigenvalues did not converge"),
        ("eigvals", "Array must not contain infs or NaNs"),
        ("svd", "SVD did not converge"),
    ],
)
def test_errors(name, text):
    a = np.zeros((1000, 3, 3)) if "Sing" in text or "pos" in text else np.full((1000, 3, 3), np.nan)
    args = [a, *([np.ones((3, 1))] if name == "solve" else [])]
    for module in (np.linalg, linalg):
        with pytest.raises(np.linalg.LinAlgError, match=f"^{text}$"):
            getattr(module, name)(*args)


PATTERNS = {
    "first": slice(1),
    "last": slice(-1, None),
    "three in a row": slice(40, 43),
    "a hundred in a row": slice(20, 120),
    "every other": slice(None, None, 2),
    "all": slice(None),
}


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("dtype", "fdFD")
def test_matrices_that_kernels_leave(pattern, dtype):
    """They are LAPACK's, wherever they are: singular ones, infinities, very large ones."""
    patterns = PATTERNS[pattern]
    for n in (2, 3, 4, 7):
        plain = np.rint(positive(random(pattern, n), (150,), n) * 4).astype(dtype)
        singular, infinite, large = plain.copy(), plain.copy(), plain.copy()
        singular[patterns, -1] = singular[patterns, 0]
        infinite[patterns, 0, 0] = np.inf
        large[patterns] *= 2.0 ** (100 if dtype in "fF" else 900)
        for a, names in (
            (singular, ("slogdet", "det")),
            (infinite, ("slogdet", "det")),
            (large, ("inv", "cholesky", "slogdet", "det")),
        ):
            for name in names:
                with np.errstate(all="ignore"):
                    ours, theirs = getattr(linalg, name)(a), getattr(np.linalg, name)(a)
                if name == "slogdet":
                    ours, theirs = np.stack(ours, axis=-1), np.stack(theirs, axis=-1)
                assert_each_close(ours, theirs, 2e3 * np.finfo(dtype).eps)


def assert_each_close(ours, theirs, tolerance):
    with np.errstate(all="ignore"):
        size = np.max(np.abs(theirs), axis=tuple(range(1, theirs.ndim)), keepdims=True)
        close = np.abs(ours - theirs) <= tolerance * np.minimum(size, np.finfo("d").max)
    both_nan = np.isnan(ours) & np.isnan(theirs)
    assert np.all(close | (ours == theirs) | both_nan)


def hilbert(n):
    return 1 / (np.arange(n)[:, None] + np.arange(n) + 1.0)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 12])
@pytest.mark.parametrize("dtype", "fdFD")
def test_ill_conditioned_matrices_are_solved_backward_stably(n, dtype):
    """Whatever the condition, each system is solved for matrices next to those given."""
    rng = random(n, dtype)
    eps = float(np.finfo(dtype).eps)
    scales = np.logspace(-8, 8, n)
    families = [
        np.broadcast_to(hilbert(n), (80, n, n)) + rng.uniform(-1, 1, (80, n, n)) * 1e-9,
        rng.uniform(-1, 1, (80, n, n)) * scales,
        rng.uniform(-1, 1, (80, n, n)) * scales[:, None],
        rng.uniform(-1, 1, (80, n, n)) * 10.0 ** rng.integers(-18, 18, (80, 1, 1)),
        rng.uniform(-1, 1, (80, n, 1)) * rng.uniform(-1, 1, (80, 1, n)) + 1e-10 * np.eye(n),
    ]
    for a in families:
        a = a.astype(dtype)
        b = rng.uniform(-1, 1, (80, n, 2)).astype(dtype)
        wide = a.astype("G" if dtype in "FD" else "g")
        for right in (b, np.broadcast_to(np.eye(n, dtype=dtype), a.shape)):
            x = (linalg.solve(a, b) if right is b else linalg.inv(a)).astype(wide.dtype)
            if not np.isfinite(x).all():
                assert not np.isfinite(np.linalg.inv(a)).all()
                continue
            residual = np.abs(wide @ x - right).max(axis=(-2, -1))
            size = np.abs(wide).sum(axis=-1).max(axis=-1) * np.abs(x).max(axis=(-2, -1))
            assert np.all(residual <= 20 * n * eps * (size + 1))
        s = a @ a.swapaxes(-1, -2).conj()
        size = np.abs(s).max(axis=(-2, -1))
        w, v = linalg.eigh(s)
        assert np.all(np.diff(w) >= 0)
        residual = np.abs(s @ v.astype(wide.dtype) - v * w[:, None].astype("g")).max(axis=(-2, -1))
        assert np.all(residual <= 50 * n * eps * size)
        unit = np.abs(v.swapaxes(-1, -2).conj().astype(wide.dtype) @ v - np.eye(n))
        assert unit.max() <= 50 * n * eps
        assert np.all(np.abs(linalg.eigvalsh(s) - w) <= 50 * n * eps * size[:, None])


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", "fdFD")
def test_determinants_of_any_condition(n, dtype):
    """As exact as a perturbation of the rows by rounding errors allows, whatever cancels."""
    rng = random("det", n, dtype)
    eps = float(np.finfo(dtype).eps)
    base = rng.uniform(-1, 1, (90, n, n)).astype(dtype)
    for a in (base, np.rint(base * 4), base * 10.0 ** rng.integers(-5, 5, (90, n, 1)).astype("f")):
        a = a.astype(dtype)
        a[::3, -1] = a[::3, 0]
        exact = determinant(a.astype("G" if dtype in "FD" else "g"))
        allowed = 40 * n * n * eps * np.sqrt((np.abs(a.astype("G")) ** 2).sum(-1)).prod(-1)
        assert np.all(np.abs(linalg.det(a) - exact) <= allowed)
        sign, logarithm = linalg.slogdet(a)
        with np.errstate(all="ignore"):
            again = sign * np.exp(logarithm.astype("g"))
        assert np.all(np.abs(again - exact) <= 4 * allowed)


def determinant(a):
    """By cofactors along the first row; of long double, without a division."""
    n = a.shape[-1]
    if n == 1:
        return a[..., 0, 0]
    total = 0
    for j in range(n):
        minor = np.delete(a[..., 1:, :], j, axis=-1)
        total = total + (-1) ** j * a[..., 0, j] * determinant(minor)
    return total


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("uplo", "LU")
@pytest.mark.parametrize("dtype", "dD")
def test_one_triangle_of_a_hermitian_matrix_is_read(dtype, uplo):
    """Nor the imaginary parts of the diagonal."""
    for n in (2, 3, 5, 8):
        whole = converted(symmetric(random(n), (70,), n), dtype, random(n))
        nan = np.full((n, n), np.nan)
        other = np.triu(nan, 1) if uplo == "L" else np.tril(nan, -1)
        half = whole + other + (0 if dtype == "d" else 1j * np.eye(n))
        np.testing.assert_equal(linalg.eigh(half, uplo), linalg.eigh(whole, uplo))
        np.testing.assert_equal(linalg.eigvalsh(half, uplo), linalg.eigvalsh(whole, uplo))


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals"])
def test_decompositions_do_not_depend_on_threads_or_neighbours(name):
    """Nor do signs of vectors, which may be other than LAPACK's."""
    for n in (2, 3, 4, 8, 20, 60):
        a = symmetric(random(n), (203 if n <= 8 else 43,), n)
        a[::7] *= np.logspace(0, -12, n)[:, None] * np.logspace(0, -12, n)
        a[::5, :, -1] = a[::5, -1] = 0
        order = random("order", n).permutation(len(a))
        function = getattr(linalg, name)
        expected = function(a)
        for threads in (1, 3):
            with nc.config(threads=threads):
                for x, y in zip(parts_of(function(a[order])), parts_of(expected), strict=True):
                    np.testing.assert_array_equal(x, y[order])


def parts_of(results):
    return results if isinstance(results, tuple) else (results,)


# ---- types ----


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_subclasses():
    class Own(np.ndarray):
        pass

    a = square(random("subclass"), (), 3)
    for made in (np.matrix(a), np.ma.array(a), np.ma.array(a, mask=np.eye(3)), a.view(Own)):
        for name in (*BASIC, "norm", "matrix_rank", "matrix_power", "cond", "trace"):
            args = [made, *({"solve": [made], "matrix_power": [2]}.get(name, []))]
            call = Call(name, (), {})
            theirs, ours = Outcome(np.linalg, call, args), Outcome(linalg, call, args)
            assert (ours.error, ours.kind) == (theirs.error, theirs.kind)
            for x, y in zip(ours.results, theirs.results, strict=True):
                assert type(x) is type(y)
                np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-9)


class Override:
    def __array_function__(self, function, types, args, keywords):
        return function, args, keywords


@pytest.mark.parametrize("name", NAMES)
def test_types_that_override_functions_see_numpys(name):
    a, other = np.eye(3), Override()
    call = CALL_OF[name]
    args = [other] if name != "multi_dot" else [[a, other]]
    args += [a] * (len(call.operands) - 1) + [2] * (name == "matrix_power")
    function, given, _ = getattr(linalg, name)(*args)
    assert function is getattr(np.linalg, name) and given[0] is args[0]
    if len(args) == 2 and name != "matrix_power":
        function, given, _ = getattr(linalg, name)(a, other)
        assert function is getattr(np.linalg, name) and given[1] is other
    if name == "multi_dot":
        assert linalg.multi_dot([a, a], out=other)[0] is np.linalg.multi_dot


def test_dask():
    array = pytest.importorskip("dask.array")
    a = array.from_array(square(random("dask"), (), 6), chunks=6)
    assert isinstance(linalg.inv(a), array.Array)
    np.testing.assert_allclose(linalg.inv(a).compute(), np.linalg.inv(a.compute()))


# ---- threads ----


def test_stacks_use_threads(regions):
    before = _numc_test.set_parallel_threshold(1)
    try:
        for name in ("inv", "det", "eigh", "svd", "qr", "pinv", "eig"):
            with nc.config(threads=3):
                getattr(linalg, name)(positive(random(name), (300,), 6))
            assert regions() > 0, name
            with nc.config(threads=1):
                getattr(linalg, name)(positive(random(name), (300,), 6))
            assert regions() == 0, name
    finally:
        _numc_test.set_parallel_threshold(before)


@pytest.mark.usefixtures("threads_always")
def test_python_threads_at_once():
    a = positive(random("threads"), (400,), 4)
    expected = {name: getattr(linalg, name)(a) for name in ("inv", "cholesky", "eigvalsh")}
    failures = []

    def compute(name):
        for i in range(20):
            with pytest.raises(np.linalg.LinAlgError):
                linalg.inv(a * (np.arange(400) != i)[:, None, None])
            if not np.array_equal(getattr(linalg, name)(a), expected[name]):
                failures.append(name)

    threads = [threading.Thread(target=compute, args=(n,)) for n in expected for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_made_by_several_threads_at_once():
    code = (
        "import threading, numc_ufuncs.linalg as L; start = threading.Barrier(8); found = set()\n"
        "def get():\n    start.wait(); found.update(id(getattr(L, n)) for n in L.__all__)\n"
        "threads = [threading.Thread(target=get) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(len(found) == len(L.__all__))"
    )
    assert run(code) == ["True"]


@pytest.mark.usefixtures("threads_always")
def test_after_a_fork():
    a = positive(random("fork"), (400,), 4)
    expected = linalg.inv(a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads
        assert status_of_child(lambda: np.array_equal(linalg.inv(a), expected)) == 0


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("name", ["inv", "eigh", "eigvalsh", "svd", "svdvals"])
def test_in_a_thread_of_a_small_stack(name):
    """Where no LAPACK is called, which takes nearly all of it on some processors."""
    for n in (2, 4, 8, 10, 24) if name == "inv" else (2, 4, 8, 10, 24, 64):
        for dtype in "fdFD":
            stack = (400 if n <= 10 else 20,)
            a = converted(positive(random("stack", n), stack, n), dtype, random(n))
            expected = getattr(linalg, name)(a)
            found = in_thread_of_small_stack(lambda a=a: [getattr(linalg, name)(a)])
            np.testing.assert_equal(found, [expected])


# ---- the patch ----


@pytest.mark.usefixtures("threads_always")
def test_patched_functions_are_led_to_ours(regions):
    a = positive(random("patch"), (400,), 4)
    functions = [np.linalg.inv, np.linalg.pinv, np.linalg.cond, np.linalg.eigvals]
    expected = [function(a) for function in functions]
    assert regions() == 0
    with nc.patched():
        for function, theirs in zip(functions, expected, strict=True):
            np.testing.assert_allclose(function(a), theirs, rtol=1e-9)
            assert regions() > 0
        assert np.linalg.inv is functions[0]
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            np.linalg.inv(a * 0)
    regions()
    np.linalg.inv(a)
    assert regions() == 0


@pytest.mark.usefixtures("threads_always")
def test_names_of_the_patch(regions):
    a = positive(random("names"), (400,), 4)
    with nc.patched(["linalg.inv", "linalg.eigh"]):
        assert nc.is_patched() and nc.is_patched("linalg.inv") and nc.is_patched("linalg.eigh")
        assert not nc.is_patched("linalg.eigvalsh") and not nc.is_patched("add")
        regions()
        for function in (np.linalg.inv, np.linalg.eigh, lambda a: np.linalg.eigh(a, "U")):
            function(a)
            assert regions() > 0
        np.linalg.det(a)
        assert regions() == 0
    nc.patch_numpy(["linalg.svd"])
    assert nc.is_patched("linalg.svd")
    nc.restore_numpy()
    assert not nc.is_patched("linalg.svd")
    with pytest.raises(ValueError, match=r"'linalg\.pinv'"):
        nc.patch_numpy(["linalg.pinv"])


def test_every_generalized_ufunc_has_a_name_of_the_patch():
    known = nc._patch._patchable()
    functions = {name for name in known if name.startswith("linalg.")}
    assert {what for name in functions for what in known[name]} == set(GUFUNCS.values())
    assert all(hasattr(np.linalg, name.removeprefix("linalg.")) for name in functions)
    with nc.patched():
        assert all(map(nc.is_patched, functions))


def test_functions_of_other_modules_are_led():
    a = positive(random("others"), (400,), 4)
    before = _numc_test.set_parallel_threshold(1)
    try:
        with nc.patched(), nc.config(threads=3), nc.profile() as p:
            np.linalg.inv(a)
            np.polyfit(np.arange(9.0), np.arange(9.0), 2)
    finally:
        _numc_test.set_parallel_threshold(before)
    assert any(row["ufunc"] == "inv" and row["way"] == "threads" for row in p.rows), p.rows
