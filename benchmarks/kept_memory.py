"""What memory="cached" gives: new arrays of every size, and expressions with many temporaries.

    python benchmarks/kept_memory.py [--ours] [--quick]

Sums of two float32 arrays by NumPy, or by this package: into an output that is there already, and
into new ones, with memory="system" and "cached". Then an expression with seven temporaries. Says
from which size src/memory/kept_blocks.h should keep blocks.
"""

import argparse
import statistics

import measuring
import numpy as np
from measuring import Call

import numc_ufuncs as nc
from numc_ufuncs import _machine

KIB = [8, 16, 32, 64, 128, 512, 2048, 8192, 40_000 / 1.024, 400_000 / 1.024]
SECONDS = 0.3  # for each way
STATEMENTS = {
    "out=": "add(a, b, out=out)",
    "new": "add(a, b)",
    "temporaries": "x = a + b; y = a - b; z = x * y; x + y + z + a * b",
}


def ways(n, add):
    """By name, and how often each repeats itself: entering its block shall take nothing."""
    rng = np.random.default_rng(0)
    calls = range(max(1, 2_000_000 // n))
    found = {}
    for kind in ("system", "cached"):
        memory = nc.config(memory=kind)
        with memory:
            a, b, out = (rng.random(n, dtype=np.float32) for _ in "abo")
        names = {"a": a, "b": b, "out": out, "add": add, "calls": calls, "memory": memory}
        for name, statement in STATEMENTS.items():
            code = f"with memory:\n    for _ in calls: {statement}"
            found[f"{name}, {kind}"] = Call(code, names)
    return found, len(calls)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", action="store_true", help="numc_ufuncs.add instead of NumPy's")
    parser.add_argument("--quick", action="store_true", help="small arrays: a check, no figures")
    options = parser.parse_args(arguments)
    add = nc.add if options.ours else np.add
    print(f"{_machine.cpu_model()}, {_machine.cpus()} CPUs, NumPy {np.__version__}; us: medians")
    print("       KiB      out=  new, system  new, cached   x out=  temporaries: system     cached")
    for kib in KIB[:3] if options.quick else KIB:
        calls, repeated = ways(int(kib * 256), add)
        samples = measuring.in_rounds(calls, 0.001 if options.quick else SECONDS, pauses=False)
        us = {name: 1e6 / repeated * statistics.median(times) for name, times in samples.items()}
        print(
            f"{kib:10,.0f}{us['out=, cached']:10.2f}{us['new, system']:13.2f}"
            f"{us['new, cached']:13.2f}{us['new, cached'] / us['out=, cached']:9.2f}"
            f"{us['temporaries, system']:21.2f}{us['temporaries, cached']:11.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
