"""How the scripts here measure: NumPy and this package in turn, and what counts as slower.

The rule: a cell is slower only if it is so in several runs, each in a process of its own, and in
each by more than NumPy differs from itself in that run.
"""

import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from timeit import Timer

import numpy as np

from numc_ufuncs import _bench

COLD_REPETITIONS = 15


@dataclass
class Call:
    """What to time, as a statement: unlike a lambda, it adds nothing to calls of 0.1 µs."""

    statement: str
    names: dict

    def __call__(self):
        return eval(self.statement, self.names)

    def timer(self):
        return Timer(self.statement, globals=self.names)


def _time(timer, calls):
    return timer.timeit(calls) / calls


def against_numpy(theirs, ours, seconds, pauses=True):
    """Medians of two calls made in turn, and how far NumPy is from itself."""
    calls = [theirs.timer(), ours.timer()]
    return compared(*_bench.alternate(calls, seconds / 2, _time, pauses))


def cold_against_numpy(theirs, ours):
    """The same of single calls, each after a pause in which all threads fall asleep."""
    return compared(*_bench.cold([theirs.timer(), ours.timer()], COLD_REPETITIONS, _time))


def compared(theirs, ours):
    """What two lists of samples say."""
    numpy_seconds, our_seconds = statistics.median(theirs), statistics.median(ours)
    return {
        "numpy_seconds": numpy_seconds,
        "our_seconds": our_seconds,
        "ratio": numpy_seconds / our_seconds,
        "spread": _bench.spread(theirs),
    }


def in_rounds(calls, seconds, pauses=True):
    """Seconds per call of several libraries, by name: so many seconds for each of them."""
    timers = [call.timer() for call in calls.values()]
    return dict(zip(calls, _bench.alternate(timers, seconds, _time, pauses), strict=True))


def read_bandwidth(threads, size=1 << 28):
    """Bytes per second that plain reading gets: NumPy's maximum of a part on each thread."""
    parts = np.array_split(np.zeros(size // 4, np.float32), threads)
    for part in parts:
        part.fill(1)
    seconds = []
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(11):
            start = time.perf_counter()
            list(pool.map(np.max, parts))
            seconds.append(time.perf_counter() - start)
    return size / min(seconds)


def compiled_loops(source, *flags):
    """The functions of a C file, with OpenMP, whose threads are as good as ours for plain loops."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "loops.so")
        compiler = os.environ.get("CC", "cc").split()
        common = ["-fopenmp", "-shared", "-fPIC"]
        subprocess.run([*compiler, *flags, *common, source, "-o", library], check=True)
        return ctypes.CDLL(str(library))  # which stays when the file is gone


def is_slower(cell):
    return cell["ratio"] < 1 - cell["spread"]


def by_cell(results):
    """What each run measured, by cell."""
    cells = {}
    for result in results:
        for cell in result["cells"]:
            cells.setdefault(cell["cell"], []).append(cell)
    return cells


def slower_in_all(results):
    """The cells that were slower in every run: (name, ratio in each run)."""
    for name, runs in by_cell(results).items():
        if len(runs) == len(results) and all(map(is_slower, runs)):
            yield name, [round(cell["ratio"], 3) for cell in runs]


def run_in_process(script, arguments):
    """Run a script of this folder with ``--json``; return what it wrote there."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.json")
        command = [sys.executable, script, *arguments, "--json", str(path)]
        if subprocess.run(command).returncode not in (0, 1):  # 1: a cell was slower
            sys.exit(2)
        return json.loads(path.read_text())
