"""Where matmul is computed: faults of the device, forks, the choice, and what is said about it."""

import itertools
import re
import sys
import threading
import types
import warnings
from pathlib import Path

import _numc_test
import numpy as np
import pytest
from devices import on_device, operand, run
from numpy.testing import assert_array_equal

import numc_ufuncs as nc
from numc_ufuncs import _core, _cuda


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


LOADED_AGAIN = """
import json, _numc_test, numpy as np, numc_ufuncs as nc
from numc_ufuncs import _cuda
a, found = np.ones((300, 300)), []
asked = []
def library():
    asked.append(1)
    return "/nonexistent.so"
_cuda.library = library
for device in (3, 3, 1, 1): # cuda, auto: past set_config(), which asks for the device as well
    nc._core.set_process_options(-1, device, -1, -1, -1)
    try:
        nc.matmul(a, a)
        found.append(nc.last_call()["reason"])
    except RuntimeError as error: found.append(str(error))
try: nc.set_config(device="cuda")
except RuntimeError as error: found.append(str(error))
_cuda.library = lambda: _numc_test.__file__
with nc.config(device="cuda"): right = bool((nc.matmul(a, a) == 300).all())
print(json.dumps([found, len(asked), right, nc.last_call()["device"], nc.info()["devices"]]))
"""


def test_a_library_that_did_not_load_is_tried_again_when_asked_for():
    """And by no call that did not ask for a device: those go by what is known."""
    found, asked, right, device, devices = run(LOADED_AGAIN)
    assert all("/nonexistent.so" in text for text in found)
    assert asked == 3 and right and device == "fake"
    assert devices[:3] == ["cpu", "cuda:0 (fake 0)", "cuda:1 (fake 1)"]


INTERRUPTED = """
import json, signal, _numc_test, numpy as np, numc_ufuncs as nc
from numc_ufuncs import _cuda
def on_alarm(*_): raise TimeoutError
signal.signal(signal.SIGALRM, on_alarm)
signal.signal(signal.SIGINT, signal.default_int_handler) # ignored in the background of a shell
class pathfinder:
    DynamicLibNotFoundError = RuntimeError
    def load_nvidia_dynamic_lib(name): signal.raise_signal(SIGNAL)
import sys; sys.modules["cuda.pathfinder"] = pathfinder
_cuda._files = list # wherever this machine has cuBLAS
_cuda.library = lambda: _numc_test.__file__
_numc_test.set_fake_clock(1.0)
nc.set_config(threads=1) # with more, it may pay to start no device
a = np.ones((300, 300))
found = []
for device in ("auto", "auto", "cuda"):
    try:
        with nc.config(device=device): nc.matmul(a, a)
        found.append(nc.last_call()["reason"])
    except BaseException as error: found.append(type(error).__name__)
del sys.modules["cuda.pathfinder"]
with nc.config(device="cuda"): right = bool((nc.matmul(a, a) == 300).all())
print(json.dumps([found, right, nc.last_call()["device"]]))
"""


@pytest.mark.parametrize(
    ("signal", "exception"),
    [("signal.SIGINT", "KeyboardInterrupt"), ("signal.SIGALRM", "TimeoutError")],
)
def test_what_a_signals_handler_raises_reaches_the_caller(signal, exception):
    """While Python is asked where cuBLAS is. The next call starts the device after all."""
    found, right, device = run(INTERRUPTED.replace("SIGNAL", signal))
    assert found == ["starting a device would take longer", exception, exception]
    assert right and device == "fake"


class Finder:
    """Stands for cuda.pathfinder."""

    def __init__(self, error=None):
        self.error, self.asked = error, 0

    def load_nvidia_dynamic_lib(self, name):
        self.asked += 1
        if self.error is not None:
            raise self.error
        return types.SimpleNamespace(abs_path=f"/somewhere/lib{name}.so")


def test_the_finder_is_asked_where_no_folder_has_cublas(monkeypatch):
    """It loads what it finds while the caller waits."""
    finder = Finder()
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", finder)
    monkeypatch.setattr(_cuda, "_files", lambda: ["/a/libcublas.so.13"])
    assert _cuda.blas() == ["/a/libcublas.so.13", *_cuda.CUBLAS] and finder.asked == 0
    monkeypatch.setattr(_cuda, "_files", list)
    assert _cuda.blas() == ["/somewhere/libcublas.so", *_cuda.CUBLAS] and finder.asked == 1


