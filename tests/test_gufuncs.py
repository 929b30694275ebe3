"""parallel() of generalized ufuncs: what the serial one says, gives, and leaves in memory."""

import itertools
import warnings

import _numc_test
import numpy as np
import pytest
from checks import (
    assert_references_stay,
    in_thread_of_small_stack,
    in_threads,
    layouts,
    status_of_child,
)

import numc_ufuncs as nc
from numc_ufuncs import _core

NAMES = ["sum_of_squares", "product", "cross", "all_equal", "normalized", "reciprocals", "roots"]
COMPUTES_DIMENSIONS = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
NAMES += ["differences"] * COMPUTES_DIMENSIONS

# Core shapes of the inputs.
CORES = {
    "sum_of_squares": [(5,)],
    "product": [(3, 4), (4, 2)],
    "cross": [(3,), (3,)],
    "all_equal": [(4,), (4,)],
    "normalized": [(6,)],
    "reciprocals": [(3,)],
    "roots": [(3,)],
    "differences": [(7,)],
}


def gufunc(name):
    return getattr(_numc_test, name)


def operands(name, stack, dtype=float, seed=0):
    rng = np.random.default_rng([seed, *map(ord, name)])
    return [rng.uniform(0.5, 2, (*stack, *core)).astype(dtype) for core in CORES[name]]


