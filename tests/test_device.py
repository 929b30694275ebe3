"""matmul on a device: results. The fake device stands for a GPU everywhere; tests marked `cuda` run
on one."""

import threading
import warnings

import _numc_test
import numpy as np
import pytest
from devices import DTYPES, FLOATS, assert_right, on_device, operand, run
from fuzzing import Case, copy_of, make_call, matmul_case, pair_of
from hypothesis import example, given
from numpy._core.tests.test_multiarray import MatmulCommon
from numpy.exceptions import ComplexWarning
from test_fuzz import Outcome, assert_same_array, assert_same_memory, profile, strategy

import numc_ufuncs as nc


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(device, dtype):
    rng = np.random.default_rng(0)
    for m, k, n in [(1, 1, 1), (3, 5, 7), (1, 70, 33), (65, 1, 129), (130, 31, 66), (33, 129, 1)]:
        a, b = operand(rng, (m, k), dtype), operand(rng, (k, n), dtype)
        assert_right(nc.matmul(a, b), a, b)
        assert on_device()
        assert nc.last_call()["reason"] == "asked for" and nc.last_call()["seconds"] > 0


def layouts(rng, shape, dtype):
    """Arrays of one shape: contiguous, transposed, with gaps, reversed, repeated."""
    m, n = shape
    yield operand(rng, shape, dtype)
    yield np.asfortranarray(operand(rng, shape, dtype))
    yield operand(rng, (2 * m, 3 * n), dtype)[::2, ::3]
    yield operand(rng, (n, 2 * m), dtype)[::-1, ::2].T
    yield np.broadcast_to(operand(rng, (n,), dtype), shape)
    yield np.broadcast_to(operand(rng, (m, 1), dtype), shape)


@pytest.mark.parametrize("gemm", ["auto", "tiled"])
@pytest.mark.parametrize("dtype", "?hilfdF")
def test_layouts(device, dtype, gemm):
    rng = np.random.default_rng(1)
    with nc.config(gemm=gemm):
        for a in layouts(rng, (37, 21), dtype):
            for b in layouts(rng, (21, 45), dtype):
                assert_right(nc.matmul(a, b), a, b)
                out = np.zeros((2 * 37, 45), dtype)[::-2]
                assert nc.matmul(a, b, out=out) is out
                assert_right(out, a, b)
                out = np.zeros((37, 45), dtype, order="F")
                nc.matmul(a, b, out=out)
                assert_right(out, a, b)
    assert on_device()


@pytest.mark.parametrize("dtype", "?ild")
def test_batches(device, dtype):
    rng = np.random.default_rng(2)
    for a_shape, b_shape in [
        ((7, 5, 6), (7, 6, 4)),
        ((7, 5, 6), (6, 4)),
        ((5, 6), (7, 6, 4)),
        ((2, 1, 5, 6), (3, 6, 4)),
        ((200, 9, 9), (200, 9, 9)),
        ((0, 5, 6), (6, 4)),
    ]:
        a, b = operand(rng, a_shape, dtype), operand(rng, b_shape, dtype)
        assert_right(nc.matmul(a, b), a, b)


def test_empty_sums_are_zero(device):
    assert (nc.matmul(np.ones((3, 0)), np.ones((0, 4))) == np.zeros((3, 4))).all()


def test_a_product_with_its_own_transpose_is_symmetric(device):
    rng = np.random.default_rng(3)
    for n in (3, 64, 65, 300):
        a = rng.standard_normal((n, 70))
        for out in (None, np.empty((n, n), order="F")):
            c = nc.matmul(a, a.T, out=out)
            assert (c == c.T).all()
            assert_right(c, a, a.T)
    assert on_device()


@pytest.mark.parametrize("limit", [1 << 14, 1 << 17])
def test_more_than_the_memory(device, limit):
    rng = np.random.default_rng(4)
    a, b = operand(rng, (150, 90), "d"), operand(rng, (90, 130), "d")
    nc.matmul(a, b)
    _numc_test.limit_device_memory(limit)
    try:
        assert_right(nc.matmul(a, b), a, b)
    finally:
        _numc_test.limit_device_memory(0)
    assert on_device()


class TestMatmulOnDevice(MatmulCommon):
    """NumPy's own tests of matmul."""

    matmul = nc.matmul

    @pytest.fixture(autouse=True)
    def forced(self, device):
        pass