def test_what_the_finder_raises_is_its_own(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.pathfinder", Finder(KeyError("cublas")))
    monkeypatch.setattr(_cuda, "_files", list)
    assert _cuda.blas() == list(_cuda.CUBLAS)


def test_no_library_comes_from_the_working_directory(tmp_path, monkeypatch):
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcublas.so.13").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_cuda, "_by_pathfinder", list)
    for entry, found in (("", False), (".", False), (str(tmp_path), True)):
        monkeypatch.setattr("sys.path", [entry])
        files = [Path(path).resolve() for path in _cuda.blas() if "/" in path]
        assert ((folder / "libcublas.so.13").resolve() in files) == found


@pytest.mark.usefixtures("fake")
def test_a_stack_ends_when_a_product_of_it_failed():
    """NumPy calls the loop once per product where the strides of a stack are uneven."""
    a = np.ones((4, 5, 60, 60))[:, ::2]
    out = np.zeros((4, 3, 60, 60))
    _numc_test.fail_device_call(1, False)
    before = _numc_test.device_calls()
    with nc.config(device="cuda"):
        with pytest.raises(RuntimeError, match="fake device failed"):
            nc.matmul(a, a, out=out)
        assert not out.any()
        assert _numc_test.device_calls() < before + 20
        assert (nc.matmul(a, a) == 60).all()


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


# ---- placement ----


@pytest.fixture
def waiting():
    """The fake device, not started, and a clock that tests set."""
    _numc_test.use_fake_device(1 << 28, False)
    nc.set_config(threads=1)  # with more, it may pay to start no device
    yield
    nc.set_config(threads=None)
    _numc_test.set_fake_clock(0)
    _numc_test.use_fake_device(0)


def test_the_start_is_paid_only_when_the_time_lost_exceeds_it(waiting):
    """A clock that advances 0.2 s at each look: each call on the CPU seems to take as long."""
    a = np.ones((300, 300), np.int8)
    _numc_test.set_fake_clock(0.2)
    calls = []
    for _ in range(5):
        nc.matmul(a, a)
        calls.append(nc.last_call())
        if len(calls) > 3:
            _numc_test.settle_devices()
    assert [call["device"] for call in calls] == ["cpu", "cpu", "cpu", "cpu", "fake"]
    assert all(call["reason"].startswith("starting") for call in calls[:3])
    assert calls[3]["reason"] == "the device is being started"
    assert calls[4]["reason"] == "sooner done there"
    with nc.config(device="cpu"):
        nc.matmul(a, a)
    assert nc.last_call()["device"] == "cpu" and nc.last_call()["reason"] == "asked for"
    nc.matmul(np.ones((3, 3)), np.ones((3, 3)))
    assert nc.last_call()["reason"] == "too small for a device"


def test_a_short_script_does_not_wait_for_a_device(waiting):
    a = np.ones((300, 300))
    _numc_test.set_fake_clock(1e-3)
    for _ in range(20):
        nc.matmul(a, a)
        assert "starting" in nc.last_call()["reason"]


@pytest.mark.parametrize("sooner", ["fake", "cpu"])
def test_equal_calls_are_computed_at_the_same_place(sooner):
    """Whatever other calls, and those on the other side, took."""
    a = np.ones((200, 200), np.int16)
    _numc_test.use_fake_device(1 << 28, True, 1e6 if sooner == "fake" else 0.1)
    try:
        for step in (1e-6, 1, 1e-6):
            _numc_test.set_fake_clock(step)
            for device in ("auto", "cuda", "auto", "cpu", "auto"):
                with nc.config(device=device):
                    nc.matmul(a, a)
                expected = {"cuda": "fake", "cpu": "cpu"}.get(device, sooner)
                assert nc.last_call()["device"] == expected
    finally:
        _numc_test.set_fake_clock(0)
        _numc_test.use_fake_device(0)


RATES = """
import json, _numc_test, numpy as np, numc_ufuncs as nc
_numc_test.use_fake_device(1 << 28, True, 0)
_numc_test.set_fake_clock(STEP)
a = np.ones((200, 200))
nc.matmul(a, a)
measured = _numc_test.device_calls() > 100
path = nc.info()["rates_file"]
text = open(path).read() if path == FILE else None
print(json.dumps([measured, path, text, nc.measure_rates() if RENEW else None]))
"""


# By a clock whose steps are longer than FAST_SECONDS of measure_rates.c: of a fast processor, large
# products are measured, which takes a minute where it is sanitized.
def rates_of_a_process(step, path, renew, **environment):
    code = RATES.replace("STEP", step).replace("FILE", repr(path)).replace("RENEW", str(renew))
    return run(code, **environment)


def test_rates_are_measured_once_per_machine(tmp_path):
    path = tmp_path / "numc_ufuncs" / "rates.txt"

    def rates(step, renew):
        return rates_of_a_process(step, str(path), renew, XDG_CACHE_HOME=str(tmp_path))

    measured, told, first, renewed = rates("1 / 1024", True)
    assert measured and told == str(path) and "fake" in first
    assert renewed["latency_seconds"] == pytest.approx(1 / 1024) and not renewed["disturbed"]
    assert renewed["device"]["float64"] > 0
    # What that process measured when it was asked to is what the next one goes by.
    measured, _, second, renewed = rates("1 / 512", True)
    assert not measured and second == first
    assert renewed["latency_seconds"] == pytest.approx(1 / 512)
    measured, _, third, _ = rates("1 / 1024", False)
    assert not measured and third != first
    assert list(tmp_path.glob("*/*")) == [path]
    of_other_threads = re.sub(r"\t(\d+)\t\d+ ", r"\t\1\t999 ", third)
    for text in (of_other_threads, "nothing that makes sense"):
        path.write_text(text)
        assert rates("1 / 1024", False)[0]


@pytest.mark.parametrize("home", ["", "/proc"])
def test_without_a_home_folder_rates_are_measured_all_the_same(home):
    measured, path, _, _ = rates_of_a_process("1 / 1024", "", False, XDG_CACHE_HOME="", HOME=home)
    assert measured and (path is None) == (home == "")


MEASURED_UNDER_OPTIONS = """
import json, _numc_test, numpy as np, numc_ufuncs as nc
_numc_test.use_fake_device(1 << 28)
with nc.config(threads=3): in_block = nc.measure_rates()["threads"]
nc.set_config(threads=5)
print(json.dumps([in_block, nc.measure_rates()["threads"]]))
"""


def test_rates_are_those_of_the_threads_that_are_used_by_default():
    assert run(MEASURED_UNDER_OPTIONS, NUMC_NUM_THREADS="1") == [1, 1]


@pytest.mark.usefixtures("fake")
def test_a_device_lost_while_it_is_measured_is_given_up():
    _numc_test.use_fake_device(1 << 28, True, 0)
    _numc_test.fail_device_call(20, True)
    a = np.ones((300, 300))
    with pytest.warns(RuntimeWarning, match="'cuda:0' is lost"):
        assert (nc.matmul(a, a) == 300).all()
    assert nc.last_call()["device"] == "cpu"


@pytest.mark.usefixtures("fake")
def test_a_call_does_not_wait_for_another_threads_measurement():
    """The one that measures is held up by its clock until the other one is through."""
    a = np.ones((200, 200))
    looked, through = threading.Event(), threading.Event()
    first = threading.Thread(target=nc.matmul, args=(a, a))
    looks = itertools.count()

    def clock():
        if threading.current_thread() is first:
            looked.set()
            through.wait()
        return next(looks) * 1e-3

    _numc_test.use_fake_device(1 << 28, True, 0)
    _numc_test.set_clock(clock)
    try:
        first.start()
        looked.wait()
        assert (nc.matmul(a, a) == 200).all()
        assert nc.last_call()["reason"] == "another thread is measuring the device"
    finally:
        through.set()
        first.join()
        _numc_test.set_clock(None)


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


def test_rates_need_a_device():
    code = (
        "import json, numc_ufuncs as nc\n"
        "try: print(json.dumps(nc.measure_rates()))\n"
        "except RuntimeError as error: print(json.dumps(str(error)))"
    )
    assert "the rates cannot be measured: " in run(code, CUDA_VISIBLE_DEVICES="")