def outcome(function, *args, **keywords):
    """What a call says and gives; and the memory that it was given."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            results = function(*args, **keywords)
        except Exception as error:
            results = (type(error), str(error))
    said = [(w.category, str(w.message)) for w in caught]
    results = results if isinstance(results, tuple) else (results,)
    return said, [described(x) for x in results], [described(x) for x in args]


def described(value):
    if not isinstance(value, np.ndarray | np.generic):
        return value
    bits = np.ascontiguousarray(value).tobytes() if value.dtype != object else value.tolist()
    return type(value), value.dtype, value.shape, value.strides, bits


def assert_alike(name, make_arguments):
    """Of both, each with operands of its own: ``make_arguments() -> args, keywords``."""
    theirs = gufunc(name)
    found = []
    for function in (theirs, nc.parallel(theirs)):
        args, keywords = make_arguments()
        said, results, left = outcome(function, *args, **keywords)
        out = keywords.get("out", ())
        out = out if isinstance(out, tuple) else (out,)
        found.append((said, results, left, [described(x) for x in out]))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("name", NAMES)
def test_is_a_ufunc_like_its_original(name):
    theirs, ours = gufunc(name), nc.parallel(gufunc(name))
    assert type(ours) is np.ufunc and ours.__name__ == name
    for attribute in ("signature", "types", "nin", "nout", "nargs", "ntypes", "identity"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert nc.parallel(theirs) is ours and nc.parallel(ours) is ours


STACKS = [(), (1,), (0,), (2,), (7,), (300,), (20, 0, 3), (5, 40), (4, 3, 25), (100_003,)]


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_stacks(name, stack, regions):
    assert_alike(name, lambda: (operands(name, stack), {}))
    assert regions() > 0 or len(stack) == 0 or stack[-1] < 100


@pytest.mark.usefixtures("threads_always", "policy")
@pytest.mark.parametrize("name", NAMES)
def test_stacks_under_each_policy(name):
    assert_alike(name, lambda: (operands(name, (3, 700)), {}))


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("name", NAMES)
def test_layouts_and_dtypes(name):
    plain = operands(name, (150,))
    for position in range(len(CORES[name])):
        for other in layouts(plain[position]).values():
            args = [*plain[:position], other, *plain[position + 1 :]]
            assert_alike(name, lambda args=args: (args, {}))


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize(
    ("name", "shapes", "keywords"),
    [
        ("sum_of_squares", [(5, 200)], {"axis": 0}),
        ("sum_of_squares", [(5, 200)], {"axis": -1, "keepdims": True}),
        ("sum_of_squares", [(5, 200)], {"axes": [(0,), ()]}),
        ("sum_of_squares", [(5, 200)], {"axes": [0]}),
        ("sum_of_squares", [(5, 200)], {"axis": 2}),
        ("sum_of_squares", [(5, 200)], {"axis": 0, "axes": [0]}),
        ("sum_of_squares", [(5, 200)], {"dtype": "f"}),
        ("sum_of_squares", [(5, 200)], {"signature": "d->d", "casting": "no"}),
        ("sum_of_squares", [(5, 200)], {"signature": "f->f", "casting": "no"}),
        ("sum_of_squares", [(5, 200)], {"where": True}),
        ("sum_of_squares", [(5, 200)], {"subok": False, "order": "F"}),
        ("sum_of_squares", [(5, 200)], {"nosuch": 1}),
        ("sum_of_squares", [()], {}),
        ("product", [(200, 3, 4), (4, 2)], {}),
        ("product", [(200, 3, 4), (4,)], {}),
        ("product", [(4,), (200, 4, 2)], {}),
        ("product", [(4,), (4,)], {}),
        ("product", [(200, 3, 4), (3, 2)], {}),
        ("product", [(200, 3, 4), (7, 4, 2)], {}),
        ("product", [(7, 1, 3, 4), (90, 4, 2)], {}),
        ("product", [(4, 200, 3), (2, 200, 4)], {"axes": [(2, 0), (2, 0), (0, 1)]}),
        ("product", [(200, 3, 0), (200, 0, 2)], {}),
        ("product", [(200, 0, 4), (200, 4, 2)], {}),
        ("cross", [(200, 3), (200, 2)], {}),
        ("cross", [(3, 200), (3, 200)], {"axis": 0}),
        ("cross", [(3, 200), (200, 3)], {"axes": [0, 1, 0]}),
        ("all_equal", [(200, 4), (200, 5)], {}),
        ("all_equal", [(200, 4), (4,)], {"axis": -1, "keepdims": True}),
        ("normalized", [(200, 4)], {"axes": [1, 0, ()]}),
        ("normalized", [(200, 0)], {}),
    ],
)
def test_axes_and_other_keywords(name, shapes, keywords):
    rng = np.random.default_rng(3)
    args = [rng.uniform(0.5, 2, shape) for shape in shapes]
    assert_alike(name, lambda: (args, dict(keywords)))


def outs(name, stack, results):
    """Places for results, by what is peculiar about them."""
    for kind in ("plain", "strided", "reversed", "float32", "int", "wrong shape", "overlapping"):
        made = []
        for result in results:
            out = np.zeros_like(result)
            if kind == "strided":
                out = np.zeros([2 * n for n in result.shape], result.dtype)
                out = out[tuple(slice(None, None, 2) for _ in result.shape)]
            elif kind == "reversed":
                out = out[::-1]
            elif kind in ("float32", "int"):
                out = out.astype(kind)
            elif kind == "wrong shape":
                out = out[1:]
            elif kind == "overlapping":
                steps = (0, *out.strides[1:])
                out = np.lib.stride_tricks.as_strided(out, out.shape, steps)
            made.append(out)
        yield tuple(made)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("name", NAMES)
def test_out(name):
    args = operands(name, (150,))
    results = gufunc(name)(*args)
    results = results if isinstance(results, tuple) else (results,)
    pairs = zip(outs(name, 150, results), outs(name, 150, results), strict=True)
    for pair in pairs:
        made = iter(pair)
        assert_alike(name, lambda made=made: (args, {"out": next(made)}))
    assert_alike(name, lambda: (args, {"out": tuple(None for _ in results)}))
    out = tuple(map(np.empty_like, results))
    given = nc.parallel(gufunc(name))(*args, out=out)
    assert (given if isinstance(given, tuple) else (given,))[0] is out[0]


@pytest.mark.usefixtures("threads_always")
def test_operands_in_common_memory():
    """NumPy copies what an output shares with inputs, where items or their elements would meet."""
    for name, shift in itertools.product(("reciprocals", "cross"), (-3, -1, 0, 1, 2, 7)):

        def make(name=name, shift=shift):
            memory = np.random.default_rng(1).uniform(1, 2, 3020)
            first = memory[10:3010].reshape(1000, 3)
            out = memory[10 + shift : 3010 + shift].reshape(1000, 3)
            return ([first] if name == "reciprocals" else [first, first[::-1]]), {"out": out}

        assert_alike(name, make)


@pytest.mark.usefixtures("threads_always")
class TestErrors:
    @pytest.mark.parametrize("n", [1, 2, 65, 1000, 50_000])
    @pytest.mark.parametrize("where", ["first", "last", "all", "two"])
    def test_the_first_exception_is_raised(self, n, where):
        x = np.ones((n, 3))
        at = {"first": [0], "last": [-1], "all": range(n), "two": [n // 2, -1]}[where]
        for i in at:
            x[i, 1] = -1000 - (i % n)
        _, (kind, text), *_ = assert_alike("roots", lambda: ([x], {}))
        assert kind is ValueError and text == f"no root of -{1000 + at[0] % n}"
        assert nc.parallel(_numc_test.roots)([4.0]).tolist() == [2.0]

    @pytest.mark.parametrize("n", [1, 65, 1000, 50_000])
    @pytest.mark.parametrize("bad", [0.0, 1e-310, np.nan])
    @pytest.mark.parametrize("where", [0, -1])
    def test_flags(self, n, bad, where):
        x = np.ones((n, 3))
        x[where] = bad
        for handling in ("warn", "raise", "ignore"):
            with np.errstate(all=handling):
                assert_alike("reciprocals", lambda: ([x], {}))
        calls = []
        with np.errstate(all="call", call=lambda text, flag: calls.append((text, flag))):
            assert_alike("reciprocals", lambda: ([x], {}))
        assert calls[::2] == calls[1::2]

    def test_flags_of_an_earlier_call_are_not_reported(self):
        with np.errstate(all="ignore"):
            nc.parallel(_numc_test.reciprocals)(np.zeros((1000, 3)))
        said, *_ = assert_alike("reciprocals", lambda: ([np.ones((1000, 3))], {}))
        assert said == []


@pytest.mark.skipif(not COMPUTES_DIMENSIONS, reason="NumPy 2.0 has no such ufuncs")
@pytest.mark.usefixtures("threads_always")
def test_computed_dimensions():
    x = np.arange(6000.0).reshape(1000, 6) ** 2
    for shape in ((1000, 5), (1000, 6), (5,), (1000, 1)):
        assert_alike("differences", lambda shape=shape: ([x], {"out": np.zeros(shape)}))
    assert_alike("differences", lambda: ([x[:, :1]], {}))
    _, (kind, text), *_ = assert_alike("differences", lambda: ([x[:, :0]], {}))
    assert (kind, text) == (ValueError, "differences of nothing")


class Override:
    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return ufunc, method


def test_overrides_see_the_ufunc_that_was_called():
    ours = nc.parallel(_numc_test.sum_of_squares)
    assert ours(Override()) == (ours, "__call__")


@pytest.mark.parametrize("method", ["reduce", "accumulate", "reduceat", "outer", "at"])
def test_methods(method):
    found = []
    for function in (_numc_test.product, nc.parallel(_numc_test.product)):
        more = {"reduceat": ([0],), "outer": (np.eye(2),), "at": ([0], 1)}.get(method, ())
        try:
            found.append(getattr(function, method)(np.eye(2), *more))
        except (TypeError, RuntimeError, ValueError) as error:
            found.append((type(error), str(error)))
    assert found[0] == found[1]


@pytest.mark.usefixtures("threads_always")
def test_objects_stay_with_numpy(regions):
    with pytest.raises(TypeError) as ours:
        nc.parallel(_numc_test.cross)(np.ones((1000, 3), object), np.ones(3))
    with pytest.raises(TypeError) as theirs:
        _numc_test.cross(np.ones((1000, 3), object), np.ones(3))
    assert str(ours.value) == str(theirs.value) and regions() == 0


@pytest.mark.usefixtures("threads_always")
def test_python_threads_at_once():
    ours = nc.parallel(_numc_test.product)
    args = operands("product", (2000,))
    expected = _numc_test.product(*args)
    failures = []

    def compute(_):
        for _ in range(30):
            if not np.array_equal(ours(*args), expected):
                failures.append(1)

    in_threads(8, compute)
    assert not failures


@pytest.mark.usefixtures("threads_always")
def test_after_a_fork():
    ours = nc.parallel(_numc_test.normalized)
    args = operands("normalized", (2000,))
    expected = ours(*args)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads
        assert status_of_child(lambda: np.array_equal(ours(*args)[0], expected)) == 0


@pytest.mark.usefixtures("threads_always")
def test_in_a_thread_of_a_small_stack():
    ours = nc.parallel(_numc_test.cross)
    args = operands("cross", (2000,))
    (found,) = in_thread_of_small_stack(lambda: [ours(*args)])
    np.testing.assert_array_equal(found, _numc_test.cross(*args))


@pytest.mark.usefixtures("threads_always")
def test_references_stay():
    ours = nc.parallel(_numc_test.roots)
    args = operands("roots", (200,))
    bad = -args[0]

    def calls():
        ours(*args)
        with pytest.raises(ValueError):
            ours(bad)

    assert_references_stay(calls, [ours, *args, bad])


def test_numba():
    """guvectorize() returns no ufunc, but its result holds one."""
    numba = pytest.importorskip("numba")

    @numba.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)", nopython=True)
    def running(x, result):
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i]
            result[i] = total

    x = np.random.default_rng(0).uniform(size=(20_000, 6))
    with pytest.raises(TypeError, match=r"pass its attribute `\.ufunc`"):
        nc.parallel(running)
    theirs = running.ufunc
    before = _numc_test.set_parallel_threshold(1)
    try:
        assert nc.parallel(theirs)(x).tobytes() == theirs(x).tobytes()
    finally:
        _numc_test.set_parallel_threshold(before)


@pytest.mark.parametrize("k", [*range(1, 20), 31, 32, 33, 63, 64, 65, 70])
def test_bools_with_one_true_product_at_each_place(k):
    """Short sums are decided in words that overlap: none of their elements is left out."""
    one = np.eye(k, dtype=np.uint8)
    a, b = one.view(bool), (one * 4).view(bool)  # any byte but 0 is true, as in NumPy's loops
    assert nc.vecdot(a, b).all()
    assert np.array_equal(nc.vecmat(a, b.T), a)
    assert np.array_equal(nc.matmul(a, b.T), a)
    if k > 1:
        assert not nc.vecdot(a, np.roll(b, 1, axis=1)).any()


@pytest.mark.parametrize("dtype", "BhiLq")
def test_sums_of_contiguous_integers_end_within_a_vector(dtype):
    """The last vector of a sum overlaps the one before: each product counts, and only once."""
    rng = np.random.default_rng(4)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for k in [*range(1, 140), 1000, 1001]:
        a, b = rng.integers(low, high, (2, 7, k + 3), dtype, endpoint=True)[..., 1 : k + 1]
        before = _core.matmuls()[0]
        assert np.array_equal(nc.vecdot(a, b), np.vecdot(a, b)), k
        taken = _core.matmuls()[0] > before
        # Not those of 64 bits: vectors of most processors have no product of them.
        assert taken == (k * a.itemsize >= 32) or a.itemsize == 8, k
        assert np.array_equal(nc.matmul(a[:, None], b[..., None])[:, 0, 0], np.vecdot(a, b)), k
        assert np.array_equal(nc.vecdot(a[3], b), np.vecdot(a[3], b)), k
