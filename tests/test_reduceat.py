"""reduceat by segments on all cores: NumPy's bits, whatever the number of threads."""

import itertools
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from checks import in_thread_of_small_stack, same_bits
from test_reduce import (
    FLOATS,
    INTEGERS,
    ORDERLESS,
    THREADS,
    few_values,
    has_methods,
    outcome,
    random_array,
    random_operand,
    random_output,
    same_numbers,
)

import numc_ufuncs as nc

follows_order = np.lib.NumpyVersion(np.__version__) >= "2.3.0"


def random_indices(rng, n):
    """Short and long segments, in order or not, none of whose starts is out of bounds."""
    count = int(np.exp(rng.uniform(0, np.log(min(n, 5_000) + 1))))
    indices = rng.integers(0, n, max(count, 1))
    if rng.random() < 0.8:
        indices.sort()
    if rng.random() < 0.2:
        indices = indices.astype(str(rng.choice(list("bhiIL"))) if n < 128 else "i")
    return indices.tolist() if rng.random() < 0.2 else indices


def same_outcome(ours, theirs, about, same):
    """Of two calls of `outcome`."""
    assert ours[1] == theirs[1], about
    if isinstance(theirs[0], tuple):
        assert ours[0] == theirs[0], about
    else:
        assert ours[0].strides == theirs[0].strides, about
        assert same(ours[0], theirs[0]), about


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("seed", range(4))
def test_bits_are_numpys(seed, reductions):
    rng = np.random.default_rng(seed)
    for _ in range(150):
        name = "add" if rng.random() < 0.8 else "multiply"
        ours, theirs = getattr(nc, name).reduceat, getattr(np, name).reduceat
        x = random_operand(rng)
        axis = int(rng.integers(-x.ndim, x.ndim))
        indices = random_indices(rng, x.shape[axis])
        keywords = {"axis": axis}
        if rng.random() < 0.3:
            keywords["dtype"] = str(rng.choice(list("efdFDglib")))
        about = (name, x.shape, x.strides, x.dtype, np.asarray(indices).shape, keywords)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            expected = outcome(theirs, x, indices, **keywords)
            same_outcome(outcome(ours, x, indices, **keywords), expected, about, same_numbers)
            if rng.random() < 0.3 and isinstance(expected[0], np.ndarray):
                out = random_output(rng, expected[0])
                assert outcome(ours, x, indices, **keywords, out=out)[0] is out
                assert same_numbers(out.copy(), expected[0].copy()), about
    assert reductions()[0] > 0 or not has_methods


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_threads_do_not_change_bits(dtype, regions):
    """Short segments; long ones, which threads share; both; lines that lie side by side."""
    rng = np.random.default_rng(0)
    x = random_array((1_000_001,), dtype)
    rows = x[:-1].reshape(2_000, 500)
    uneven = np.concatenate([np.arange(0, 500_000, 7), [500_001, 900_000]])
    cases = [
        (x, np.arange(0, x.size, 10), 0),
        (x, np.arange(0, x.size, 1_000), 0),
        (x, [0, 400_000, 3, 999_999], 0),
        (x, uneven, 0),
        (x[::-1], uneven, 0),
        (x[::2], rng.integers(0, x.size // 2, 300), 0),
        (rows, [0, 3, 1_500, 1_400], 0),
        (rows, np.arange(0, 2_000, 9), 0),
        (rows, [0, 7, 100], 1),
        (rows.T, [0, 7, 100], 0),
        (rows[:, :5], np.arange(0, 2_000, 9), 0),
    ]
    with np.errstate(all="ignore"):
        ops = ("add", "multiply") if dtype in INTEGERS else ("add",)
        for of, (a, indices, axis) in itertools.product(ops, cases):
            expected = getattr(np, of).reduceat(a, indices, axis)
            for threads in THREADS:
                with nc.config(threads=threads):
                    result = getattr(nc, of).reduceat(a, indices, axis)
                assert same_bits(result, expected), (a.shape, threads)
    assert regions() > 0 or dtype not in "dD" or not follows_order


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("seed", range(3))
def test_operations_without_order_are_numpys(seed, reductions, request):
    """Zeros of both signs among them: NumPy's loop is called for the same elements."""
    rng = np.random.default_rng(seed)
    for _ in range(150):
        name = str(rng.choice(list(ORDERLESS)))
        ndim = int(rng.integers(1, 4))
        shape = rng.integers(1, (120_000, 400, 60)[ndim - 1], ndim)
        x = few_values(rng, shape, str(rng.choice(list(ORDERLESS[name]))))
        x = x.transpose(rng.permutation(ndim))
        if rng.random() < 0.3:
            x = x[tuple(slice(None, None, int(step)) for step in rng.choice([1, 2, -1], ndim))]
        axis = int(rng.integers(ndim))
        indices = random_indices(rng, x.shape[axis])
        with nc.config(threads=3):
            ours, theirs = (
                outcome(getattr(package, name).reduceat, x, indices, axis) for package in (nc, np)
            )
        same_outcome(ours, theirs, (name, x.shape, x.dtype, axis), same_numbers)
    # With one thread, as where workers sleep, NumPy's method computes them.
    always = request.node.callspec.params["policy"][0] > 0
    assert reductions()[0] > 0 or not (has_methods and always)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("name", ["maximum", "fmin"])
@pytest.mark.parametrize("dtype", "efd")
def test_zeros_tie_as_in_numpys_order(name, dtype):
    for seed in range(20):
        x = np.random.default_rng(seed).choice(np.array([0.0, -0.0], dtype), (2, 20_003))
        for a, indices in ((x[0], [0, 9_000]), (x, [0, 9_000, 3]), (x[:, ::-1], [5])):
            ours, theirs = (getattr(of, name).reduceat(a, indices, -1) for of in (nc, np))
            assert same_bits(ours, theirs)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("dtype", FLOATS)
def test_first_elements_are_copied(dtype):
    """Bit by bit, as those of long segments are: zeros keep their signs."""
    x = np.full(200_000, -0.0, dtype)
    indices = [0, 1, 2, 100, 100_000, 199_999]
    for a, i in ((x, indices), (x.reshape(2, -1), [0, 1, 9]), (x.reshape(-1, 2), indices[:4])):
        axis = 1 if a.shape[0] == 2 else 0
        assert same_bits(nc.add.reduceat(a, i, axis), np.add.reduceat(a, i, axis))


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("index", [-1, 1_000, 2**40, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("place", [0, 70_000, 139_999])
def test_indices_out_of_bounds(index, place):
    x, indices = random_array((1_000,), "d"), np.zeros(140_000, np.intp)
    indices[place] = index
    out = np.zeros(140_000)
    with pytest.raises(IndexError) as theirs:
        np.add.reduceat(x, indices)
    with pytest.raises(IndexError) as ours:
        nc.add.reduceat(x, indices, out=out)
    assert str(ours.value) == str(theirs.value)
    assert not out.any()


@pytest.mark.usefixtures("threads_always")
def test_unusual_calls_are_numpys():
    x, rows = random_array((3_000,), "d"), random_array((30, 100), "i")
    overlapping = np.arange(3_000.0)
    read_only = np.zeros(2)
    read_only.flags.writeable = False
    calls = [
        lambda of: of.add.reduceat(x, indices=[0, 5]),
        lambda of: of.add.reduceat(x, (0, 5)),
        lambda of: of.add.reduceat(x, np.array([0.0, 5.0])),
        lambda of: of.add.reduceat(x, [0, 5.5]),
        lambda of: of.add.reduceat(x, [[0, 5]]),
        lambda of: of.add.reduceat(x, np.zeros((2, 1), int)),
        lambda of: of.add.reduceat(x, []),
        lambda of: of.add.reduceat(x, np.array([], int)),
        lambda of: of.add.reduceat(x, 5),
        lambda of: of.add.reduceat(x, [True, False]),
        lambda of: of.add.reduceat(x, np.array([0, 2**63], np.uint64)),
        lambda of: of.add.reduceat(x[:0], [0]),
        lambda of: of.add.reduceat(x),
        lambda of: of.add.reduceat(x, [0], 0, None, None, False),
        lambda of: of.add.reduceat(x, [0], keepdims=False),
        lambda of: of.add.reduceat(x, [0], where=True),
        lambda of: of.add.reduceat(x, [0], axis=None),
        lambda of: of.add.reduceat(x, [0], axis=(0,)),
        lambda of: of.add.reduceat(x, [0], axis=3),
        lambda of: of.add.reduceat(rows, [0], axis=None),
        lambda of: of.add.reduceat(rows, [0], axis=(0, 1)),
        lambda of: of.add.reduceat(rows, [0, 50], 1, np.float32),
        lambda of: of.add.reduceat(rows, [0, 50], 1, out=np.zeros((30, 2), "i")),
        lambda of: of.add.reduceat(rows, [0, 50], 1, out=np.zeros((30, 3), "l")),
        lambda of: of.add.reduceat(rows, [0, 50], 1, out=np.zeros((60,), "l")),
        lambda of: of.add.reduceat(rows.astype(">i4"), [0, 50], 1),
        lambda of: of.add.reduceat(np.broadcast_to(x[:9], (500, 9)), [0, 7, 3]),
        lambda of: of.add.reduceat(np.broadcast_to(x[:9], (500, 9)), [0, 7, 3], 1),
        lambda of: of.add.reduceat(x, [0, 50], out=read_only),
        lambda of: of.add.reduceat(x, [0, 50], out=(np.zeros(2),)),
        lambda of: of.add.reduceat(overlapping.copy(), [0, 50], out=None),
        lambda of: of.subtract.reduceat(x, [0, 50, 7]),
        lambda of: of.multiply.reduceat(x, np.arange(0, 3_000, 4)),
        lambda of: of.add.reduceat(x.tolist(), [0, 50, 7]),
        lambda of: of.add.reduceat(x.astype(object), [0, 50, 7]),
    ]
    for number, call in enumerate(calls):
        ours, theirs = outcome(call, nc), outcome(call, np)
        assert str(ours) == str(theirs), number
        if isinstance(theirs[0], np.ndarray) and theirs[0].dtype != object:
            assert same_bits(ours[0], theirs[0]), number
            assert ours[0].strides == theirs[0].strides, number


@pytest.mark.usefixtures("threads_always")
def test_outputs_that_overlap():
    x, y = np.arange(3_000.0), np.arange(3_000.0)
    nc.add.reduceat(x, np.arange(0, 3_000, 3), out=x[500:1_500])
    np.add.reduceat(y, np.arange(0, 3_000, 3), out=y[500:1_500])
    assert same_bits(x, y)
    i, k = np.arange(0, 3_000, 3), np.arange(0, 3_000, 3)
    x = np.arange(3_000)
    assert same_bits(nc.add.reduceat(x, i, out=i), np.add.reduceat(x, k, out=k))


@pytest.mark.usefixtures("threads_always")
def test_warnings_are_numpys():
    x = np.full(30_000, 3e38, "f")
    for a, i in ((x, [0, 5]), (x, np.arange(0, 30_000, 10)), (x - np.inf, [0, 4]), (x[:2], [0])):
        a = a.copy()
        a[1] = np.inf if np.isinf(a[0]) else a[1]
        ours, theirs = outcome(nc.add.reduceat, a, i), outcome(np.add.reduceat, a, i)
        assert ours[1] == theirs[1] != []
        assert "reduceat" in ours[1][0]
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="in reduceat"):
        nc.add.reduceat(x, [0, 5])


def test_in_a_small_stack_and_from_several_threads():
    x, y = random_array((300_000,), "d"), random_array((300_000,), "i").reshape(-1, 100)
    i = np.arange(0, 300_000, 7)
    calls = [
        lambda of: of.add.reduceat(x, i),
        lambda of: of.add.reduceat(y, i[:400] % 3_000),
        lambda of: of.add.reduceat(y, [0, 1_000], dtype="d"),
        lambda of: of.add.reduceat(y, [0, 7], 1, dtype="d"),
        lambda of: of.maximum.reduceat(x, i),
    ]
    expected = [call(np) for call in calls]

    def results():
        return [call(nc) for call in calls]

    with ThreadPoolExecutor(3) as callers:
        found = list(callers.map(lambda _: results(), range(6)))
    for these in [*found, in_thread_of_small_stack(results)]:
        assert all(same_bits(a, b) for a, b in zip(these, expected, strict=True))


@pytest.mark.skipif(not (has_methods and follows_order), reason="NumPy's method is called")
@pytest.mark.usefixtures("workers_come")
def test_kernels_reduce_segments(reductions, regions):
    x = random_array((1_000_000,), "d")
    nc.add.reduceat(x, np.arange(0, x.size, 10))
    nc.add.reduceat(x, [0, 7])
    nc.add.reduceat(x[:400_000].astype("i"), [0, 7], dtype="d")
    assert reductions()[0] == 3
    with nc.config(threads=4):
        nc.add.reduceat(x.reshape(1000, -1), [0, 7])
        assert regions() > 0
