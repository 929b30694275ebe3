"""memory="cached": blocks of large arrays are kept for others."""

import ctypes
import gc
import mmap
import os
import queue
import random
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import _numc_test
import numpy as np
import pytest
from checks import in_threads, status_of_child

import numc_ufuncs as nc

MIB = 1 << 20
FROM = 32 << 10  # KEPT_FROM_BYTES
LIMIT = 256 * MIB

no_asan = pytest.mark.skipif(
    "asan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer ends such programs"
)


@pytest.fixture(autouse=True)
def cached():
    _numc_test.set_memory_clock(1000)
    _numc_test.limit_memory(LIMIT)
    nc.set_config(memory="cached")
    nc.memory.release()
    yield
    nc.set_config(memory=None)
    _numc_test.set_memory_clock(-1)
    _numc_test.read_memory(None)


def empty(size):
    return np.empty(size, np.uint8)


def address(array):
    return array.ctypes.data


def is_ours(array):
    """Blocks begin with pages; malloc's do so by chance, but not several in a row."""
    return address(array) % mmap.PAGESIZE == 0


def keep(*sizes):
    """Blocks of these sizes that are kept, in use at the same time; the first is the oldest."""
    arrays = [empty(size) for size in sizes]
    for array in arrays:
        array[:] = 7
    addresses = [address(array) for array in arrays]
    del array
    while arrays:
        del arrays[0]
    return addresses


