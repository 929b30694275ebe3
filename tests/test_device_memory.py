"""memory="pinned" and "managed": arrays in memory that a GPU reaches. The fake device stands for a
GPU everywhere; tests marked `cuda` run on one."""

import contextlib
import ctypes
import faulthandler
import gc
import json
import mmap
import os
import pickle
import random
import signal
import threading
import warnings

import _numc_test
import numpy as np
import pytest
from devices import DTYPES, assert_right, operand, run
from numpy.testing import assert_array_equal

import numc_ufuncs as nc
from numc_ufuncs import _core
from numc_ufuncs._device_memory import kind_of

MIB = 1 << 20
FROM = 1 << 10  # KEPT_DEVICE_FROM_BYTES
PIECE = 2 * MIB  # KEEPER_PIECE_BYTES
MEMORY = 1 << 28  # of the fake device

ignore_forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture(params=["fake", pytest.param("cuda", marks=pytest.mark.cuda)])
def gpu(request):
    """The fake device, and a GPU where there is one."""
    if request.param == "fake":
        _numc_test.use_fake_device(MEMORY)
    yield request.param
    nc.set_config(memory=None, device=None, threads=None)
    gc.collect()
    nc.memory.release()
    if request.param == "fake":
        assert _numc_test.use_fake_device(0) == 0, "objects are left behind"


@pytest.fixture
def fake():
    _numc_test.use_fake_device(MEMORY)
    yield
    nc.set_config(memory=None, device=None, threads=None)
    gc.collect()
    nc.memory.release()
    assert _numc_test.use_fake_device(0) == 0, "objects are left behind"


@pytest.fixture(params=["pinned", "managed"])
def memory(request, gpu):
    """For the whole process."""
    nc.set_config(memory=request.param)
    return request.param


def address(array):
    return array.ctypes.data


def kept():
    return nc.info()["memory_kept"]


