"""where= and initial= of reductions: NumPy's bits, whatever the number of threads."""

import _numc_test
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
    random_keywords,
    random_operand,
    same_but_for_nans,
    same_numbers,
)

import numc_ufuncs as nc

follows_order = np.lib.NumpyVersion(np.__version__) >= "2.3.0"


def random_mask(rng, shape):
    """Random bools, long runs, or all of one."""
    n = int(np.prod(shape))
    share = rng.choice([0, 0.02, 0.5, 0.98, 1])
    length = int(rng.choice([1, 1, 20, 700, 30_000]))
    runs = rng.random(n // length + 2) < share
    return np.repeat(runs, length)[length // 3 :][:n].reshape(shape)


def like(x, mask):
    """The mask, whose bools lie as the elements of x do."""
    order = np.argsort([-abs(stride) for stride in x.strides], kind="stable")
    whole = np.ascontiguousarray(mask.transpose(order)).transpose(np.argsort(order))
    return whole


def random_masked(rng, x):
    """Keywords: a mask that lies as the array does, or in C order, or is broadcast."""
    keywords = {}
    if rng.random() < 0.8:
        mask = random_mask(rng, x.shape)
        keywords["where"] = like(x, mask) if rng.random() < 0.8 else mask
        if rng.random() < 0.1:
            keywords["where"] = mask[..., :1]
    if rng.random() < 0.5:
        values = [0, 3, -2, 0.5, -0.0, np.float32(2.5), np.nan, 300, None, 1 + 2j, True]
        keywords["initial"] = values[rng.integers(len(values))]
    return keywords


def assert_same(ours, theirs, about, same):
    assert ours[1] == theirs[1], about
    if isinstance(theirs[0], tuple):
        assert ours[0] == theirs[0], about
    else:
        assert type(ours[0]) is type(theirs[0]), about
        assert np.asarray(ours[0]).strides == np.asarray(theirs[0]).strides, about
        assert same(np.asarray(ours[0]), np.asarray(theirs[0])), about


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("seed", range(5))
def test_bits_are_numpys(seed, reductions):
    rng = np.random.default_rng(seed)
    for _ in range(150):
        name = "add" if rng.random() < 0.85 else "multiply"
        x = random_operand(rng)
        keywords = {**random_keywords(rng, x.ndim), **random_masked(rng, x)}
        if rng.random() < 0.7:
            keywords.pop("dtype", None)
        if rng.random() < 0.5:
            keywords["axis"] = None if rng.random() < 0.5 else int(np.argmin(np.abs(x.strides)))
        ours, theirs = (outcome(getattr(of, name).reduce, x, **keywords) for of in (nc, np))
        about = (name, x.shape, x.strides, x.dtype, keywords)
        assert_same(ours, theirs, about, same_numbers)
    assert reductions()[0] > 0 or not has_methods


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("seed", range(5))
def test_operations_without_order_are_numpys(seed, reductions, request):
    rng = np.random.default_rng(seed)
    for _ in range(150):
        name = str(rng.choice(list(ORDERLESS)))
        ndim = int(rng.integers(1, 4))
        shape = rng.integers(1, (30_000, 200, 40)[ndim - 1], ndim)
        x = few_values(rng, shape, str(rng.choice(list(ORDERLESS[name]))))
        x = x.transpose(rng.permutation(ndim))
        keywords = {**random_keywords(rng, ndim), **random_masked(rng, x)}
        keywords.pop("dtype", None)
        ours, theirs = (outcome(getattr(of, name).reduce, x, **keywords) for of in (nc, np))
        assert_same(ours, theirs, (name, x.shape, x.dtype, keywords), same_but_for_nans)
    # With one thread, as where workers sleep, NumPy's method computes them.
    always = request.node.callspec.params["policy"][0] > 0
    assert reductions()[0] > 0 or not (has_methods and always)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("seed", range(3))
def test_results_of_few_elements(seed, reductions):
    """Rows that follow each other, and rows of which some, or their ends, are left out."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        name = str(rng.choice(["add", "multiply", *ORDERLESS]))
        dtypes = list(ORDERLESS.get(name, INTEGERS))
        planes, rows, n = (int(rng.integers(1, most)) for most in (4, 700, 12))
        x = few_values(rng, (2 * planes, rows, n + 1), str(rng.choice(dtypes)))
        mask = random_mask(rng, x.shape)
        part = [np.s_[:], np.s_[..., :n], np.s_[::2, ::-1], np.s_[:, 1:, ::-1]][rng.integers(4)]
        x, mask = x[part], mask[part]
        keywords = {"axis": -1, "where": mask, "keepdims": bool(rng.integers(2))}
        if name in ("maximum", "minimum", "fmax", "fmin") or rng.random() < 0.3:
            keywords["initial"] = 1
        ours, theirs = (outcome(getattr(of, name).reduce, x, **keywords) for of in (nc, np))
        about = (name, x.shape, x.strides, x.dtype, keywords)
        assert_same(ours, theirs, about, same_but_for_nans)
    assert reductions()[0] > 0 or not has_methods


# Along the elements of results, and across rows, of more columns than are summed at once, too.
LAYOUTS = [((-1,), -1), ((3, -1), -1), ((600, -1), -1), ((-1, 3), -1)]
LAYOUTS += [((600, -1), 0), ((60, -1), 0), ((-1, 3), 0), ((20, 30, -1), 1), ((20, 30, -1), (0, 1))]
# Several rows of each result: of many results, of two of short rows, and of two of long ones.
LAYOUTS += [((-1, 30, 8), (0, 2)), ((-1, 2, 8), (0, 2)), ((3, 2, -1), (0, 2))]


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_threads_do_not_change_bits(dtype):
    x = random_array((600_000,), dtype)
    rng = np.random.default_rng(1)
    masks = [rng.random(x.size) < share for share in (0.5, 0.999, 2)]
    masks.append(np.repeat(rng.random(40) < 0.5, 15_000))  # runs that cross many blocks
    for mask in masks:
        for shape, axis in LAYOUTS:
            a, m = x.reshape(shape), mask.reshape(shape)
            with np.errstate(all="ignore"):
                expected = np.add.reduce(a, axis=axis, where=m, initial=1)
                for threads in THREADS:
                    with nc.config(threads=threads):
                        result = nc.add.reduce(a, axis=axis, where=m, initial=1)
                    about = (shape, axis, threads)
                    assert same_bits(np.asarray(result), np.asarray(expected)), about


@pytest.mark.usefixtures("threads_always")  # maximum on one thread is NumPy's
@pytest.mark.skipif(not (has_methods and follows_order), reason="NumPy's method is called")
def test_kernels_reduce_what_is_masked(reductions, regions):
    x = random_array((400_000,), "d")
    mask, out = np.arange(x.size) % 3 > 0, np.zeros(1_000)
    nc.add.reduce(x, where=mask)
    nc.add.reduce(x, initial=3)
    nc.add.reduce(x[::-2], where=mask[:200_000])
    nc.add.reduce(x.astype("i"), where=mask)
    nc.maximum.reduce(x + 9, where=mask, initial=-np.inf)
    nc.add.reduce(x.reshape(1_000, -1), 1, where=mask.reshape(1_000, -1), out=out)
    for shape in [(400, 10, 100), (2_000, 2, 100), (2, 2, 100_000)]:
        nc.add.reduce(x.reshape(shape), (0, 2), where=mask.reshape(shape))
    assert reductions()[0] == 9 and regions() > 0


def test_what_is_masked_is_not_looked_at():
    """It raises no flags; and a mask in the output's memory is read before."""
    x = np.array([1, np.inf, -np.inf, 3] * 5_000)
    mask = np.isfinite(x)
    with np.errstate(all="raise"):
        assert nc.add.reduce(x, where=mask) == 20_000
        assert nc.maximum.reduce(x, where=mask, initial=0) == 3
    memory, other = np.zeros((2, 8_000), np.uint8)
    for of, at in ((nc, memory), (np, other)):
        at[::3] = 1
        of.add.reduce(
            np.nan_to_num(x[:8_000], posinf=5, neginf=7).reshape(80, 100),
            1,
            where=at.view(bool).reshape(80, 100),
            out=at.view("d")[:80],
        )
    assert same_bits(memory, other)


def test_in_a_small_stack():
    x = random_array((300_000,), "D")
    mask = np.arange(x.size) % 5 > 0
    calls = [
        lambda of: of.add.reduce(x, where=mask),
        lambda of: of.add.reduce(x.reshape(-1, 10), 1, where=mask.reshape(-1, 10)),
        lambda of: of.logical_or.reduce(mask, where=mask),
        lambda of: of.add.reduce(mask, where=mask, initial=5),
    ]
    expected = [np.asarray(call(np)) for call in calls]
    found = in_thread_of_small_stack(lambda: [np.asarray(call(nc)) for call in calls])
    assert all(same_bits(a, b) for a, b in zip(found, expected, strict=True))


def test_rounds_do_not_share_sums():
    """The sums of one round of blocks are added up while the next ones are computed."""
    x = random_array((3_000_000,), "d")
    mask = np.random.default_rng(0).random(x.size) < 0.5
    expected = np.add.reduce(x, where=mask)
    before = _numc_test.set_policy(500, True, False)
    with nc.config(threads=3):
        results = [nc.add.reduce(x, where=mask) for _ in range(5)]
    _numc_test.set_policy(*before)
    assert results == [expected] * 5


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("initial", [0.0, -0.0])
@pytest.mark.parametrize("dtype", FLOATS)
def test_signs_of_zeros(dtype, initial):
    names = ("add",) if dtype in "FD" else ("add", "maximum", "minimum", "fmax")
    for name in names:
        for zeros in ([0.0], [-0.0], [0.0, -0.0]):
            x = np.resize(np.array(zeros, dtype), (60, 90))
            for axis in (None, 0, 1):
                for keywords in ({}, {"where": x == x}, {"where": x != x}):
                    ours, theirs = (
                        np.asarray(getattr(of, name).reduce(x, axis, initial=initial, **keywords))
                        for of in (nc, np)
                    )
                    assert same_bits(ours, theirs), (name, zeros, axis, keywords)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99, 1])
def test_short_rows_and_columns(dtype, share):
    rng = np.random.default_rng(round(100 * share))
    for shape in [(5, 7, n) for n in (1, 4, 17, 63, 64, 65, 130)] + [(40, 3, 121), (2, 3, 1700)]:
        x = (rng.random((*shape[:-1], 3 * shape[-1])) * 100).astype(dtype)
        mask = rng.random(x.shape) < share
        for where in (np.s_[..., : shape[-1]], np.s_[..., ::3], np.s_[::-1, :, ::-3]):
            for axis in ((0, 2), (0,), (1, 2), (2,)):
                keywords = {"axis": axis, "where": mask[where]}
                ours = nc.add.reduce(x[where], **keywords)
                assert same_but_for_nans(ours, np.add.reduce(x[where], **keywords))
