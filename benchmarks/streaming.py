"""From which size of the output streaming stores pay, and what new outputs cost.

    python benchmarks/streaming.py [--threads 1 2 16]

Sums of two float32 arrays by plain C loops, which are compiled first: with ordinary and with
streaming stores into one output again and again; then into new outputs, beside NumPy's and ours.
The first says what src/engine/elementwise_cutoffs.h should, the second what ours may take.
"""

import argparse
import ctypes
import platform
import statistics
import sys
from pathlib import Path

import measuring
import numpy as np
from measuring import Call, compiled_loops

import numc_ufuncs as nc
from numc_ufuncs import _machine

SECONDS = 0.2  # for each way
OUTPUT_BYTES = [1 << power for power in range(16, 30)]
NEW_ELEMENTS = [10**6, 3 * 10**6, 10**7, 10**8]
# Arguments of the plain loops: streaming stores, pages populated by the thread that stores to them.
NEW_WAYS = {"plain": (0, 0), "streamed": (1, 0), "populated, streamed": (1, 1)}


def compiled():
    """The plain loops, with the types of their arguments."""
    loops = compiled_loops(Path(__file__).with_suffix(".c"), "-O2")
    pointer, size, flag = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int
    loops.add.argtypes = [pointer, pointer, pointer, size, flag, flag, flag]
    loops.add_new.argtypes = [pointer, pointer, size, flag, flag, flag]
    return loops


def inputs(n):
    rng = np.random.default_rng(0)
    return [rng.random(n, dtype=np.float32) for _ in "ab"]


def fits(n):
    """Whether two inputs and two outputs take at most half of the free memory."""
    return 4 * 4 * n <= _machine.free_memory() / 2


def stores(loops, threads, sizes, seconds):
    """(bytes of the output, seconds with ordinary stores, with streaming stores) of each size."""
    largest = max((size for size in sizes if fits(size // 4)), default=0)
    a, b = inputs(largest // 4)
    out = np.empty(largest // 4, np.float32)
    for size in sizes:
        if size > largest:
            continue
        calls = {}
        for streaming in (0, 1):
            arguments = [x.ctypes.data for x in (a, b, out)] + [size // 4, threads, streaming, 0]
            calls[streaming] = Call("add(*arguments)", {"add": loops.add, "arguments": arguments})
        samples = measuring.in_rounds(calls, seconds)
        yield size, *(statistics.median(samples[streaming]) for streaming in calls)


def pays_from(rows):
    """The smallest size from which on streaming stores are faster at every size; None without."""
    smallest = None
    for size, ordinary, streaming in rows:
        smallest = (smallest or size) if streaming < ordinary else None
    return smallest


def new_outputs(loops, threads, n, seconds):
    """Seconds of every way to a new output, by name."""
    a, b = inputs(n)
    calls = {
        "NumPy": Call("np.add(a, b)", {"np": np, "a": a, "b": b}),
        "ours": Call("nc.add(a, b)", {"nc": nc, "a": a, "b": b}),
    }
    for name, flags in NEW_WAYS.items():
        arguments = [a.ctypes.data, b.ctypes.data, n, threads, *flags]
        calls[name] = Call("add_new(*x)", {"add_new": loops.add_new, "x": arguments})
    return measuring.in_rounds(calls, seconds)


def report(loops, threads, sizes, elements, seconds):
    print(f"\n{threads} threads, output in KiB: GB/s with ordinary and streaming stores, ratio")
    rows = []
    for size, ordinary, streaming in stores(loops, threads, sizes, seconds):
        rows.append((size, ordinary, streaming))
        rates = "".join(f"{3 * size / of / 1e9:9.1f}" for of in (ordinary, streaming))
        print(f"{size >> 10:>9,}{rates}{ordinary / streaming:9.2f}", flush=True)
    smallest = pays_from(rows)
    print(f"streaming pays from {smallest >> 10:,} KiB on" if smallest else "streaming never pays")
    print("\nnew outputs of float32, ms: median (fastest to slowest)")
    for n in elements:
        if not fits(n):
            print(f"{n:.0e}: skipped, not enough free memory")
            continue
        for name, times in new_outputs(loops, threads, n, seconds).items():
            median, least, most = (1e3 * f(times) for f in (statistics.median, min, max))
            print(f"{n:.0e} {name:20}{median:9.2f} ({least:.2f} to {most:.2f})", flush=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", help="default: 1, and as many as ours")
    parser.add_argument("--quick", action="store_true", help="small arrays: a check, no figures")
    options = parser.parse_args(arguments)
    if platform.machine() not in ("x86_64", "AMD64"):
        sys.exit("the plain loops are written for x86-64")
    caches = " + ".join(str(size >> 20) for size in _machine.last_level_caches())
    print(f"{_machine.cpu_model()}, {caches} MiB last-level cache, NumPy {np.__version__}")
    sizes, elements, seconds = OUTPUT_BYTES, NEW_ELEMENTS, SECONDS
    if options.quick:
        sizes, elements, seconds = [1 << 12, 1 << 16], [10**4], 0.001
    loops = compiled()
    for threads in options.threads or sorted({1, nc.get_config()["threads"]}):
        with nc.config(threads=threads):
            report(loops, threads, sizes, elements, seconds)


if __name__ == "__main__":
    main()