def status_of_child(work):
    """How a forked child ends that does this: 0 if it is true."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


class TestArrays:
    def test_what_numpy_makes_is_there(self, memory):
        x = np.arange(1000.0)
        made = [
            x,
            np.empty((30, 40)),
            np.zeros(5000, "B"),
            x + 1,
            np.sort(x),
            nc.add(x, x),
            x.astype("f"),
            np.concatenate([x, x]),
            nc.matmul(np.ones((50, 50)), np.ones((50, 50))),
        ]
        for array in made:
            assert type(array) is np.ndarray and kind_of(array) == memory
            assert kind_of(array[3:7]) == kind_of(array[::-1]) == memory
            assert address(array) % mmap.PAGESIZE == 0
        assert nc.get_config()["memory"] == nc.info()["memory"] == memory
        nc.set_config(memory=None)
        assert kind_of(x + 1) == "ordinary"
        assert all(kind_of(array) == memory for array in made)

    def test_small_arrays_are_numpys(self, memory):
        assert kind_of(np.empty(FROM - 1, "B")) == "ordinary"
        assert kind_of(np.empty(FROM, "B")) == memory
        assert kind_of(np.empty(0)) == kind_of(np.float64(3).reshape(())) == "ordinary"

    def test_a_block(self, gpu):
        for memory in ("pinned", "managed"):
            with nc.config(memory=memory):
                x = np.ones(1000)
                with nc.config(memory="system"):
                    assert kind_of(np.ones(1000)) == "ordinary"
            assert kind_of(x) == memory and kind_of(np.ones(1000)) == "ordinary"
            assert x.sum() == 1000

    def test_threads_see_what_set_config_set(self, memory):
        found = []
        thread = threading.Thread(target=lambda: found.append(kind_of(np.ones(1000))))
        thread.start()
        thread.join()
        assert found == [memory]

    def test_zeros(self, memory):
        for size in (FROM, 100_000, 5 * MIB):
            for _ in range(3):
                array = np.zeros(size, "B")
                assert kind_of(array) == memory and not array.any()
                array[:] = 7

    def test_sizes(self, memory):
        """Each array is written to as a whole, and none to another."""
        rng = random.Random(1)
        arrays = []
        for i in range(1500):
            size = int(2 ** rng.uniform(10, 20))
            array = np.full(size, i % 251, np.uint8)
            arrays.append((i % 251, array))
            if len(arrays) > 60:
                mark, array = arrays.pop(rng.randrange(len(arrays)))
                assert (array == mark).all()
        assert all((array == mark).all() for mark, array in arrays)

    @pytest.mark.parametrize("before", [FROM, 5000, MIB, 3 * MIB])
    @pytest.mark.parametrize("after", [10, FROM, 5001, 2 * MIB, 9 * MIB])
    def test_resize(self, memory, before, after):
        array = np.random.default_rng(0).integers(1, 255, before, np.uint8)
        expected = array[:after].tolist()
        array.resize(after, refcheck=False)
        assert array[:before].tolist() == expected
        assert not array[before:].any()
        assert kind_of(array) == (memory if after >= FROM else "ordinary")

    def test_resize_refused(self, memory):
        array = np.ones(MIB, np.uint8)
        nc.set_config(memory=None)
        with pytest.raises(MemoryError):
            array.resize(1 << 60, refcheck=False)
        assert array.sum() == MIB and kind_of(array) == memory

    def test_pickling(self, memory):
        array = np.arange(5000.0)
        text = pickle.dumps(array)
        again = pickle.loads(text)
        assert_array_equal(again, array)
        assert kind_of(again) in (memory, "ordinary")  # it may be a view of the text's bytes
        nc.set_config(memory=None)
        again = pickle.loads(text)
        assert_array_equal(again, array)
        assert kind_of(again) == "ordinary"

    def test_freed_by_another_thread(self, memory):
        arrays = [np.ones(MIB, np.uint8)]
        first = address(arrays[0])
        thread = threading.Thread(target=arrays.clear)
        thread.start()
        thread.join()
        assert address(np.ones(MIB, np.uint8)) == first

    def test_many_threads(self, memory):
        failures = []

        def work(number):
            rng = random.Random(number)
            held = []
            try:
                for turn in range(200):
                    held.append(np.full(rng.choice([FROM, 9000, 50_000, MIB]), number, np.uint8))
                    if not (held[rng.randrange(len(held))] == number).all():
                        failures.append((number, turn))
                    if len(held) > 5:
                        del held[rng.randrange(len(held))]
                    if turn % 50 == 0:
                        nc.memory.release()
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []


class TestKeeping:
    def test_the_very_block(self, memory):
        array = np.ones(3 * MIB, np.uint8)
        first = address(array)
        del array
        assert kept() >= 3 * MIB
        assert address(np.empty(3 * MIB, np.uint8)) == first

    def test_also_after_a_block(self, gpu):
        """To be pinned takes longer than anything that is done with an array."""
        for memory in ("pinned", "managed"):
            with nc.config(memory=memory):
                array = np.ones(3 * MIB, np.uint8)
            del array
            assert kept() == 3 * MIB
            assert nc.memory.release() == 3 * MIB

    def test_release(self, memory):
        large, small = np.ones(3 * MIB, np.uint8), np.ones(5000)
        del large
        assert nc.memory.release() == 3 * MIB
        before = kept()
        assert before < PIECE and nc.memory.release() == 0  # a part of the piece is in use
        assert small.sum() == 5000
        del small
        assert nc.memory.release() == PIECE and kept() == 0

    def test_the_limit(self, memory):
        _numc_test.limit_memory(8 * MIB)
        try:
            arrays = [np.ones(3 * MIB, np.uint8) for _ in range(4)]
            arrays.clear()
            assert 3 * MIB <= kept() <= 8 * MIB
            assert nc.info()["memory_limit"] == 8 * MIB
            np.ones(9 * MIB, np.uint8)
            assert kept() <= 8 * MIB
        finally:
            _numc_test.read_memory(None)

    def test_after_a_while(self, memory):
        _numc_test.set_memory_clock(1000)
        try:
            np.ones(3 * MIB, np.uint8)
            assert kept() == 3 * MIB
            nc.set_config(memory=None)  # gives back, too
            assert kept() == 0
            nc.set_config(memory=memory)
            np.ones(3 * MIB, np.uint8)
            _numc_test.set_memory_clock(1011)
            np.ones(9 * MIB, np.uint8)
            assert kept() == 9 * MIB
        finally:
            _numc_test.set_memory_clock(-1)


class TestBudget:
    """Never more managed memory than the device has room for."""

    def test_all_blocks_count(self, fake):
        arrays = []
        with nc.config(memory="managed"):
            with pytest.warns(RuntimeWarning, match=r"memory='managed': 33554432 bytes do not fit"):
                with pytest.raises(MemoryError):
                    for _ in range(20):
                        arrays.append(np.zeros(32 * MIB, np.uint8))
            assert len(arrays) == 8  # though none lies there
            arrays.pop()
            arrays.append(np.zeros(32 * MIB, np.uint8))
            assert kind_of(np.zeros(3)) == "ordinary"
            del arrays[:2]
            arrays.append(np.zeros(64 * MIB, np.uint8))  # what is kept makes room

    def test_those_that_lie_there_count_once(self, fake):
        with nc.config(memory="managed"):
            arrays = []
            for _ in range(8):
                arrays.append(np.zeros(32 * MIB, np.uint8))
                nc.memory.prefetch(arrays[-1], "cuda")

    def test_what_others_took_counts(self, fake):
        """Here: operands that a large product has on the device."""
        a = np.ones((200, 200))
        with nc.config(device="cuda"):
            nc.matmul(a, a)
        with nc.config(memory="managed"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            with pytest.raises(MemoryError):
                np.zeros(MEMORY + 1, np.uint8)
            assert kind_of(np.zeros(MIB)) == "managed"

    def test_the_limit_of_the_environment(self):
        code = (
            "import json, warnings, _numc_test, numpy as np, numc_ufuncs as nc\n"
            "_numc_test.use_fake_device(1 << 28)\n"
            "nc.set_config(memory='managed')\n"
            "a = np.ones(1 << 20)\n"
            "warnings.simplefilter('ignore')\n"
            "try: np.ones(1 << 20)\n"
            "except MemoryError: print(json.dumps(bool(a.sum() == 1 << 20)))"
        )
        assert run(code, NUMC_GPU_MEMORY_LIMIT=str(10 * MIB)) is True


class TestErrors:
    @pytest.mark.skipif(nc.info()["cuda"] == "ready", reason="there is a GPU")
    @pytest.mark.parametrize("name", ["pinned", "managed"])
    def test_no_device(self, name):
        for set_options in (nc.set_config, nc.config):
            with pytest.raises(RuntimeError, match=f"memory='{name}' cannot be used: .+"):
                set_options(memory=name, threads=1)
        assert nc.get_config()["memory"] == "system"

    def test_of_the_environment(self):
        code = (
            "import json, warnings\n"
            "with warnings.catch_warnings(record=True) as caught:\n"
            "    warnings.simplefilter('always')\n"
            "    import numc_ufuncs as nc\n"
            "print(json.dumps([[str(w.message) for w in caught], nc.get_config()['memory']]))"
        )
        messages, memory = run(code, NUMC_MEMORY="managed", CUDA_VISIBLE_DEVICES="")
        assert memory == "system" and "memory='managed' cannot be used" in messages[0]

    def test_no_concurrent_access(self, fake):
        _numc_test.refuse_managed("concurrentManagedAccess is 0")
        with pytest.raises(RuntimeError, match="'managed' cannot be used: concurrentManagedAccess"):
            nc.config(memory="managed")
        with nc.config(memory="pinned"):
            assert kind_of(np.ones(1000)) == "pinned"

    def test_a_refusal_is_told(self, fake):
        with nc.config(memory="pinned"):
            _numc_test.fail_device_call(1, False)
            with pytest.warns(RuntimeWarning, match="memory='pinned': .* fake device failed"):
                with pytest.raises(MemoryError):
                    np.ones(1000)
            assert kind_of(np.ones(1000)) == "pinned"

    def test_a_lost_device(self, fake):
        with nc.config(memory="pinned"):
            before = np.ones(1000)
            _numc_test.fail_device_call(1, True)
            with pytest.warns(RuntimeWarning, match="arrays are in ordinary memory from now on"):
                array = np.full(3 * MIB, 3, np.uint8)
            assert kind_of(array) == "ordinary" and array.sum() == 9 * MIB
            assert kind_of(np.ones(1000)) == "ordinary"
            assert before.sum() == 1000
        with pytest.raises(RuntimeError, match="memory='pinned' cannot be used: .*refused"):
            nc.config(memory="pinned")
        del before
        # Memory of a lost device is left. The next fixture's device is another.
        _numc_test.use_fake_device(MEMORY)

    def test_every_call_failing_once(self, fake):
        rng = np.random.default_rng(0)
        system = [rng.integers(-9, 9, (60, 70)).astype("d"), rng.integers(-9, 9, (70, 50)) * 1.0]
        expected = system[0] @ system[1]
        for memory in ("pinned", "managed"):
            for forced in (False, True):
                failed, nth = 0, 0
                while True:
                    nth += 1
                    assert _numc_test.use_fake_device(MEMORY) == 0
                    _numc_test.fail_device_call(nth, False)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", RuntimeWarning)
                        try:
                            with nc.config(memory=memory, device="cuda" if forced else "auto"):
                                a, b = system[0].copy(), system[1].copy()
                                result = nc.matmul(a, b)
                                if memory == "managed":
                                    nc.memory.prefetch(result, "cpu")
                            assert_array_equal(result, expected)
                        except (MemoryError, RuntimeError):
                            failed += 1
                    a = b = result = None
                    if _numc_test.device_calls() < nth:
                        break
                    nc.memory.release()
                nc.memory.release()
                assert failed > (5 if forced else 0)


class TestForks:
    @ignore_forks
    def test_a_warning(self, fake):
        with nc.config(memory="managed"):
            array = np.ones(1000)
            with pytest.warns(RuntimeWarning, match="bytes of managed memory.*SIGSEGV"):
                assert status_of_child(lambda: True) == 0
            del array
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                assert status_of_child(lambda: True) == 0

    @ignore_forks
    @pytest.mark.filterwarnings("ignore:.*managed memory.*:RuntimeWarning")
    def test_a_child_that_reads_managed_memory_dies(self, gpu):
        with nc.config(memory="managed"):
            array = np.ones(1000)

        def work():
            faulthandler.disable()
            return array.sum() == 1000

        assert os.WTERMSIG(status_of_child(work)) == signal.SIGSEGV
        assert array.sum() == 1000

    @ignore_forks
    def test_pinned_memory_can_be_read(self, gpu):
        with nc.config(memory="pinned"):
            array = np.arange(5000)
        assert status_of_child(lambda: array.sum() == 4999 * 2500) == 0

    @ignore_forks
    @pytest.mark.filterwarnings("ignore:.*managed memory.*:RuntimeWarning")
    def test_a_child_makes_ordinary_arrays(self, memory):
        arrays = [np.ones(1000), np.ones(MIB)]
        places = [range(address(x), address(x) + x.nbytes) for x in arrays]

        def work():
            made = [np.full(MIB, 2, np.uint8) for _ in range(5)]
            with nc.config(memory="cached"):
                made += [np.full(size, 2, np.uint8) for size in (PIECE, PIECE, 9 * MIB, MIB)]
            right = all(kind_of(x) == "ordinary" and (x == 2).all() for x in made)
            # No memory is where that of the parent's arrays was, which are freed here as well.
            apart = not any(address(x) in place for x in made for place in places)
            arrays.clear()
            gc.collect()
            return right and apart and all((x == 2).all() for x in made)

        assert status_of_child(work) == 0
        assert kind_of(np.ones(1000)) == memory and arrays[1].sum() == MIB

    @ignore_forks
    def test_asked_for_in_a_child(self, gpu):
        with nc.config(memory="pinned"):
            np.ones(1000)

        def work():
            try:
                nc.config(memory="pinned")
            except RuntimeError as error:
                return "forked" in str(error)

        assert status_of_child(work) == 0


END = """
import json, os, sys, threading, _numc_test, numpy as np, numc_ufuncs as nc
if FAKE: _numc_test.use_fake_device(1 << 28)
before = np.ones(100_000)
class Late:
    def __init__(self): self.array = np.ones(100_000)
    def __del__(self): self.more = np.ones(5_000_000); self.array = None
