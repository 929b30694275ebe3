"""Where matmul is computed: faults of the device, forks, the choice, and what is said about it."""

import threading
import warnings
from pathlib import Path

import _numc_test
import numpy as np
import pytest
from devices import on_device, operand, run
from numpy.testing import assert_array_equal

import numc_ufuncs as nc
from numc_ufuncs import _core


@pytest.fixture
def fake():
    _numc_test.use_fake_device(1 << 28)
    nc.set_config(threads=2)  # with more of them these small products would stay on the processor
    yield
    nc.set_config(device=None, threads=None)
    assert _numc_test.use_fake_device(0) == 0, "the pipeline left objects behind"


@pytest.mark.usefixtures("fake")
class TestFaults:
    """The Nth call of the device fails, for every N until a product needs no more calls."""

    def operands(self):
        rng = np.random.default_rng(0)
        return operand(rng, (120, 130), "l"), operand(rng, (130, 110), "l")

    def error_of(self, a, b, expected):
        try:
            result = nc.matmul(a, b)
        except RuntimeError as error:
            return str(error)
        assert (result == expected).all()
        return None

    @pytest.mark.parametrize("warm", [False, True])
    def test_forced_raises(self, warm):
        a, b = self.operands()
        kept, expected = (a.copy(), b.copy()), np.matmul(a, b)
        nc.set_config(device="cuda")
        raised, calls, call = 0, 0, 0
        while calls >= call:
            call += 1
            if not warm:
                assert _numc_test.use_fake_device(1 << 28) == 0
            else:
                assert (nc.matmul(a, b) == expected).all()
            before = _numc_test.device_calls()
            _numc_test.fail_device_call(call, False)
            message = self.error_of(a, b, expected)
            if message is not None:
                assert "not complete" in message and "fake" in message
                raised += 1
            calls = _numc_test.device_calls() - before
            assert (a == kept[0]).all() and (b == kept[1]).all()
            _numc_test.fail_device_call(0, False)
        assert raised >= (10 if warm else 50)

    def test_automatic_falls_back(self):
        a, b = self.operands()
        expected = np.matmul(a, b)
        on_cpu, calls, call = 0, 0, 0
        while calls >= call:
            call += 1
            assert _numc_test.use_fake_device(1 << 28) == 0
            _numc_test.fail_device_call(call, False)
            assert (nc.matmul(a, b) == expected).all()
            calls = _numc_test.device_calls()
            if not on_device():
                assert "fake device failed" in nc.last_call()["reason"]
                on_cpu += 1
        assert on_cpu >= 50

    def test_out_of_memory(self):
        """Smaller panels, then the CPU; forced, MemoryError."""
        a, b = self.operands()
        expected = np.matmul(a, b)
        for memory, device in ((1 << 17, "fake"), (1 << 10, "cpu")):
            assert _numc_test.use_fake_device(memory) == 0
            assert (nc.matmul(a, b) == expected).all()
            assert nc.last_call()["device"] == device
        assert "out of device memory" in nc.last_call()["reason"]
        with nc.config(device="cuda"), pytest.raises(MemoryError, match="out of device memory"):
            nc.matmul(a, b)

    def test_a_lost_device_warns_once(self):
        a = np.ones((200, 200))
        _numc_test.fail_device_call(3, True)
        with pytest.warns(RuntimeWarning, match="'cuda:0' is lost") as warned:
            assert (nc.matmul(a, a) == 200).all()
        assert len(warned) == 1 and not on_device()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (nc.matmul(a, a) == 200).all()
        assert "fake device failed" in nc.last_call()["reason"]
        with pytest.raises(RuntimeError, match=r"cannot be used: .* fake device failed"):
            nc.config(device="cuda")


def test_import_loads_nothing_of_cuda():
    code = (
        "import json, numpy as np, numc_ufuncs as nc\n"
        "nc.matmul(np.ones((50, 50)), np.ones((50, 50)))\n"
        "maps = {line.split()[-1].rpartition('/')[2] for line in open('/proc/self/maps')}\n"
        "print(json.dumps([m for m in maps if 'cuda' in m or 'cublas' in m or 'nvidia' in m]))"
    )
    assert run(code) == []


