"""How many threads run, after fork, among other threads, and under every kind of limit."""

import concurrent.futures
import ctypes.util
import importlib.util
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import _numc_test
import numpy as np
import pytest
from checks import status_of_child

import numc_ufuncs as nc

BIG = 200_000
IMPORTS = "import _numc_test, numc_ufuncs as nc, numpy as np, json, os\n"


def start(code, **environment):
    environment = {k: v for k, v in {**os.environ, **environment}.items() if v is not None}
    return subprocess.run(
        [sys.executable, "-c", IMPORTS + code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def run(code, **environment):
    """What a new process prints, as JSON."""
    done = start(code, **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


LIMIT = "_numc_test.read_quota(os.environ['ROOT']); print(json.dumps(nc._core.get_options()[:2]))"
WITHOUT = {"OMP_NUM_THREADS": None, "NUMC_NUM_THREADS": None, "ROOT": "/nonexistent"}


class TestLimit:
    def test_all_cpus(self):
        (threads, _), _ = run(LIMIT, **WITHOUT)
        assert threads == len(os.sched_getaffinity(0))

    def test_omp_num_threads(self):
        (threads, reason), _ = run(LIMIT, **{**WITHOUT, "OMP_NUM_THREADS": "1"})
        assert threads == 1
        if len(os.sched_getaffinity(0)) > 1:
            assert "OMP_NUM_THREADS" in reason

    def test_numc_num_threads(self):
        (threads, _), _ = run(LIMIT, **{**WITHOUT, "NUMC_NUM_THREADS": "1"})
        assert threads == 1

    @pytest.mark.parametrize("bad", ["0", "-1", "two", "1.5", "1 2", "2 ", "+2", "9" * 12])
    def test_bad_numc_num_threads_warns(self, bad):
        (threads, _), stderr = run(LIMIT, **{**WITHOUT, "NUMC_NUM_THREADS": bad})
        assert threads == len(os.sched_getaffinity(0))
        assert f"NUMC_NUM_THREADS={bad!r} is ignored: it must be an integer of at least 1" in stderr

    def test_affinity(self):
        code = "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n" + LIMIT
        (threads, reason), _ = run(code, **WITHOUT)
        assert threads == 1
        assert "CPUs" in reason

    def test_config_exceeds_the_cpus(self):
        with nc.config(threads=37):
            assert nc.get_config()["threads"] == 37


def openmp_runtime():
    """The file of one: of scikit-learn's wheels, under a name of their own, or the system's."""
    package = importlib.util.find_spec("sklearn")
    folder = Path(package.origin).parents[1] if package is not None else Path()
    files = folder.glob("scikit_learn.libs/libgomp*.so*")
    return next(map(str, files), None) or ctypes.util.find_library("gomp")


THREADPOOLCTL = """
import ctypes, threadpoolctl
runtime = ctypes.CDLL(os.environ["RUNTIME"], mode=os.RTLD_LOCAL)
_numc_test.read_quota(os.environ["ROOT"])
_numc_test.set_parallel_threshold(1)
x, seen = np.ones(10_000), []
for limit in (1, 2, 1):
    with threadpoolctl.threadpool_limits(limits=limit, user_api="openmp"):
        threads, before = nc.get_config()["threads"], nc._core.regions()
        nc.add(x, x)
        seen.append((threads, nc._core.regions() - before))
print(json.dumps([seen, nc.info()["threads_reason"]]))
"""

# What the compiler makes of `#pragma omp parallel` is a call of this function.
PARALLEL = """
import ctypes, threading
_numc_test.set_parallel_threshold(1)
nc.set_config(threads=2)
x, seen = np.ones(10_000), []
def use():
    before = nc._core.regions()
    assert (nc.add(x, x) == 2).all()
    return nc._core.regions() - before
outside = [use()]
runtime = ctypes.CDLL(os.environ["RUNTIME"], mode=os.RTLD_LOCAL)
one_at_a_time = threading.Lock()
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def body(_):
    with one_at_a_time:
        seen.append(use())
runtime.GOMP_parallel(body, None, ctypes.c_uint(3), ctypes.c_uint(0))
outside.append(use())
print(json.dumps([seen, outside]))
"""


class TestOpenMP:
    """Of runtimes that others have loaded: the extension brings none."""

    @pytest.fixture
    def runtime(self):
        found = openmp_runtime()
        if found is None:
            pytest.skip("no OpenMP runtime")
        return {**WITHOUT, "RUNTIME": found}

    def test_none_is_loaded(self):
        code = "print(json.dumps(open('/proc/self/maps').read()))"
        maps, _ = run(code)
        assert "numc_ufuncs/_core" in maps
        assert not [line for line in maps.splitlines() if "gomp" in line or "libomp" in line]

    @pytest.mark.parametrize("bad", ["", "many", "0", "-1", "1x"])
    def test_bad_variables_limit_nothing(self, bad):
        (threads, _), _ = run(LIMIT, **{**WITHOUT, "OMP_NUM_THREADS": bad})
        assert threads == len(os.sched_getaffinity(0))

    @pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "OMP_THREAD_LIMIT"])
    def test_a_list(self, name):
        (threads, reason), _ = run(LIMIT, **{**WITHOUT, name: "1,4"})
        assert threads == 1
        if len(os.sched_getaffinity(0)) > 1:
            assert reason == name

    def test_limits_in_a_runtime_that_is_loaded_later(self, runtime):
        (seen, reason), _ = run(THREADPOOLCTL, **runtime)
        most = min(2, len(os.sched_getaffinity(0)))
        assert seen == [[1, 0], [most, most - 1], [1, 0]]
        assert reason == "CPUs that this thread may run on"

    def test_a_runtime_has_read_the_environment(self, runtime):
        (seen, reason), _ = run(THREADPOOLCTL, **{**runtime, "OMP_NUM_THREADS": "1"})
        assert [threads for threads, _ in seen] == [1, min(2, len(os.sched_getaffinity(0))), 1]
        if len(os.sched_getaffinity(0)) > 1:
            assert reason == "omp_get_max_threads(): OMP_NUM_THREADS or threadpoolctl"

    def test_callers_within_its_parallel_regions_get_no_threads(self, runtime):
        (seen, outside), _ = run(PARALLEL, **runtime)
        assert seen == [0] * 3
        assert outside == [1] * 2


def fake_cgroup(root, groups, files):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class TestCgroup:
    @pytest.mark.parametrize(
        ("quota", "cpus"), [("100000 100000", 1), ("150000 100000", 2), ("max 100000", 0)]
    )
    def test_v2(self, tmp_path, quota, cpus):
        fake_cgroup(tmp_path, "0::/a/b\n", {"a/b/cpu.max": quota + "\n"})
        assert _numc_test.cgroup_quota(str(tmp_path)) == cpus

    def test_v2_ancestors_count(self, tmp_path):
        files = {"a/b/cpu.max": "800000 100000\n", "a/cpu.max": "300000 100000\n"}
        fake_cgroup(tmp_path, "0::/a/b\n", files)
        assert _numc_test.cgroup_quota(str(tmp_path)) == 3

    @pytest.mark.parametrize("folder", ["cpu", "cpu,cpuacct"])
    def test_v1(self, tmp_path, folder):
        files = {
            f"{folder}/x/cpu.cfs_quota_us": "250000",
            f"{folder}/x/cpu.cfs_period_us": "100000",
        }
        fake_cgroup(tmp_path, "4:cpu,cpuacct:/x\n3:cpuset:/y\n", files)
        assert _numc_test.cgroup_quota(str(tmp_path)) == 3

    def test_v1_unlimited(self, tmp_path):
        files = {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}
        fake_cgroup(tmp_path, "4:cpu:/\n", files)
        assert _numc_test.cgroup_quota(str(tmp_path)) == 0

    def test_sets_the_number_of_threads(self, tmp_path):
        fake_cgroup(tmp_path, "0::/\n", {"cpu.max": "50000 100000\n"})
        (threads, reason), _ = run(LIMIT, **{**WITHOUT, "ROOT": str(tmp_path)})
        assert threads == 1
        if len(os.sched_getaffinity(0)) > 1:
            assert "control group" in reason

    def test_no_files(self, tmp_path):
        assert _numc_test.cgroup_quota(str(tmp_path)) == 0


def sum_of_one_add(n):
    return float(nc.add(np.ones(n), 1.0).sum()), nc._core.regions()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.usefixtures("threads_always")
class TestFork:
    @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
    def test_multiprocessing(self, method):
        sum_of_one_add(BIG)
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            results = pool.map_async(sum_of_one_add, [BIG] * 4).get(timeout=100)
        assert [total for total, _ in results] == [2.0 * BIG] * 4

    def test_children_and_their_children_use_threads(self):
        threads = nc.get_config()["threads"]

        def uses_threads():
            total, regions = sum_of_one_add(BIG)
            told = nc.get_config()["threads"] == nc.info()["threads"] == threads
            return total == 2.0 * BIG and told and sum_of_one_add(BIG)[1] > regions

        assert uses_threads()
        assert (
            status_of_child(
                lambda: uses_threads() and status_of_child(uses_threads) == 0 and uses_threads()
            )
            == 0
        )
        assert uses_threads()

    def test_fork_while_other_threads_compute(self):
        stop = threading.Event()

        def work():
            x = np.ones(BIG)
            while not stop.is_set():
                nc.add(x, x)

        def uses_threads():
            regions = sum_of_one_add(BIG)[1]
            total, more_regions = sum_of_one_add(BIG)
            return total == 2.0 * BIG and more_regions > regions

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        try:
            for _ in range(10):
                assert status_of_child(uses_threads) == 0
        finally:
            stop.set()
            for worker in workers:
                worker.join()


class TestManyCallers:
    def test_shared_inputs_give_right_results(self, threads_always):
        rng = np.random.default_rng(3)
        a, b = rng.normal(size=(2, BIG))
        expected = {f: getattr(np, f)(a, b) for f in ("add", "multiply", "hypot", "arctan2")}
        start = threading.Barrier(16)

        def work(index):
            name = list(expected)[index % 4]
            start.wait()
            return all(np.array_equal(getattr(nc, name)(a, b), expected[name]) for _ in range(20))

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            assert all(pool.map(work, range(16)))

    def test_callers_share_the_cores(self, threads_always):
        """Threads that run our code at once: at most those of the machine and the callers."""
        limit, callers = max(3, len(os.sched_getaffinity(0))), 16
        x = np.random.default_rng(0).uniform(1, 2, 1_000_000)
        stop = threading.Event()

        def work():
            while not stop.is_set():
                nc.power(x, 1.7)

        threads = [threading.Thread(target=work) for _ in range(callers)]
        for thread in threads:
            thread.start()
        most = 0
        try:
            for _ in range(20_000):
                most = max(most, nc._core.active_threads())
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert 1 < most <= limit + callers
        assert nc._core.active_threads() == 0

    def test_limits_of_one_thread_do_not_leak(self):
        inside, outside = [], []

        def other():
            outside.append(nc.get_config()["threads"])

        with nc.config(threads=5):
            inside.append(nc.get_config()["threads"])
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        assert inside == [5]
        assert outside == [nc.get_config()["threads"]]

    def test_threads_that_come_and_go(self, threads_always):
        """Workers that are called by one Python thread after another, exceptions and all."""

        def work():
            exponent = np.ones(BIG, int)
            exponent[-1] = -1
            with pytest.raises(ValueError, match="negative integer powers"):
                nc.power(np.full(BIG, 2), exponent)

        for _ in range(30):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join(100)
            assert not thread.is_alive()


def test_the_caller_has_the_gil_and_workers_need_it(threads_always):
    """NumPy keeps the GIL for 500 elements: a worker that raises must get it all the same."""
    code = (
        "_numc_test.set_parallel_threshold(1); nc.set_config(threads=3)\n"
        "for n in range(65, 501, 7):\n"
        "    try: nc.power(np.full(n, 2), np.full(n, -1))\n"
        "    except ValueError: pass\n"
        "print(json.dumps(nc._core.regions()))"
    )
    regions, _ = run(code)
    assert regions > 50


def test_workers_that_come_late():
    """The threads of a product keep the processors busy; who is there computes all of the sum."""
    rng = np.random.default_rng(0)
    x, y, total = (*rng.random((2, 300_007), dtype=np.float32), np.empty(300_007, np.float32))
    factor = rng.random((200, 200))
    expected = x + y
    with nc.config(threads=4):
        for _ in range(200):
            np.matmul(factor, factor)
            total.fill(np.nan)
            nc.add(x, y, out=total)
            np.testing.assert_array_equal(total, expected)


def test_interpreter_ends_cleanly_after_worker_exceptions():
    code = (
        "_numc_test.set_parallel_threshold(1); nc.set_config(threads=4)\n"
        "try: nc.power(np.full(100000, 2), np.full(100000, -1))\n"
        "except ValueError: print(json.dumps('raised'))"
    )
    result, stderr = run(code)
    assert result == "raised"
    assert not stderr


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer takes terabytes itself"
)
def test_more_threads_than_the_system_grants():
    """Fewer threads compute instead."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "_numc_test.set_parallel_threshold(1)\n"
        "with nc.config(threads=5000): total = nc.add(np.ones(100_000), 1).sum()\n"
        "print(json.dumps([total, nc._core.regions()]))"
    )
    (total, regions), _ = run(code, OPENBLAS_NUM_THREADS="1")
    assert total == 200_000
    assert regions == 1


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer reports faults itself"
)
def test_a_fault_in_a_worker_is_reported():
    """No page but one, in the first chunk of the worker's share, faults: a second fault, of the
    thread that takes the next chunk, would end the process in the midst of the report."""
    code = """