for memory in ("pinned", "managed"):
    nc.set_config(memory=memory)
    arrays = [np.ones(100_000) for _ in range(4)] + [np.ones(3_000_000)]
    cycle = [np.ones(100_000), Late()]
    cycle.append(cycle)
    setattr(sys, memory, [arrays, cycle, Late()])
    del arrays[0]
    if memory == "managed": view = nc.memory.device_view(arrays[0]).__dlpack__()
    threading.Thread(target=lambda: arrays.append(np.ones(100_000))).start()
print(json.dumps(True))
"""


@pytest.mark.parametrize("fake", ["True", pytest.param("False", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("environment", [{}, {"PYTHONDEVMODE": "1"}])
def test_the_end_of_a_program(fake, environment):
    assert run(END.replace("FAKE", fake), **environment) is True


# ---- products ----


def strided(rng, shape, dtype):
    """The same matrix in several layouts, all in the memory in effect."""
    a = operand(rng, shape, dtype).copy()
    wide = np.zeros((shape[0], shape[1] + 7), a.dtype)
    wide[:, 3:-4] = a
    sparse = np.zeros((2 * shape[0], 2 * shape[1]), a.dtype)
    sparse[::2, ::2] = a
    turned = a[::-1].copy()
    return [a, np.asfortranarray(a), wide[:, 3:-4], sparse[::2, ::2], turned[::-1]]


class TestProducts:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_layouts(self, memory, dtype):
        rng = np.random.default_rng(0)
        with nc.config(device="cuda", threads=3):
            for m, k, n in [(1, 1, 1), (40, 50, 30), (1, 70, 33), (3, 90, 290)]:
                for a in strided(rng, (m, k), dtype):
                    for b in strided(rng, (k, n), dtype)[:: 1 if m > 3 else 3]:
                        assert_right(nc.matmul(a, b), a, b)
                        out = np.empty((n, m), a.dtype).T
                        nc.matmul(a, b, out=out)
                        assert_right(out, a, b)

    @pytest.mark.parametrize("dtype", "ldD")
    def test_stacks(self, memory, dtype):
        rng = np.random.default_rng(0)
        with nc.config(device="cuda"):
            for shapes in [
                ((5, 20, 30), (5, 30, 40)),
                ((5, 20, 30), (30, 40)),
                ((2, 3, 9, 9),) * 2,
            ]:
                a, b = (operand(rng, shape, dtype).copy() for shape in shapes)
                assert_right(nc.matmul(a, b), a, b)
                assert_right(
                    nc.matmul(a[::2], b if b.ndim == 2 else b[::2]),
                    a[::2],
                    b if b.ndim == 2 else b[::2],
                )

    @pytest.mark.parametrize("dtype", "efdFD")
    def test_large(self, memory, dtype):
        """Rows that are copied by themselves, panels, and symmetric results."""
        rng = np.random.default_rng(0)
        a = operand(rng, (60, 1100), dtype).copy()
        with nc.config(device="cuda"):
            for x in (a, a[:, 3:-9], a.T[:150], a[::2]):
                y = x.T.copy()
                result = nc.matmul(x, y)
                assert_right(result, x, y)
                result = nc.matmul(x, x.T)
                assert_right(result, x, x.T)
                assert (result == result.T).all()

    def test_nothing_is_copied(self, fake):
        """Calls of the device do not grow with the product, and no thread copies."""
        calls = []
        with nc.config(memory="managed", device="cuda"):
            for n in (100, 100, 300):
                a = np.ones((n, n))
                out = np.empty((n, n))
                before = _numc_test.device_calls()
                nc.matmul(a, a, out=out)
                calls.append(_numc_test.device_calls() - before)
                assert nc.last_call()["threads"] == 1 and (out == n).all()
        assert calls[1] == calls[2] < 10

    def test_pinned_operands_need_no_thread_that_copies(self, fake):
        with nc.config(memory="pinned", device="cuda", threads=4):
            a, wide = np.ones((300, 300)), np.ones((300, 600))
            for b in (a, a.T, wide[:, :300]):
                assert (nc.matmul(a, b) == 300).all()
                assert nc.last_call()["threads"] == 1
        ordinary = np.ones((300, 300))
        with nc.config(memory="pinned", device="cuda", threads=4):
            assert (nc.matmul(a, ordinary) == 300).all()
            assert nc.last_call()["threads"] > 1

    def test_unaligned(self, memory):
        """NumPy's complex numbers are aligned to their halves."""
        rng = np.random.default_rng(0)
        with nc.config(device="cuda"):
            for dtype, offset in (("D", 8), ("F", 4), ("d", 3)):
                text = np.empty(100 * 90 * 16 + 8, np.uint8)
                a = text[offset:][: 9000 * np.dtype(dtype).itemsize].view(dtype).reshape(100, 90)
                a[:] = operand(rng, (100, 90), dtype)
                b = operand(rng, (90, 80), dtype).copy()
                out = nc.matmul(a, b)
                assert_right(out, a, b)

    @pytest.mark.parametrize("dtype", "efdFD")
    def test_floating_point_errors(self, memory, dtype):
        a = np.ones((300, 300), dtype)
        with nc.config(device="cuda"), np.errstate(all="raise"):
            assert (nc.matmul(a, a) == 300).all()
            if dtype in "efd":
                a[7, 9] = np.inf
                assert np.isinf(nc.matmul(a, a[:, :1].copy())[7])
            a[:] = np.finfo(a.dtype).max
            with pytest.raises(FloatingPointError, match="overflow encountered in matmul"):
                nc.matmul(a, a)
            a[:] = 0
            a[5, 5] = np.inf
            with pytest.raises(FloatingPointError, match="invalid value encountered in matmul"):
                nc.matmul(a, a)

    def test_where_auto_computes(self, fake):
        """Without their transfer, products pay on the device that do not with it."""
        a = np.ones((300, 300))
        _numc_test.use_fake_device(MEMORY, True, 1)
        try:
            with nc.config(memory="managed"):
                b = np.ones((300, 300))
                fast = [nc.matmul(b, b)]
                assert nc.last_call()["device"] == "cpu"  # equally fast
            fast.clear()
            del b
            _numc_test.use_fake_device(MEMORY, True, 1e6)
            with nc.config(memory="managed"):
                b = np.ones((300, 300))
                assert (nc.matmul(b, b) == 300).all()
                assert nc.last_call()["device"] == "fake"
                with nc.config(device="cpu"):
                    assert (nc.matmul(b, b) == 300).all()
                    assert nc.last_call()["device"] == "cpu"
            del b
        finally:
            _numc_test.use_fake_device(MEMORY)
        assert (nc.matmul(a, a) == 300).all()


