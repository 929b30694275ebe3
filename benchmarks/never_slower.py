"""Look for calls that are slower than NumPy's: add at every size, of two dtypes, too, `parallel`
where it has work, and calls after a sleep, when all threads are asleep.

Both sides run in one process, in turn. What counts as slower: a ratio below 1 by more than NumPy
differs from itself, in each of several runs, each in a process of its own.

    python benchmarks/never_slower.py --runs 3 --large
    python benchmarks/never_slower.py --processes

With `--processes`, `parallel` beside NumPy in as many processes as it has threads, each with a part
of the elements: what the machine's cores give when nothing is shared.
"""

import argparse
import itertools
import json
import multiprocessing
import statistics
import sys
import time
from pathlib import Path

import measuring
import numpy as np
from measuring import Call

import numc_ufuncs as nc
from numc_ufuncs import _bench, _core, _machine

SECONDS = 0.5  # per cell
ADD_SIZES = [10**power for power in range(9)]
PARALLEL_SIZES = [10**6, 10**7, 10**8]
PARALLEL = ("exp", "log", "sin", "hypot", "power")
COLD_SIZES = [10**4, 10**5, 10**6, 10**7]  # from below the break-even of awake threads on
PROCESS_ROUNDS = 15
LARGE = 10**8
BANDWIDTH_BYTES = 4 * LARGE


def cells():
    """(ufunc, dtype or both joined by +, n, whether after a sleep) of each pair of lines."""
    for dtype in ("float32", "float64", "int64+float64"):
        for n in ADD_SIZES:
            yield "add", dtype, n, False
    for name in PARALLEL:
        for n in PARALLEL_SIZES:
            yield name, "float64", n, False
    for name, dtype in (("add", "float32"), ("add", "complex64"), ("exp", "float64")):
        for n in COLD_SIZES:
            yield name, dtype, n, True


def from_1_to_2(rng, n, dtype):
    """Random numbers; of complex ones both parts are in this range."""
    if np.dtype(dtype).kind == "i":
        return rng.integers(1, 2, n, dtype, endpoint=True)
    numbers = np.empty(n, dtype)
    parts = numbers.view(numbers.real.dtype)
    rng.random(out=parts, dtype=parts.dtype)
    parts += 1
    return numbers


def result_dtype(dtype):
    return np.result_type(*dtype.split("+"))


def measure(name, dtype, n, output, cold=False):
    """Medians of both sides, and how far NumPy is from itself."""
    rng = np.random.default_rng(0)
    ufunc = getattr(np, name)
    dtypes = itertools.cycle(dtype.split("+"))
    names = {f"x{i}": from_1_to_2(rng, n, next(dtypes)) for i in range(ufunc.nin)}
    arguments = ", ".join(names)
    if output == "out=":
        names["out"] = np.empty(n, result_dtype(dtype))
        arguments += ", out"
    theirs, ours = (
        Call(f"f({arguments})", {**names, "f": getattr(library, name)}) for library in (np, nc)
    )
    theirs(), ours()
    label = f"{name} {dtype} {n:.0e} {output}"
    if cold:
        return {"cell": f"{label} cold", **measuring.cold_against_numpy(theirs, ours)}
    return {"cell": label, **measuring.against_numpy(theirs, ours, SECONDS)}


def fits(name, n, itemsize):
    """Whether inputs and two outputs take at most half of the free memory."""
    return (getattr(np, name).nin + 2) * n * itemsize <= _machine.free_memory() / 2


def line(cell):
    times = f"{cell['numpy_seconds'] * 1e6:12.3f} {cell['our_seconds'] * 1e6:12.3f}"
    return f"{cell['cell']:28} {times} {cell['ratio']:6.2f} {cell['spread']:7.1%}"


def run_once():
    """Measure every cell in this process."""
    measured = []
    print(f"{'':28} {'NumPy, µs':>12} {'ours, µs':>12} {'ratio':>6} {'spread':>7}")
    for name, dtype, n, cold in cells():
        if not fits(name, n, result_dtype(dtype).itemsize):
            print(f"{name} {dtype} {n:.0e}: skipped, not enough free memory")
            continue
        for output in ("out=", "new"):
            measured.append(measure(name, dtype, n, output, cold))
            print(line(measured[-1]), flush=True)
    return measured