def assert_near(call, dtype, ours):
    """`ours`, computed in `dtype`, is as exact as a sum in any order is, and special where the
    operands make it so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComplexWarning)
        a, b = (arg.on(copy_of(call.memory)).astype(dtype) for arg in call.args)
    terms = max(*a.shape, *b.shape, 1)
    wide = "G" if dtype.kind == "c" else "g"
    axes = {"axes": call.keywords["axes"]} if "axes" in call.keywords else {}
    exact = np.matmul(a.astype(wide), b.astype(wide), **axes)
    magnitude = np.matmul(np.abs(a).astype("g"), np.abs(b).astype("g"), **axes)
    # An `out=` may lack leading axes of one element, as well as repeat the result.
    lacking = max(exact.ndim - ours.ndim, 0)
    exact, magnitude = (
        np.broadcast_to(x.reshape(x.shape[lacking:]), ours.shape) for x in (exact, magnitude)
    )
    limits = np.finfo(dtype)
    eps = np.finfo("f").eps if dtype.char == "e" else limits.eps
    allowed = 4 * terms * eps * magnitude + limits.eps * np.abs(exact) + limits.smallest_normal
    finite = np.isfinite(exact) & (magnitude < limits.max / 4)
    assert (np.abs(ours - exact) <= allowed)[finite].all()
    special = ~np.isfinite(exact)
    assert not np.isfinite(ours)[special].any()
    if dtype.kind == "f":
        assert np.isnan(ours)[np.isnan(exact)].all()


def computed_in(call):
    asked_for = call.keywords.get("dtype")
    operands = (*(arg.on(call.memory).dtype for arg in call.args), None)
    signature = (None, None, asked_for)
    return np.matmul.resolve_dtypes(operands, signature=signature, casting="unsafe")[2]


@pytest.mark.usefixtures("device")
@profile("matmul")
@given(strategy(matmul_case))
@example(Case("matmul", "call", ("e", "e"), ("C", "C"), "tiny", "in place", "none", "warn", 2600))
def test_fuzz(case):
    numpys, our = pair_of(case)
    call = make_call(case, numpys)
    errors = {"all": "ignore"}  # which flags a product raises on the way depends on the order
    theirs, ours = Outcome(numpys, call, errors), Outcome(our, call, errors)
    assert ours.error == theirs.error and len(ours.results) == len(theirs.results)
    with np.errstate(all="ignore"):
        for a, b in zip(ours.results, theirs.results, strict=True):
            assert type(a) is type(b)
            a, b = np.asarray(a), np.asarray(b)
            assert a.dtype == b.dtype and a.strides == b.strides
            dtype = computed_in(call)
            if dtype.char not in FLOATS:
                assert_same_array(a, b)
            elif dtype == a.dtype:
                assert_near(call, dtype, a)
            if ours.outs:
                a[...] = b  # for what follows
        assert_same_memory(call, ours, theirs)


def test_several_threads_at_once(device):
    rng = np.random.default_rng(5)
    operands = [(operand(rng, (80, 60), "d"), operand(rng, (60, 90), "d")) for _ in range(4)]
    wrong = []

    def work(a, b):
        with nc.config(threads=2):
            for _ in range(20):
                try:
                    assert_right(nc.matmul(a, b), a, b)
                except BaseException as error:
                    wrong.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in operands]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- floating-point errors ----


@pytest.mark.parametrize("dtype", FLOATS)
def test_overflow_and_invalid(device, dtype):
    largest = np.finfo(dtype).max
    one = np.ones((2, 2), dtype)
    with np.errstate(all="raise"):
        nc.matmul(one * np.nan, one)
        if np.dtype(dtype).kind != "c":
            nc.matmul(one * np.inf, one)
            with pytest.raises(FloatingPointError, match="invalid"):
                nc.matmul(one * np.inf, np.zeros((2, 2), dtype))
        with pytest.raises(FloatingPointError, match="overflow"):
            nc.matmul(one * largest, one)
    with np.errstate(all="ignore"):
        assert np.isinf(nc.matmul(one * largest, one).real).all()
    assert on_device()


# ---- precision and kernels ----


def test_what_the_device_cannot_raises(device):
    a = np.ones((4, 4), int)
    with nc.config(gemm="cublas"), pytest.raises(RuntimeError, match=r"(?i)cublas"):
        nc.matmul(a, a)
    assert (nc.matmul(a, a) == 4).all()


def test_long_double_and_objects_run_on_the_cpu(device):
    for dtype in "gGO":
        a = np.ones((3, 3), dtype)
        assert (nc.matmul(a, a) == 3).all()


@pytest.mark.cuda
@pytest.mark.parametrize("gemm", ["cublas", "tiled"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_both_kernels(dtype, gemm):
    rng = np.random.default_rng(6)
    with nc.config(device="cuda", gemm=gemm):
        for m, k, n in [(300, 200, 100), (129, 1000, 257), (1, 500, 1000)]:
            a, b = operand(rng, (m, k), dtype), operand(rng, (k, n), dtype)
            assert_right(nc.matmul(a, b), a, b)
            assert on_device()


@pytest.mark.cuda
@pytest.mark.parametrize("gemm", ["cublas", "tiled"])
@pytest.mark.parametrize("dtype", "fdFD")
def test_errors_are_no_larger_than_numpys(dtype, gemm):
    rng = np.random.default_rng(8)
    a, b = (operand(rng, shape, dtype) for shape in [(256, 4096), (4096, 512)])
    with nc.config(device="cuda", gemm=gemm):
        ours = nc.matmul(a, b)
        assert on_device()
    wide = "G" if dtype in "FD" else "g"
    some = slice(0, 16)
    exact = np.matmul(a[some].astype(wide), b.astype(wide))
    errors = [
        np.sqrt(np.mean(np.abs(result[some] - exact) ** 2)) for result in (ours, np.matmul(a, b))
    ]
    assert errors[0] <= 1.03 * errors[1], errors  # a sample is off by a hundredth


ENVIRONMENTS = {
    "tf32": {"NVIDIA_TF32_OVERRIDE": "1"},
    "double": {"CUBLAS_EMULATE_DOUBLE_PRECISION": "1", "CUBLAS_EMULATION_STRATEGY": "eager"},
    "single": {"CUBLAS_EMULATE_SINGLE_PRECISION": "1", "CUBLAS_EMULATION_STRATEGY": "eager"},
}
PRODUCTS = """
import hashlib, json, numpy as np, numc_ufuncs as nc
found = {}
for dtype in "efdFD":
    a, b = np.random.default_rng(0).standard_normal((2, 1024, 1024))
    if dtype in "FD":
        a, b = a + 1j * b, b - 1j * a
    a, b = a.astype(dtype), b.astype(dtype)
    with nc.config(device="cuda"):
        c = nc.matmul(a, b)
    wide = "G" if np.dtype(dtype).kind == "c" else "g"
    some = slice(0, 16)
    exact = a[some].astype(wide) @ b[:, some].astype(wide)
    magnitude = np.abs(a[some]).astype("g") @ np.abs(b[:, some]).astype("g")
    eps = np.finfo("f" if dtype == "e" else dtype).eps
    allowed = eps * magnitude + (np.finfo("e").eps * np.abs(exact) if dtype == "e" else 0)
    error = float((np.abs(c[some, some] - exact) / allowed).max())
    found[dtype] = error, hashlib.sha256(c.tobytes()).hexdigest()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def products():
    """Per dtype: the error, in terms of that of a sum's first step, and a digest of the bits."""
    return run(PRODUCTS)


@pytest.mark.cuda
def test_results_are_ieee(products):
    assert all(error <= 1 for error, _ in products.values()), products


@pytest.mark.cuda
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_environment_changes_no_bit(products, name):
    found = run(PRODUCTS, **ENVIRONMENTS[name])
    changed = {t: found[t][0] for t in found if found[t][1] != products[t][1]}
    assert not changed, f"dtypes that changed, and their errors: {changed}"


@pytest.mark.cuda
def test_tf32_is_used_when_asked_for():
    a, b = np.random.default_rng(0).standard_normal((2, 512, 512)).astype("f")
    with nc.config(device="cuda"):
        ieee = nc.matmul(a, b)
        with nc.config(precision="tf32"):
            tf32 = nc.matmul(a, b)
    exact = a.astype("d") @ b.astype("d")
    assert np.abs(tf32 - exact).max() > 10 * np.abs(ieee - exact).max()
