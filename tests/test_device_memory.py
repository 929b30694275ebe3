"""memory="pinned" and "managed": arrays in memory that a GPU reaches. The fake device stands for a
GPU everywhere; tests marked `cuda` run on one."""

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
from checks import in_threads, status_of_child
from devices import run
from numpy.testing import assert_array_equal

import numc_ufuncs as nc
from numc_ufuncs._device_memory import kind_of

MIB = 1 << 20
FROM = 1 << 10  # KEPT_DEVICE_FROM_BYTES
PIECE = 2 * MIB  # KEEPER_PIECE_BYTES
MEMORY = 1 << 28  # of the fake device

ignore_forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def address(array):
    return array.ctypes.data


def kept():
    return nc.info()["memory_kept"]


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

        in_threads(5, work)
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

    def test_all_blocks_count(self, fake_gpu):
        _numc_test.use_fake_device(MEMORY)
        arrays = []
        with nc.config(memory="managed"):
            arrays += [np.zeros(32 * MIB, np.uint8) for _ in range(8)]  # though none lies there
            message = r"memory='managed': 33554432 bytes do not fit"
            with pytest.warns(RuntimeWarning, match=message), pytest.raises(MemoryError):
                np.zeros(32 * MIB, np.uint8)
            arrays.pop()
            arrays.append(np.zeros(32 * MIB, np.uint8))
            assert kind_of(np.zeros(3)) == "ordinary"
            del arrays[:2]
            arrays.append(np.zeros(64 * MIB, np.uint8))  # what is kept makes room

    def test_those_that_lie_there_count_once(self, fake_gpu):
        _numc_test.use_fake_device(MEMORY)
        with nc.config(memory="managed"):
            arrays = []
            for _ in range(8):
                arrays.append(np.zeros(32 * MIB, np.uint8))
                nc.memory.prefetch(arrays[-1], "cuda")

    def test_what_others_took_counts(self, fake_gpu):
        """Here: operands that a product had on the device."""
        _numc_test.use_fake_device(MEMORY)
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

    def test_no_concurrent_access(self, fake_gpu):
        _numc_test.refuse_managed("concurrentManagedAccess is 0")
        with pytest.raises(RuntimeError, match="'managed' cannot be used: concurrentManagedAccess"):
            nc.config(memory="managed")
        with nc.config(memory="pinned"):
            assert kind_of(np.ones(1000)) == "pinned"

    def test_a_refusal_is_told(self, fake_gpu):
        with nc.config(memory="pinned"):
            _numc_test.fail_device_call(1, False)
            message = r"memory='pinned': .* fake device failed"
            with pytest.warns(RuntimeWarning, match=message), pytest.raises(MemoryError):
                np.ones(1000)
            assert kind_of(np.ones(1000)) == "pinned"

    def test_a_lost_device(self, fake_gpu):
        with nc.config(memory="pinned"):
            before = np.ones(1000)
            _numc_test.fail_device_call(1, True)
            with pytest.warns(RuntimeWarning, match="arrays are in ordinary memory from now on"):
                array = np.full(3 * MIB, 3, np.uint8)
            assert kind_of(array) == "ordinary" and array.sum() == 9 * MIB
            assert kind_of(np.ones(1000)) == "ordinary"
            assert before.sum() == 1000
        with pytest.raises(RuntimeError, match=r"memory='pinned' cannot be used: .*refused"):
            nc.config(memory="pinned")
        del before
        # Memory of a lost device is left. The next fixture's device is another.
        _numc_test.use_fake_device(MEMORY)

    def test_every_call_failing_once(self, fake_gpu):
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
    def test_a_warning(self, fake_gpu):
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

        status = status_of_child(work)
        by_sanitizer = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 1  # who caught the signal
        assert by_sanitizer or os.WTERMSIG(status) == signal.SIGSEGV
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
