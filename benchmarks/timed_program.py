"""Run a program and write what it took, without the start of Python and the imports.

    python [-m numc_ufuncs run] benchmarks/timed_program.py FILE program [arguments]

It imports NumPy, and nothing of this package: on NumPy's side there must be nothing of it.
"""

import json
import resource
import runpy
import sys
import time
from pathlib import Path

import numpy as np  # noqa: F401  before the clock starts


def peak_bytes():
    """The largest resident memory. That of getrusage begins with what the parent had at exec."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(result, program, *arguments):
    sys.argv = [program, *arguments]
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    runpy.run_path(program, run_name="__main__")
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "seconds": seconds,
        "user_seconds": after.ru_utime - before.ru_utime,
        "system_seconds": after.ru_stime - before.ru_stime,
        "page_faults": after.ru_minflt - before.ru_minflt,
        "peak_bytes": peak_bytes(),
    }
    Path(result).write_text(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