def kept():
    return nc.info()["memory_kept"]


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def run(script, *args, **environment):
    """Of a script that prints nothing."""
    head = "import os, sys\nimport numpy as np\nimport numc_ufuncs as nc\nMIB = 1 << 20\n"
    done = subprocess.run(
        [sys.executable, "-c", head + script, *args],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class TestReuse:
    @pytest.mark.parametrize("size", [FROM, 100_000, MIB, 3 * MIB + 5, 40_000_000])
    def test_the_very_block(self, size):
        [first] = keep(size)
        assert kept() >= size
        again = empty(size)
        assert address(again) == first
        assert kept() == 0
        again[:] = 1
        other = empty(size)
        assert address(other) != first
        other[:] = 2
        assert again[0] == again[-1] == 1

    def test_a_little_less_and_a_little_more(self):
        [first] = keep(MIB)
        less = empty(MIB * 7 // 8)
        assert address(less) == first
        del less
        assert address(empty(MIB + mmap.PAGESIZE)) != first
        assert address(empty(MIB // 2)) != first

    def test_sizes_of_one_class(self):
        """A free block that is too small does not hide one that is large enough."""
        small, large = MIB + mmap.PAGESIZE, MIB + 9 * mmap.PAGESIZE
        first, _ = keep(large, small)
        assert address(empty(large)) == first

    def test_small_arrays_are_numpys(self):
        arrays = [empty(FROM - 1) for _ in range(4)]
        assert not all(is_ours(array) for array in arrays)
        del arrays
        assert kept() == 0

    def test_results(self):
        rng = np.random.default_rng(1)
        for n in (5000, 100_000, 6_000_000):
            a, b = rng.normal(size=(2, n)).astype("f")
            for _ in range(3):
                x = nc.multiply(nc.add(a, b), nc.subtract(a, b))
                assert np.array_equal(x, (a + b) * (a - b))
                table = a[: n // 8 * 8].reshape(8, -1)
                assert np.array_equal(nc.add(table, table[0]), table + table[0])

    @pytest.mark.skipif(
        not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="no huge pages"
    )
    def test_huge_pages_are_asked_for(self):
        array = empty(5 * MIB)
        assert address(array) % (2 * MIB) == 0
        start, flags = f"{address(array):x}-", None
        for line in Path("/proc/self/smaps").read_text().splitlines():
            if line.startswith(start):
                flags = ""
            elif flags == "" and line.startswith("VmFlags:"):
                flags = line
        assert "hg" in flags.split()


class TestZeros:
    @pytest.mark.parametrize("size", [FROM, MIB, 50 * MIB])
    def test_a_used_block_is_zero_again(self, size):
        [first] = keep(size)
        array = np.zeros(size, np.uint8)
        assert address(array) == first
        assert not array.any()

    def test_they_take_no_memory(self):
        for _ in range(2):
            before = resident()
            array = np.zeros(128 * MIB, np.uint8)
            assert resident() - before < 16 * MIB
            assert not array[:: 1 << 20].any()
            array[:] = 1
            del array
        assert kept() == 128 * MIB

    def test_nothing_else_keeps_one_block(self):
        for _ in range(5):
            np.zeros(4 * MIB, np.uint8)
        assert kept() == 4 * MIB

    def test_too_many(self):
        with pytest.raises((MemoryError, ValueError)):
            np.zeros((1 << 40, 1 << 23), np.uint8)


class TestResize:
    SIZES = [1000, FROM - 1, FROM, FROM + 1, 100_000, MIB, 3 * MIB, 9 * MIB + 13]

    @pytest.mark.parametrize("before", SIZES)
    @pytest.mark.parametrize("after", SIZES)
    def test_contents_move_along(self, before, after):
        expected = np.random.default_rng(0).integers(1, 255, before, np.uint8)
        array = expected.copy()
        array.resize(after, refcheck=False)
        common = min(before, after)
        assert np.array_equal(array[:common], expected[:common])
        assert not array[common:].any()  # NumPy fills the rest with zeros
        array[:] = 3
        if before >= FROM:
            assert after < FROM or is_ours(array)
        del array
        assert (kept() > 0) == (before >= FROM)
        again = empty(max(after, FROM))
        again[:] = 4

    def test_where_a_block_was_is_free(self):
        array = empty(2 * MIB)
        moved = empty(2 * MIB)
        for size in range(2 * MIB, 40 * MIB, 3 * MIB):
            array.resize(size, refcheck=False)
            array[:] = 1
            moved[:] = 2
            assert array.all() and array[-1] == 1

    def test_refused(self):
        array = np.ones(MIB, np.uint8)
        with pytest.raises(MemoryError):
            array.resize(1 << 60, refcheck=False)
        with pytest.raises(MemoryError):
            array.resize(1 << 45, refcheck=False)
        assert array.sum() == MIB
        first = address(array)
        del array
        assert address(empty(MIB)) == first

    def test_after_the_switch(self):
        array = np.arange(100_000)
        nc.set_config(memory="system")
        array.resize(1_000_000, refcheck=False)
        assert np.array_equal(array[:100_000], np.arange(100_000))
        array.resize(10, refcheck=False)
        assert np.array_equal(array, np.arange(10))


class TestSwitch:
    def test_off_is_numpys_own_memory(self):
        nc.set_config(memory="system")
        arrays = [empty(MIB) for _ in range(4)]
        assert not all(is_ours(array) for array in arrays)
        nc.set_config(memory="cached")
        del arrays
        assert kept() == 0

    def test_blocks_outlive_it(self):
        arrays = [np.full(MIB, i, np.uint8) for i in range(4)]
        nc.set_config(memory="system")
        assert [int(array[-1]) for array in arrays] == [0, 1, 2, 3]
        before = resident()
        del arrays
        assert kept() == 0
        assert before - resident() > 3 * MIB

    def test_switching_it_off_gives_memory_back(self):
        for value in ("system", None):
            nc.set_config(memory="cached")
            keep(MIB)
            nc.set_config(threads=None)
            assert kept() == MIB
            nc.set_config(memory=value)
            assert kept() == 0

    def test_a_block(self):
        nc.set_config(memory="system")
        with nc.config(memory="cached"):
            assert nc.get_config()["memory"] == nc.info()["memory"] == "cached"
            [first] = keep(MIB)
            array = empty(MIB)
            assert address(array) == first
            keep(MIB)
        assert nc.get_config()["memory"] == "system"
        assert not all(is_ours(other) for other in [empty(MIB) for _ in range(4)])
        assert kept() == MIB
        del array  # nobody would ask for it
        assert kept() == MIB
        # What is kept goes with time, though nobody asks for such blocks.
        _numc_test.set_memory_clock(1011)
        array = empty(MIB)
        assert kept() == 0
        with nc.config(memory="cached"):
            keep(MIB)
        _numc_test.set_memory_clock(1022)
        del array
        assert kept() == 0

    def test_a_block_within(self):
        with nc.config(memory="system"):
            arrays = [empty(MIB) for _ in range(4)]
            assert not all(is_ours(array) for array in arrays)
            ours = []
            thread = threading.Thread(target=lambda: ours.append(empty(MIB)))
            thread.start()
            thread.join()
            assert is_ours(ours[0])  # threads see what set_config set
        assert is_ours(empty(MIB))

    def test_calls_of_ours_see_the_block(self):
        a = np.ones(MIB, "f")
        with nc.config(memory="system"):
            assert not all(is_ours(x) for x in [nc.add(a, a) for _ in range(4)])
        assert all(is_ours(x) for x in [nc.add(a, a) for _ in range(4)])

    def test_bad_values(self):
        with pytest.raises(
            ValueError, match="memory must be one of 'system', 'cached', 'pinned', 'managed'"
        ):
            nc.set_config(memory="kept")
        with pytest.raises(ValueError, match="memory: 5 is more than 4"):
            nc._core.set_process_options(-1, -1, -1, -1, 5)

    def test_an_unknown_handler(self, monkeypatch):
        monkeypatch.setattr(nc._core, "memory_problem", lambda _: "it is not known")
        nc.set_config(memory="system")
        with pytest.raises(RuntimeError, match="memory='cached' cannot be used: it is not known"):
            nc.set_config(memory="cached", threads=1)
        assert nc.get_config()["memory"] == "system"


class TestGivingBack:
    def test_release(self):
        assert nc.memory.release() == 0
        keep(50 * MIB, 50 * MIB)
        before = resident()
        assert nc.memory.release() == 100 * MIB
        assert before - resident() > 90 * MIB
        assert kept() == 0

    def test_the_limit(self):
        _numc_test.limit_memory(8 * MIB)
        assert nc.info()["memory_limit"] == 8 * MIB
        _, second, third = keep(4 * MIB, 4 * MIB, 4 * MIB)
        assert kept() == 8 * MIB
        assert {address(a) for a in [empty(4 * MIB), empty(4 * MIB)]} == {second, third}
        keep(MIB)
        keep(9 * MIB)  # by itself beyond the limit: it takes nothing else along
        assert kept() >= MIB
        _numc_test.limit_memory(0)
        assert kept() == 0
        keep(MIB)
        assert kept() == 0

    def test_what_a_smaller_array_leaves_counts(self):
        keep(10 * MIB)
        array = empty(8 * MIB)
        assert kept() == 2 * MIB
        _numc_test.limit_memory(3 * MIB)
        keep(MIB, MIB)
        assert kept() == 3 * MIB
        array.resize(8 * MIB + 1, refcheck=False)  # to its own size
        assert kept() == MIB

    def test_after_a_while(self):
        keep(MIB, 2 * MIB)
        _numc_test.set_memory_clock(1009)
        keep(5 * MIB)
        assert kept() == 8 * MIB
        _numc_test.set_memory_clock(1011)
        empty(64 * MIB)  # any large array
        assert kept() == 5 * MIB + 64 * MIB

    def test_use_keeps_a_block_young(self):
        for seconds in (1000, 1009, 1018):
            _numc_test.set_memory_clock(seconds)
            [first] = keep(MIB)
        assert address(empty(MIB)) == first

    @no_asan
    def test_the_system_refuses(self):
        """What is kept makes room, for blocks of ours and of NumPy's."""
        run("""
import resource
nc.set_config(memory="cached")
size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGESIZE")
resource.setrlimit(resource.RLIMIT_AS, (size + 300 * MIB,) * 2)
for array_of in (np.empty, np.zeros):
    for cached in (True, False):
        arrays = [np.empty(20 * MIB, "B") for _ in range(12)]
        del arrays
        assert nc.info()["memory_kept"] == 240 * MIB
        with nc.config(memory="cached" if cached else "system"):
            large = array_of(250 * MIB, "B")
        assert (large.ctypes.data % 4096 == 0) == cached
        assert nc.info()["memory_kept"] == 0
        large[-1] = 1
        del large
        nc.memory.release()
try:
    np.empty(400 * MIB, "B")
except MemoryError:
    pass
else:
    raise AssertionError
""")

    @no_asan
    def test_an_absurd_size(self):
        nc.set_config(memory="system")
        with pytest.raises(MemoryError) as numpys:
            empty(1 << 55)
        nc.set_config(memory="cached")
        for size in (1 << 55, 1 << 45):
            with pytest.raises(MemoryError) as ours:
                empty(size)
            assert type(ours.value) is type(numpys.value)
        assert is_ours(empty(MIB))


class TestAvailable:
    """Machines and control groups in a made-up /proc and /sys."""

    def write(self, root, **files):
        self.write_only(root, **files)
        _numc_test.read_memory(str(root))

    def write_only(self, root, **files):
        for name, text in files.items():
            path = (
                root
                / {
                    "meminfo": "proc/meminfo",
                    "group": "proc/self/cgroup",
                    "max": "sys/fs/cgroup/a/memory.max",
                    "current": "sys/fs/cgroup/a/memory.current",
                    "stat": "sys/fs/cgroup/a/memory.stat",
                    "outer_max": "sys/fs/cgroup/memory.max",
                    "outer_current": "sys/fs/cgroup/memory.current",
                }[name]
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")

    def meminfo(self, total, available):
        return f"MemTotal: {total >> 10} kB\nMemFree: 1 kB\nMemAvailable: {available >> 10} kB"

    def test_an_eighth_of_the_machine(self, tmp_path):
        self.write(tmp_path, meminfo=self.meminfo(800 * MIB, 700 * MIB))
        assert nc.info()["memory_limit"] == 100 * MIB
        keep(60 * MIB, 60 * MIB)
        assert kept() == 60 * MIB

    def test_an_eighth_of_the_group(self, tmp_path):
        self.write(
            tmp_path,
            meminfo=self.meminfo(8000 * MIB, 8000 * MIB),
            group="0::/a",
            max=160 * MIB,
            current=0,
        )
        assert nc.info()["memory_limit"] == 20 * MIB

    @pytest.mark.parametrize("bound", ["machine", "group", "outer group"])
    def test_half_of_what_is_available(self, tmp_path, bound):
        much = 80_000 * MIB
        self.write(tmp_path, meminfo=self.meminfo(much, much))
        keep(*[2 * MIB] * 5)
        self.write(
            tmp_path,
            meminfo=self.meminfo(much, 4 * MIB if bound == "machine" else much),
            group="0::/a",
            max=much,
            current=much - 4 * MIB if bound == "group" else 0,
            outer_max=much,
            outer_current=much - 4 * MIB if bound == "outer group" else 0,
        )
        assert kept() == 10 * MIB
        keep(2 * MIB)  # the first call since; 4 are available, 14 without what is kept
        assert nc.info()["memory_limit"] == 7 * MIB
        assert kept() == 6 * MIB
        # Time stands still, and nothing is mapped: nobody looks again.
        self.write_only(tmp_path, meminfo=self.meminfo(much, 0))
        keep(2 * MIB)
        assert kept() == 6 * MIB
        _numc_test.set_memory_clock(1001)
        keep(2 * MIB)
        assert kept() == 2 * MIB

    def test_cached_files_are_available(self, tmp_path):
        much = 8000 * MIB
        self.write(
            tmp_path,
            meminfo=self.meminfo(much, much),
            group="0::/a",
            max=much,
            current=much,
            stat=f"anon 5\nfile 9\ninactive_file {30 * MIB}\nactive_file {10 * MIB}",
        )
        keep(2 * MIB)
        _numc_test.set_memory_clock(1001)
        keep(2 * MIB)
        assert nc.info()["memory_limit"] == 21 * MIB

    def test_before_much_is_mapped(self, tmp_path):
        self.write(tmp_path, meminfo=self.meminfo(8000 * MIB, 100 * MIB))
        keep(*[2 * MIB] * 10)
        assert kept() == 20 * MIB
        array = empty(110 * MIB)  # of the 120 that are there without what is kept
        assert kept() <= 5 * MIB
        assert is_ours(array)

    def test_nothing_is_known(self, tmp_path):
        _numc_test.read_memory(str(tmp_path))
        [first] = keep(MIB)
        assert address(empty(MIB)) == first

    def test_environment(self):
        run(
            "assert nc.info()['memory_limit'] == 5 * MIB\n"
            "nc.set_config(memory='cached')\n"
            "arrays = [np.empty(2 * MIB, 'B') for _ in range(4)]\ndel arrays\n"
            "assert nc.info()['memory_kept'] == 4 * MIB",
            NUMC_MEMORY_CACHE=str(5 * MIB),
        )
        done = subprocess.run(
            [sys.executable, "-c", "import numc_ufuncs"],
            capture_output=True,
            text=True,
            env={**os.environ, "NUMC_MEMORY_CACHE": "5 MiB"},
        )
        assert "NUMC_MEMORY_CACHE='5 MiB' is ignored" in done.stderr


class TestThreads:
    def test_many_at_once(self):
        """Nobody else writes to a block that is in use, also where another thread frees it."""
        handed_over, failures = queue.Queue(), []

        def work(number):
            rng = random.Random(number)
            try:
                for turn in range(300):
                    array = np.full(rng.choice([FROM, 50_000, 200_000, MIB]), number, np.uint8)
                    if turn % 3 == 0:
                        array.resize(rng.choice([100, FROM, 300_000]), refcheck=False)
                        array[:] = number
                    handed_over.put((array, number))
                    other, wrote = handed_over.get()
                    if not (other == wrote).all():
                        failures.append((number, turn))
                    if turn % 50 == 0:
                        nc.memory.release()
                    del array, other
            except Exception as error:
                failures.append(error)

        in_threads(6, work)
        assert failures == []

    def test_calls_of_ours(self):
        a = np.ones((4, 100_000), "f")
        threads = [
            threading.Thread(target=lambda: [nc.add(a, a) for _ in range(200)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert is_ours(nc.add(a, a))

    def test_a_block_freed_by_another(self):
        arrays = [empty(MIB)]
        first = address(arrays[0])
        thread = threading.Thread(target=arrays.clear)
        thread.start()
        thread.join()
        assert address(empty(MIB)) == first


class TestFork:
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_a_child_keeps_blocks_of_its_own(self):
        array = np.full(3 * MIB, 9, np.uint8)
        keep(5 * MIB)

        def work():
            nonlocal array
            empty_at_first = kept() == 0
            [first] = keep(MIB)
            reused = address(empty(MIB)) == first
            intact = array.sum() == 9 * 3 * MIB
            del array
            return empty_at_first and reused and intact

        assert status_of_child(work) == 0
        assert kept() == 5 * MIB

    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_while_others_allocate(self):
        """A child can take the lock that another thread of its parent held."""
        ended = threading.Event()

        def work():
            a = np.ones(20_000, "f")
            while not ended.is_set():
                nc.add(a, a)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(30):
                child = os.fork()
                if child == 0:
                    ctypes.CDLL(None).alarm(60)  # ends a child that hangs
                    for _ in range(3):
                        keep(MIB, MIB)
                    os._exit(0)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            ended.set()
            for thread in threads:
                thread.join()


class TestTools:
    def test_tracemalloc(self):
        keep(10 * MIB)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            array = empty(10 * MIB - 100)  # a kept one
            zeros = np.zeros(4 * MIB, np.uint8)
            assert tracemalloc.get_traced_memory()[0] - before == pytest.approx(
                14 * MIB, abs=200_000
            )
            array.resize(5 * MIB, refcheck=False)
            assert tracemalloc.get_traced_memory()[0] - before == pytest.approx(
                9 * MIB, abs=200_000
            )
            del array, zeros
            assert tracemalloc.get_traced_memory()[0] - before < 200_000
            assert kept() > 0  # free memory is nobody's
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize("environment", [{}, {"PYTHONMALLOC": "debug"}, {"PYTHONDEVMODE": "1"}])
    def test_the_end_of_a_program(self, environment):
        run(
            """
import threading
small = np.ones(FROM := 1000)
before = np.ones(MIB)
nc.set_config(memory="cached")
after = [np.ones(MIB) for _ in range(4)]
kept_by_cycle = [np.ones(MIB)]
kept_by_cycle.append(kept_by_cycle)
del after[0]
small.resize(MIB, refcheck=False)
threading.Thread(target=lambda: after.append(np.ones(MIB))).start()
""",
            **environment,
        )

    def test_many_blocks(self):
        """More than there may be, and than the table has room for at first."""
        arrays = [empty(FROM) for _ in range(40_000)]
        assert sum(is_ours(array) for array in arrays[:5000]) == 5000
        assert not all(is_ours(array) for array in arrays[-5000:])
        for i in range(0, len(arrays), 997):
            arrays[i][:] = i % 256
        assert all(arrays[i][-1] == i % 256 for i in range(0, len(arrays), 997))
        del arrays
        gc.collect()
        assert kept() <= LIMIT
        assert nc.memory.release() > 0

    def test_peak(self):
        """Temporaries of all sizes: no more than the limit beyond what is in use."""
        run(
            """
import random, resource
nc.set_config(memory="cached")
rng = random.Random(1)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
np.ones(10 * MIB, "B")
nc.memory.release()
before = peak()
for _ in range(1500):
    array = np.ones(rng.randrange(100_000, 10 * MIB), "B")
assert peak() - before < (20 + 16 + 8) * MIB, (peak() - before) >> 20  # two of them, and the limit
assert nc.info()["memory_kept"] <= 16 * MIB
""",
            NUMC_MEMORY_CACHE=str(16 * MIB),
        )
