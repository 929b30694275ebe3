"""matmul on a device: results, errors, faults, and the choice. The fake device stands for a GPU
everywhere; tests marked `cuda` run on one."""

import json
import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from fuzzing import copy_of, make_call, matmul_case, pair_of
from hypothesis import given
from numpy._core.tests.test_multiarray import MatmulCommon
from numpy.exceptions import ComplexWarning
from test_fuzz import Outcome, assert_same_array, assert_same_memory, profile, strategy

import numc_ufuncs as nc
from numc_ufuncs import _core

DTYPES = "?bBhHiIlLqQefdFD"
FLOATS = "efdFD"


def operand(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.1
    if dtype.kind in "iu":
        return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    values = rng.standard_normal(shape)
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def exact(a, b):
    """The product, in the widest type; integers modulo 2**n."""
    if a.dtype.kind == "b":
        return a.astype(int) @ b.astype(int) > 0
    if a.dtype.kind in "iu":
        with nc.config(device="cpu"):
            return np.matmul(a, b)
    return a.astype("G" if a.dtype.kind == "c" else "g") @ b.astype("G")


def assert_right(result, a, b):
    expected = exact(a, b)
    assert result.dtype == a.dtype and result.shape == expected.shape
    if a.dtype.kind in "biu":
        assert (result == expected).all()
        return
    eps = np.finfo(np.float32 if a.dtype.char == "e" else a.dtype).eps
    magnitude = np.abs(a).astype("d") @ np.abs(b).astype("d")
    allowed = 4 * eps * np.sqrt(a.shape[-1]) * magnitude
    if a.dtype.char == "e":
        allowed = allowed + np.finfo(a.dtype).eps * np.abs(expected)
    assert (np.abs(result - expected) <= allowed).all()


def on_device():
    return nc.last_call()["device"] != "cpu"


# ---- results ----


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
    _core.limit_device_memory(limit)
    try:
        assert_right(nc.matmul(a, b), a, b)
    finally:
        _core.limit_device_memory(0)
    assert on_device()


class TestMatmulOnDevice(MatmulCommon):
    """NumPy's own tests of matmul."""

    matmul = nc.matmul

    @pytest.fixture(autouse=True)
    def forced(self, device):
        yield


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
    exact, magnitude = (np.broadcast_to(x, ours.shape) for x in (exact, magnitude))
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


# ---- options ----


def test_what_the_device_cannot_raises(device):
    a = np.ones((4, 4), int)
    with nc.config(gemm="cublas"), pytest.raises(RuntimeError, match="cuBLAS|cublas"):
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


ENVIRONMENTS = {
    "plain": {},
    "tf32": {"NVIDIA_TF32_OVERRIDE": "1"},
    "double": {"CUBLAS_EMULATE_DOUBLE_PRECISION": "1", "CUBLAS_EMULATION_STRATEGY": "eager"},
    "single": {"CUBLAS_EMULATE_SINGLE_PRECISION": "1", "CUBLAS_EMULATION_STRATEGY": "eager"},
}
ERRORS = """
import json, numpy as np, numc_ufuncs as nc
worst = {}
for dtype in "fdFD":
    a, b = np.random.default_rng(0).standard_normal((2, 1024, 1024))
    a, b = a.astype(dtype), b.astype(dtype)
    with nc.config(device="cuda"):
        c = nc.matmul(a, b)
    wide = "G" if np.dtype(dtype).kind == "c" else "g"
    exact = a[:16].astype(wide) @ b[:, :16].astype(wide)
    ours = np.abs(c[:16, :16] - exact).max()
    theirs = np.abs((a @ b)[:16, :16] - exact).max()
    worst[dtype] = float(ours), float(theirs)
print(json.dumps(worst))
"""


@pytest.mark.cuda
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_results_are_ieee_whatever_the_environment_says(name):
    for dtype, (ours, theirs) in run(ERRORS, **ENVIRONMENTS[name]).items():
        assert ours <= 4 * theirs, f"{dtype}: {ours} against {theirs}"


@pytest.mark.cuda
def test_tf32_is_used_when_asked_for():
    a, b = np.random.default_rng(0).standard_normal((2, 512, 512)).astype("f")
    with nc.config(device="cuda"):
        ieee = nc.matmul(a, b)
        with nc.config(precision="tf32"):
            tf32 = nc.matmul(a, b)
    exact = a.astype("d") @ b.astype("d")
    assert np.abs(tf32 - exact).max() > 10 * np.abs(ieee - exact).max()


# ---- faults ----


@pytest.fixture
def fake():
    _core.use_fake_device(1 << 28)
    yield
    nc.set_config(device=None)
    assert _core.use_fake_device(0) == 0, "the pipeline left objects behind"


@pytest.mark.usefixtures("fake")
class TestFaults:
    """The Nth call of the device fails, for every N until a product needs no more calls."""

    def operands(self):
        rng = np.random.default_rng(0)
        return operand(rng, (120, 130), "l"), operand(rng, (130, 110), "l")

    @pytest.mark.parametrize("warm", [False, True])
    def test_forced_raises(self, warm):
        a, b = self.operands()
        kept, expected = (a.copy(), b.copy()), np.matmul(a, b)
        nc.set_config(device="cuda", threads=2)
        raised, calls, call = 0, 0, 0
        while calls >= call:
            call += 1
            if not warm:
                assert _core.use_fake_device(1 << 28) == 0
            else:
                assert (nc.matmul(a, b) == expected).all()
            before = _core.device_calls()
            _core.fail_device_call(call, False)
            try:
                assert (nc.matmul(a, b) == expected).all()
            except RuntimeError as error:
                assert "not complete" in str(error) and "fake" in str(error)
                raised += 1
            calls = _core.device_calls() - before
            assert (a == kept[0]).all() and (b == kept[1]).all()
            _core.fail_device_call(0, False)
        assert raised >= (10 if warm else 50)

    def test_automatic_falls_back(self):
        a, b = self.operands()
        expected = np.matmul(a, b)
        on_cpu, calls, call = 0, 0, 0
        while calls >= call:
            call += 1
            assert _core.use_fake_device(1 << 28) == 0
            _core.fail_device_call(call, False)
            assert (nc.matmul(a, b) == expected).all()
            calls = _core.device_calls()
            if not on_device():
                assert "fake device failed" in nc.last_call()["reason"]
                on_cpu += 1
        assert on_cpu >= 50

    def test_out_of_memory(self):
        """Smaller panels, then the CPU; forced, MemoryError."""
        a, b = self.operands()
        expected = np.matmul(a, b)
        for memory, device in ((1 << 17, "fake"), (1 << 10, "cpu")):
            assert _core.use_fake_device(memory) == 0
            assert (nc.matmul(a, b) == expected).all()
            assert nc.last_call()["device"] == device
        assert "out of device memory" in nc.last_call()["reason"]
        with nc.config(device="cuda"), pytest.raises(MemoryError, match="out of device memory"):
            nc.matmul(a, b)

    def test_a_lost_device_warns_once(self):
        a = np.ones((200, 200))
        _core.fail_device_call(3, True)
        with pytest.warns(RuntimeWarning, match="'cuda:0' is lost") as warned:
            assert (nc.matmul(a, a) == 200).all()
        assert len(warned) == 1 and not on_device()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (nc.matmul(a, a) == 200).all()
        assert "fake device failed" in nc.last_call()["reason"]
        with nc.config(device="cuda"), pytest.raises(RuntimeError, match="fake device failed"):
            nc.matmul(a, a)


def run(code, **environment):
    """What a new process prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_import_loads_nothing_of_cuda():
    code = (
        "import json, numpy as np, numc_ufuncs as nc\n"
        "nc.matmul(np.ones((50, 50)), np.ones((50, 50)))\n"
        "maps = {line.split()[-1].rpartition('/')[2] for line in open('/proc/self/maps')}\n"
        "print(json.dumps([m for m in maps if 'cuda' in m or 'cublas' in m or 'nvidia' in m]))"
    )
    assert run(code) == []


def test_no_device_raises_when_forced_and_is_no_matter_otherwise():
    code = (
        "import json, numpy as np, numc_ufuncs as nc\n"
        "a = np.ones((300, 300))\n"
        "right = bool((nc.matmul(a, a) == 300).all())\n"
        "try:\n"
        "    with nc.config(device='cuda:0'): nc.matmul(a, a)\n"
        "except RuntimeError as error: message = str(error)\n"
        "print(json.dumps([right, message]))"
    )
    right, message = run(code, CUDA_VISIBLE_DEVICES="")
    assert right and "matmul on device 'cuda:0' failed" in message


FORK = """
import json, os, numpy as np, numc_ufuncs as nc
fake = FAKE
if fake: nc._core.use_fake_device(1 << 28)
a = np.ones((300, 300))
with nc.config(device="cuda"): nc.matmul(a, a)
reader, writer = os.pipe()
if os.fork() == 0:
    right = bool((nc.matmul(a, a) == 300).all())
    try:
        with nc.config(device="cuda"): nc.matmul(a, a)
        message = "no exception"
    except RuntimeError as error: message = str(error)
    os.write(writer, json.dumps([right, nc.last_call()["device"], message]).encode())
    os._exit(0)
os.wait()
with nc.config(device="cuda"): nc.matmul(a, a)
print(os.read(reader, 4096).decode())
"""


@pytest.mark.parametrize("fake", ["True", pytest.param("False", marks=pytest.mark.cuda)])
def test_a_forked_child_computes_on_the_cpu(fake):
    right, device, message = run(FORK.replace("FAKE", fake))
    assert right and device == "cpu" and "forked" in message


# ---- the choice ----


def test_the_start_is_paid_only_when_the_time_lost_exceeds_it():
    """A clock that advances 0.2 s at each look: each call on the CPU seems to take as long."""
    a = np.ones((300, 300), np.int8)
    _core.use_fake_device(1 << 28, 0.2)
    try:
        calls = []
        for _ in range(3):
            nc.matmul(a, a)
            calls.append(nc.last_call())
        assert [call["device"] for call in calls] == ["cpu", "cpu", "fake"]
        assert "starting" in calls[0]["reason"] and "starting" in calls[1]["reason"]
        assert calls[2]["reason"] == "sooner done there"
        with nc.config(device="cpu"):
            nc.matmul(a, a)
        assert nc.last_call()["device"] == "cpu" and nc.last_call()["reason"] == "asked for"
        nc.matmul(np.ones((3, 3)), np.ones((3, 3)))
        assert nc.last_call()["reason"] == "too small for a device"
    finally:
        _core.use_fake_device(0)


def test_a_short_script_does_not_wait_for_a_device():
    a = np.ones((300, 300))
    _core.use_fake_device(1 << 28, 1e-3)
    try:
        for _ in range(20):
            nc.matmul(a, a)
            assert "starting" in nc.last_call()["reason"]
    finally:
        _core.use_fake_device(0)


@pytest.mark.parametrize("sooner", ["fake", "cpu"])
def test_what_was_sooner_is_kept(sooner):
    """By a clock that only runs on one of them, after both had their turns."""
    a = np.ones((200, 200), np.int16)
    _core.use_fake_device(1 << 28)
    try:
        for device in ("cuda", "cpu"):
            _core.set_fake_clock(1.0 if (device == "cpu") == (sooner == "fake") else 1e-6)
            for _ in range(3):
                with nc.config(device=device):
                    nc.matmul(a, a)
        for _ in range(10):
            nc.matmul(a, a)
            assert nc.last_call()["device"] == sooner
    finally:
        _core.use_fake_device(0)


def test_last_call_is_per_thread():
    nc.matmul(np.ones((3, 3)), np.ones((3, 3)))
    seen = []
    thread = threading.Thread(target=lambda: seen.append(nc.last_call()))
    thread.start()
    thread.join()
    assert seen == [None] and nc.last_call()["op"] == "matmul"
