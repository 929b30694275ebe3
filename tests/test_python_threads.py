"""Several threads of Python at once, which on a free-threaded one no GIL keeps apart."""

import subprocess
import sys
import sysconfig
import threading

import numpy as np
import pytest
from checks import in_threads

import numc_ufuncs as nc

THREADS = 8


def at_once(function):
    """What it returned in each of several threads, given the thread's number."""
    start, results, errors = threading.Barrier(THREADS), [None] * THREADS, []

    def run(thread):
        start.wait()
        try:
            results[thread] = function(thread)
        except BaseException as error:
            errors.append(error)

    in_threads(THREADS, run)
    if errors:
        raise errors[0]
    return results


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="a Python with a GIL")
def test_the_gil_stays_off():
    code = "import sys, numc_ufuncs; assert not sys._is_gil_enabled()"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def first_uses(module, thread):
    """Results of calls of every ufunc of two operands, in an order that differs by thread."""
    ufuncs = {name: f for name, f in vars(np).items() if type(f) is np.ufunc}
    names = sorted(name for name, f in ufuncs.items() if f.nin == 2 and f.signature is None)
    dtypes = "bilfd"
    found = {}
    for i in range(len(names)):
        name = names[(i + thread * 7) % len(names)]
        for dtype in dtypes:
            a, b = np.arange(1, 9).astype(dtype), np.arange(1, 9).astype("h")
            try:
                with np.errstate(all="ignore"):
                    result = getattr(module, name)(a, b)
            except TypeError as error:
                result = str(error)
            found[name, dtype] = repr(result)
    return found


def test_first_uses_at_once():
    """Clones are made by the first call, and learn of each combination of dtypes."""
    code = (
        "import numpy as np, numc_ufuncs as nc\n"
        "from test_python_threads import at_once, first_uses\n"
        "assert at_once(lambda thread: nc.hypot) == [nc.hypot] * 8\n"
        "found = at_once(lambda thread: first_uses(nc, thread))\n"
        "expected = first_uses(np, 0)\n"
        "for one in found:\n"
        "    assert one == expected, [key for key in one if one[key] != expected[key]]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_one_config_object_in_all_threads():
    shared, before = nc.config(threads=3), nc.get_config()

    def enter_and_leave(thread):
        seen = set()
        for _ in range(300):
            with shared, nc.config(threads=thread + 4), shared:
                seen.add(nc.get_config()["threads"])
            seen.add(nc.get_config()["threads"])
        return seen

    assert at_once(enter_and_leave) == [{3, before["threads"]}] * THREADS
    with pytest.raises(RuntimeError, match="not entered"):
        shared.__exit__()
    assert nc.get_config() == before


@pytest.mark.thread_unsafe(reason="it counts the process's calls")
def test_a_profile_counts_every_call():
    calls = 10_000

    def call(thread):
        a, out = np.ones(10, "ld"[thread % 2]), np.ones(10)
        for _ in range(calls):
            nc.add(a, a)
            nc.multiply(a, a, out=out)
        return None

    with nc.profile() as p:
        at_once(call)
        seen = nc._core.profile_rows()
    counted = dict.fromkeys(("add", "multiply"), 0)
    for row in p.rows:
        counted[row["ufunc"]] += row["calls"]
    assert counted == dict.fromkeys(counted, THREADS * calls)
    assert sum(row["calls"] for row in seen) == 2 * THREADS * calls


def test_buffer_sizes_are_those_of_the_thread():
    x = np.arange(20_000)[::2]

    def compute(thread):
        results = set()
        for i in range(100):
            np.setbufsize(1024 * (1 + (thread + i) % 5))
            results.add(float(nc.add.reduce(x, dtype="f4")) == float(np.add.reduce(x, dtype="f4")))
        return results

    assert at_once(compute) == [{True}] * THREADS
