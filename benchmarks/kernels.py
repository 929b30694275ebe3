"""Compare every own kernel with NumPy's loop: at least 16 KiB in the cache, one thread.

A kernel stays in ``src/kernels/elementwise/binary_ops.def`` only while its ratio is at least 1
within the spread. Addresses matter (lines that split, pages that alias), so each figure is the
median over random placements of the operands. Nothing spins here, so nothing pauses.

    NUMC_ISA=avx2 NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" \\
        python benchmarks/kernels.py
"""

import argparse
import random
import re
import statistics
import time
from pathlib import Path

import numpy as np

import numc_ufuncs as nc

TABLE = Path(__file__).parent.parent / "src" / "kernels" / "elementwise" / "binary_ops.def"
KERNELS = re.findall(r"^BINARY_OP\((\w+), (\w+),", TABLE.read_text(), re.MULTILINE)
CLASSES = {"i": "INTEGER", "f": "FLOAT"}  # by numpy.dtype.kind

DTYPES = "int8 int16 int32 int64 float16 float32 float64".split()
LAYOUTS = "array+array array+scalar scalar+array in-place".split()

LEAST_BYTES = 16384  # of output: smaller calls run NumPy's loop


def place(rng, n, dtype):
    """An array at a random multiple of 16 bytes, as NumPy's allocator gives them."""
    pool = np.empty(n * dtype.itemsize + 8192, np.uint8)
    start = -pool.ctypes.data % 16 + 16 * rng.randrange(512 - 1)
    array = pool[start : start + n * dtype.itemsize].view(dtype)
    array[...] = np.random.default_rng(0).integers(1, 100, n)
    return array


def seconds(function, a, b, out, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function(a, b, out)
    return (time.perf_counter() - start) / calls


def ratio(op, dtype, layout, n, placements, rng):
    theirs, ours = getattr(np, op), getattr(nc, op)
    measured = []
    overhead = place(rng, 1, dtype), place(rng, 1, dtype), place(rng, 1, dtype)
    for _ in range(placements):
        a, b, out = (place(rng, n, dtype) for _ in range(3))
        if layout == "array+scalar":
            b = b[0]
        elif layout == "scalar+array":
            a = a[0]
        elif layout == "in-place":
            out = a
        times = {theirs: [], ours: []}
        for _ in range(5):
            for function in (theirs, ours):
                times[function].append(seconds(function, a, b, out, 100))
                if layout == "in-place":
                    a[...] = 1
        call = min(seconds(theirs, *overhead, 100) for _ in range(5))
        measured.append((min(times[theirs]) - call, min(times[ours]) - call))
    theirs_ns = statistics.median(t for t, _ in measured) * 1e9
    ours_ns = statistics.median(o for _, o in measured) * 1e9
    return theirs_ns, ours_ns


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=4096)
    parser.add_argument("--placements", type=int, default=24)
    options = parser.parse_args()
    np.seterr(all="ignore")
    rng = random.Random(0)
    print(f"ISA {nc.info()['isa']}, loop only, ns: NumPy, ours, ratio")
    with nc.config(threads=1):
        for op in dict.fromkeys(op for op, _ in KERNELS):
            for name in DTYPES:
                dtype = np.dtype(name)
                if (op, CLASSES[dtype.kind]) not in KERNELS:
                    continue
                n = max(options.elements, LEAST_BYTES // dtype.itemsize)
                cells = []
                for layout in LAYOUTS:
                    theirs, ours = ratio(op, dtype, layout, n, options.placements, rng)
                    cells.append(f"{layout} {theirs:5.0f} {ours:5.0f} {theirs / ours:5.2f}")
                print(f"{op:12}{name:8}", " | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