def large_figures():
    """What the package promises on many cores: shares of the memory bandwidth, and sin."""
    threads = nc.get_config()["threads"]
    stream = _core.stream_bandwidth(BANDWIDTH_BYTES, threads)
    copy = _core.copy_bandwidth(BANDWIDTH_BYTES, threads)
    add = 12 * LARGE / measure("add", "float32", LARGE, "out=")["our_seconds"]
    exp = 16 * LARGE / measure("exp", "float64", LARGE, "out=")["our_seconds"]
    sin = measure("sin", "float64", LARGE, "out=")["ratio"]
    return {
        "threads": threads,
        "stream_bytes_per_second": stream,
        "copy_bytes_per_second": copy,
        "add_share_of_stream": add / stream,
        "exp_share_of_copy": exp / copy,
        "sin_ratio": sin,
    }


def print_large(figures):
    print(f"\n{LARGE:.0e} elements with out=, {figures['threads']} threads")
    stream, copy = figures["stream_bytes_per_second"], figures["copy_bytes_per_second"]
    print(f"add float32: {figures['add_share_of_stream']:.0%} of {stream / 1e9:.1f} GB/s (stream)")
    print(f"exp float64: {figures['exp_share_of_copy']:.0%} of {copy / 1e9:.1f} GB/s (copy)")
    print(f"sin float64: {figures['sin_ratio']:.2f} times NumPy", flush=True)


def repeated(ufunc, n, calls):
    """A function that makes so many calls with operands of its own."""
    rng = np.random.default_rng(0)
    inputs, out = [1 + rng.random(n) for _ in range(ufunc.nin)], np.empty(n)

    def run():
        for _ in range(calls):
            ufunc(*inputs, out=out)

    return run


def work_on_part(name, n, calls, begin, end):
    run = repeated(getattr(np, name), n, calls)
    while True:
        begin.wait()
        run()
        end.wait()


def beside_processes(name, n):
    """How often NumPy's time, with threads and with processes, taken in turn."""
    threads = nc.get_config()["threads"]
    calls = max(1, 10**7 // n)
    begin, end = (multiprocessing.Barrier(threads + 1) for _ in range(2))
    part = (name, n // threads, calls, begin, end)
    for _ in range(threads):
        multiprocessing.Process(target=work_on_part, args=part, daemon=True).start()

    def on_processes():
        begin.wait()
        end.wait()

    ways = {
        "numpy": repeated(getattr(np, name), n, calls),
        "threads": repeated(getattr(nc, name), n, calls),
        "processes": on_processes,
    }
    samples = {way: [] for way in ways}
    for way in [*ways, *list(ways) * PROCESS_ROUNDS]:
        _bench.until_none_spins()
        start = time.perf_counter()
        ways[way]()
        samples[way].append(time.perf_counter() - start)
    numpys = statistics.median(samples["numpy"][1:])
    return [numpys / statistics.median(samples[way][1:]) for way in ("threads", "processes")]


def print_processes():
    print(f"{'times as fast as NumPy':24} {'threads':>9} {'processes':>9}")
    for name in PARALLEL:
        for n in PARALLEL_SIZES[:2]:
            threads, processes = beside_processes(name, n)
            print(f"{name} float64 {n:.0e} out=".ljust(24), f"{threads:9.2f} {processes:9.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1, help="fresh processes to combine")
    parser.add_argument("--large", action="store_true", help="also shares of the bandwidth at 1e8")
    parser.add_argument("--processes", action="store_true", help="threads beside processes, only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    options = parser.parse_args()
    np.seterr(all="ignore")
    if options.processes:
        print_processes()
        return 0
    if options.runs > 1:
        results = []
        for run in range(1, options.runs + 1):
            print(f"run {run} of {options.runs}", flush=True)
            results.append(measuring.run_in_process(__file__, ["--large"] * options.large))
    else:
        info = nc.info()
        print(
            f"{_machine.cpu_model()}, NumPy {np.__version__}, {info['isa']}, "
            f"{info['threads']} threads ({info['threads_reason']})"
        )
        results = [{"info": info, "cells": run_once()}]
        if options.large:
            results[0]["large"] = large_figures()
            print_large(results[0]["large"])
    if options.json:
        options.json.write_text(json.dumps(results if options.runs > 1 else results[0], indent=2))
    slower = list(measuring.slower_in_all(results))
    print(f"\nslower than NumPy in {options.runs} of {options.runs} runs: {len(slower)} cells")
    for name, ratios in slower:
        print(f"  {name}: {ratios}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