import ctypes, faulthandler, mmap
faulthandler.enable()
x = np.ones(1 << 20)
page = -(-(x.ctypes.data + x.nbytes // 2 + 4096) // mmap.PAGESIZE) * mmap.PAGESIZE
_numc_test.set_parallel_threshold(1)
nc.set_config(threads=2)
nc.add(np.ones(1000), 1.0)
PROT_NONE = 0
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(page), mmap.PAGESIZE, PROT_NONE) == 0
nc.add(x, 1.0)
"""
    done = start(code)
    assert done.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in done.stderr


WORKER_STATE = """
def worker_state():
    newest = max(map(int, os.listdir("/proc/self/task")))  # an emulator has threads of its own
    with open(f"/proc/self/task/{newest}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]
import time
_numc_test.set_parallel_threshold(1)
nc.set_config(threads=2)
nc.add(np.ones(1000), 1.0)
"""


class TestSpin:
    def test_long(self):
        code = WORKER_STATE + (
            "end = time.process_time() + 0.1\n"
            "while time.process_time() < end: pass\n"
            "print(json.dumps(worker_state()))"
        )
        state, _ = run(code, NUMC_SPIN_US="100000000", OPENBLAS_NUM_THREADS="1")
        assert state == "R"

    @pytest.mark.parametrize("us", ["0", "1000", ""])
    def test_short(self, us):
        code = WORKER_STATE + (
            "while worker_state() != 'S': pass\n"  # a hang fails
            "print(json.dumps(True))"
        )
        assert run(code, NUMC_SPIN_US=us, OPENBLAS_NUM_THREADS="1") == (True, "")

    @pytest.mark.parametrize("bad", ["-1", "5ms", "9" * 12])
    def test_bad_value_warns(self, bad):
        _, stderr = run("print(1)", NUMC_SPIN_US=bad)
        assert f"NUMC_SPIN_US={bad!r} is ignored: it must be a number of microseconds" in stderr


def test_surplus_workers_end():
    code = (
        "def threads(): return len(os.listdir('/proc/self/task'))\n"
        "_numc_test.set_parallel_threshold(1)\n"
        "others = threads()\n"  # this one, and one of an emulator
        "with nc.config(threads=100): nc.add(np.ones(100_000), 1)\n"
        "most = threads() - others\n"
        "while threads() > others + 1: nc.add(np.ones(1000), 1)\n"  # a hang fails
        "print(json.dumps(most))"
    )
    most, _ = run(code, OPENBLAS_NUM_THREADS="1", NUMC_NUM_THREADS="2")
    assert most == 99


def test_rounding_mode_reaches_the_workers(threads_always):
    """The floating-point environment of the calling thread is that of the whole call."""
    import ctypes
    import ctypes.util

    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    upward = {"x86_64": 0x800, "aarch64": 0x400000}[os.uname().machine]
    x = np.full(BIG, 1.0)
    y = np.full(BIG, 1e-20)
    try:
        assert libm.fesetround(upward) == 0
        result = nc.add(x, y)
    finally:
        libm.fesetround(0)
    assert (result == np.nextafter(1.0, 2.0)).all()
    assert (nc.add(x, y) == 1.0).all()