# ---- sharing ----


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("manager", ctypes.c_void_p),
        ("delete", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def held_by(capsule, name, kind):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return kind.from_address(get(capsule, name))


def described(tensor):
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    device = (tensor.device_type, tensor.device_id)
    return device, tensor.data + tensor.byte_offset, shape, strides, (tensor.code, tensor.bits)


@pytest.mark.usefixtures("gpu")
class TestViews:
    def arrays(self):
        with nc.config(memory="managed"):
            x = np.arange(6000.0).reshape(60, 100)
            return [x, x.T, x[3:50:2, 10:90:3], x[::-1], x.astype("f")[5:], x > 3, x + 1j]

    def test_cuda_array_interface(self):
        for array in self.arrays():
            described = nc.memory.device_view(array).__cuda_array_interface__
            assert described["version"] == 3 and described["stream"] is None
            assert described["data"] == (address(array), False)
            assert described["shape"] == array.shape and described["typestr"] == array.dtype.str
            strides = None if array.flags.c_contiguous else array.strides
            assert described["strides"] == strides
        array.flags.writeable = False
        view = nc.memory.device_view(array)
        assert view.__cuda_array_interface__["data"] == (address(array), True)

    @pytest.mark.parametrize("stream", [None, -1, 1, 2, 0x7F001234])
    def test_dlpack(self, stream):
        codes = {"f": 2, "b": 6, "c": 5}
        for array in self.arrays():
            view = nc.memory.device_view(array)
            assert view.__dlpack_device__() == (2, 0)
            expected = (
                (2, 0),
                address(array),
                array.shape,
                tuple(step // array.itemsize for step in array.strides),
                (codes[array.dtype.kind], 8 * array.itemsize),
            )
            capsule = view.__dlpack__(stream=stream)
            tensor = held_by(capsule, b"dltensor", Tensor)
            found = described(tensor)
            assert found == expected or (array.flags.c_contiguous and found[3] is None)

    @pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="no versions")
    def test_dlpack_versions(self):
        for array in self.arrays():
            for writeable in (True, False):
                array.flags.writeable = writeable
                view = nc.memory.device_view(array)
                capsule = view.__dlpack__(max_version=(1, 0), dl_device=(2, 0), copy=False)
                held = held_by(capsule, b"dltensor_versioned", Versioned)
                assert held.version[0] == 1 and held.flags & 1 == (not writeable)
                assert described(held.tensor)[:3] == ((2, 0), address(array), array.shape)
            with pytest.raises(BufferError):
                view.__dlpack__()  # which cannot say that it is read-only

    def test_lifetime(self):
        before = _core.managed_in_use()
        with nc.config(memory="managed"):
            array = np.arange(5000.0)
        view = nc.memory.device_view(array[10:20])
        capsule = view.__dlpack__()
        del array
        assert _core.managed_in_use() > before
        del view
        tensor = held_by(capsule, b"dltensor", Tensor)
        assert ctypes.c_double.from_address(tensor.data).value == 10
        del capsule
        assert _core.managed_in_use() == before

    @pytest.mark.parametrize("stream", [0, -2, True, 1.0, "1"])
    def test_bad_streams(self, stream):
        view = nc.memory.device_view(self.arrays()[0])
        with pytest.raises(ValueError, match="stream must be None, -1, or"):
            view.__dlpack__(stream=stream)

    def test_what_cannot_be(self):
        array = self.arrays()[0]
        view = nc.memory.device_view(array)
        with pytest.raises(BufferError, match="dl_device must be"):
            view.__dlpack__(dl_device=(1, 0))
        with pytest.raises(BufferError, match="copy must be"):
            view.__dlpack__(copy=True)
        with nc.config(memory="managed"):
            swapped, objects = array.astype(">f8"), np.zeros(500, "O")
        with pytest.raises(BufferError):
            nc.memory.device_view(swapped).__dlpack__()
        with pytest.raises(TypeError, match="objects"):
            _ = nc.memory.device_view(objects).__cuda_array_interface__
        for wrong in ([1.0], 3, None, array.data):
            with pytest.raises(TypeError, match="array must be a numpy.ndarray, not"):
                nc.memory.device_view(wrong)

    def test_other_memory(self):
        small = np.ones(10)
        with nc.config(memory="pinned"):
            pinned = np.ones(1000)
        with nc.config(memory="managed"):
            managed = np.ones(1000)
        for array in (small, pinned, np.ones(MIB), np.empty(0), managed[:0]):
            with pytest.raises(ValueError, match="array must be in managed memory, and is in "):
                nc.memory.device_view(array)
            with pytest.raises(ValueError, match="array must be in managed memory, and is in "):
                nc.memory.prefetch(array, "cpu")
        with pytest.raises(ValueError, match="device must be 'cpu' or 'cuda': got 'gpu'"):
            nc.memory.prefetch(managed, "gpu")

    def test_prefetch(self):
        for array in self.arrays():
            expected = array.copy()
            for device in ("cuda", "cuda", "cpu", "cuda"):
                nc.memory.prefetch(array, device)
            assert_array_equal(array, expected)


def test_without_a_gpu_views_say_what_is_missing():
    with pytest.raises(ValueError, match="array must be in managed memory, and is in ordinary"):
        nc.memory.device_view(np.ones(1000))


# ---- libraries that compute on a GPU ----


@pytest.fixture
def managed():
    with nc.config(memory="managed"):
        array = np.arange(3000.0, dtype="f").reshape(30, 100)
    yield array
    nc.memory.release()


@pytest.mark.cuda
class TestNeighbours:
    """The same pointer, both ways."""

    def test_cupy(self, managed):
        cupy = pytest.importorskip("cupy")
        for array in (managed, managed.T, managed[::2, 5:]):
            view = nc.memory.device_view(array)
            for shared in (cupy.asarray(view), cupy.from_dlpack(view)):
                assert shared.data.ptr == address(array) and shared.shape == array.shape
                expected = array + 1
                shared += 1
                cupy.cuda.get_current_stream().synchronize()
                assert_array_equal(array, expected)

    def test_memory_of_cupy(self, managed):
        """Managed and pinned memory that CuPy made."""
        cupy = pytest.importorskip("cupy")
        memory = cupy.cuda.malloc_managed(4 * MIB)
        text = (ctypes.c_char * (4 * MIB)).from_address(memory.ptr)
        array = np.frombuffer(text, "f").reshape(1024, 1024)
        array[:] = 1
        assert kind_of(array) == "managed"
        with nc.config(device="cuda"):
            out = np.frombuffer(text, "f").reshape(1024, 1024)[:512].T
            assert (nc.matmul(array, array) == 1024).all()
            assert nc.last_call()["device"] != "cpu"
        assert cupy.asarray(nc.memory.device_view(array)).data.ptr == memory.ptr
        pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(MIB), "f", 1000)
        assert kind_of(pinned) == "pinned"
        del out

    def test_arrays_of_cupy_stay_with_cupy(self):
        cupy = pytest.importorskip("cupy")
        x = cupy.arange(1000.0)
        result = nc.add(x, x)
        assert isinstance(result, cupy.ndarray)
        assert_array_equal(result.get(), 2 * np.arange(1000.0))

    def test_torch(self, managed):
        torch = pytest.importorskip("torch")
        for array in (managed, managed.T, managed[::2, 5:]):
            view = nc.memory.device_view(array)
            for shared in (torch.from_dlpack(view), torch.as_tensor(view, device="cuda")):
                assert shared.data_ptr() == address(array) and tuple(shared.shape) == array.shape
                assert shared.device.type == "cuda"
                expected = array + 1
                shared += 1
                torch.cuda.synchronize()
                assert_array_equal(array, expected)

    def test_torch_on_a_stream_of_its_own(self, managed):
        torch = pytest.importorskip("torch")
        with torch.cuda.stream(torch.cuda.Stream()):
            for turn in range(50):
                managed[:] = turn
                shared = torch.from_dlpack(nc.memory.device_view(managed))
                shared *= 2
                torch.cuda.current_stream().synchronize()
                assert (managed == 2 * turn).all()

    def test_numba(self, managed):
        cuda = pytest.importorskip("numba.cuda")
        if not cuda.is_available():
            pytest.skip("numba finds no GPU")
        shared = cuda.as_cuda_array(nc.memory.device_view(managed))
        assert shared.device_ctypes_pointer.value == address(managed)
        assert_array_equal(shared.copy_to_host(), managed)

    def test_jax(self, managed):
        jax = pytest.importorskip("jax")
        with contextlib.suppress(RuntimeError):
            if not jax.devices("cuda"):
                pytest.skip("JAX finds no GPU")
        shared = jax.dlpack.from_dlpack(nc.memory.device_view(managed))
        assert shared.unsafe_buffer_pointer() == address(managed)
        assert_array_equal(np.asarray(shared + 1), managed + 1)

    def test_views_outlive_arrays(self):
        torch = pytest.importorskip("torch")
        before = _core.managed_in_use()
        with nc.config(memory="managed"):
            shared = torch.from_dlpack(nc.memory.device_view(np.full(5000, 3.0)))
        gc.collect()
        assert _core.managed_in_use() > before and float(shared.sum()) == 15000
        del shared
        assert _core.managed_in_use() == before


def test_import_prepares_nothing():
    """Neither the handler nor hooks of forks, before somebody asks."""
    code = (
        "import json, os, atexit\n"
        "hooks = []\n"
        "os.register_at_fork = lambda **names: hooks.append(list(names))\n"
        "import numpy as np, numc_ufuncs as nc, _numc_test\n"
        "first = list(hooks)\n"
        "_numc_test.use_fake_device(1 << 28)\n"
        "for _ in range(2): nc.config(memory='managed')\n"
        "print(json.dumps([first, hooks]))"
    )
    first, hooks = run(code)
    assert ["before"] not in first and hooks.count(["before"]) == 1
    json.dumps(hooks)