def test_no_device_raises_when_asked_for_and_is_no_matter_otherwise():
    code = (
        "import json, numpy as np, numc_ufuncs as nc\n"
        "a = np.ones((300, 300))\n"
        "right = bool((nc.matmul(a, a) == 300).all())\n"
        "try: nc.config(device='cuda:0')\n"
        "except RuntimeError as error: message = str(error)\n"
        "print(json.dumps([right, message]))"
    )
    right, message = run(code, CUDA_VISIBLE_DEVICES="")
    assert right and "device='cuda:0' cannot be used: " in message


FORK = """
import json, os, _numc_test, numpy as np, numc_ufuncs as nc
fake = FAKE
if fake: _numc_test.use_fake_device(1 << 28)
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


@pytest.mark.usefixtures("fake")
def test_what_libraries_compute_for_themselves_raises_nothing():
    """The fake device raises flags whenever it is told of a product, as cuBLAS does at times."""
    a = np.arange(120.0 * 110).reshape(120, 110)
    with nc.config(device="cuda"), np.errstate(all="raise"):
        assert_array_equal(nc.matmul(a, a.T), np.matmul(a, a.T))
        with pytest.raises(FloatingPointError, match="overflow encountered in matmul"):
            nc.matmul(a * 1e300, a.T)


# ---- the choice ----


def test_the_start_is_paid_only_when_the_time_lost_exceeds_it():
    """A clock that advances 0.2 s at each look: each call on the CPU seems to take as long."""
    a = np.ones((300, 300), np.int8)
    _numc_test.use_fake_device(1 << 28, 0.2)
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
        _numc_test.use_fake_device(0)


def test_a_short_script_does_not_wait_for_a_device():
    a = np.ones((300, 300))
    _numc_test.use_fake_device(1 << 28, 1e-3)
    try:
        for _ in range(20):
            nc.matmul(a, a)
            assert "starting" in nc.last_call()["reason"]
    finally:
        _numc_test.use_fake_device(0)


@pytest.mark.parametrize("sooner", ["fake", "cpu"])
def test_what_was_sooner_is_kept(sooner):
    """By a clock that only runs on one of them, after both had their turns."""
    a = np.ones((200, 200), np.int16)
    _numc_test.use_fake_device(1 << 28)
    try:
        for device in ("cuda", "cpu"):
            _numc_test.set_fake_clock(1.0 if (device == "cpu") == (sooner == "fake") else 1e-6)
            for _ in range(3):
                with nc.config(device=device):
                    nc.matmul(a, a)
        for _ in range(10):
            nc.matmul(a, a)
            assert nc.last_call()["device"] == sooner
    finally:
        _numc_test.use_fake_device(0)


MEMORY = """
import json, _numc_test, numpy as np, numc_ufuncs as nc
_numc_test.use_fake_device(1 << 28)
a = np.arange(120 * 110).reshape(120, 110)
with nc.config(device="cuda", threads=1):
    right = bool((nc.matmul(a, a.T) == np.matmul(a, a.T)).all())
print(json.dumps([right, _numc_test.device_calls()]))
"""


def test_the_memory_can_be_limited():
    right, calls = run(MEMORY)
    limited_right, limited_calls = run(MEMORY, NUMC_GPU_MEMORY_LIMIT="70000")
    assert right and limited_right and limited_calls > calls + 20


def test_a_bad_limit_warns():
    code = (
        "import json, warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    import numc_ufuncs\n"
        "print(json.dumps([str(w.message) for w in caught]))"
    )
    (message,) = run(code, NUMC_GPU_MEMORY_LIMIT="1 GB")
    assert "NUMC_GPU_MEMORY_LIMIT" in message and "a number of bytes" in message


def test_last_call_is_per_thread():
    nc.matmul(np.ones((3, 3)), np.ones((3, 3)))
    seen = []
    thread = threading.Thread(target=lambda: seen.append(nc.last_call()))
    thread.start()
    thread.join()
    assert seen == [None] and nc.last_call()["op"] == "matmul"


def test_the_shipped_extension_has_nothing_for_tests():
    """But for one capsule, by which the test extension reaches it."""
    binary = Path(_core.__file__).read_bytes()
    for word in (b"fake", b"NUMC_PARALLEL_THRESHOLD", b"NUMC_CGROUP_ROOT"):
        assert word not in binary
    for name in vars(_numc_test):
        assert name.startswith("_") or not hasattr(_core, name)
    assert type(_core._internals).__name__ == "PyCapsule"
