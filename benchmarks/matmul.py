"""Matrix products, NumPy beside ours: integers, bool, half and long double, stacks, thin shapes.

    python benchmarks/matmul.py table        # what decides, per instruction set, threads
    python benchmarks/matmul.py sweep thin small --dtypes int32,float16 --threads 2
    python benchmarks/matmul.py floats vectors short stacks joined --threads 1

`floats` gives the share of the peak of so many cores, `vectors` that of memory's bandwidth. Plain
C (`peak.c`) measures both in the same run. MKL is compared where it is installed.

NumPy is left out of a cell where one product would take it longer than --limit seconds, as its
loops get slower still with the size. A cell in which ours is slower is marked.
"""

import argparse
import ctypes
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import measuring
import numpy as np
import peak
from measuring import Call

import numc_ufuncs as nc
from numc_ufuncs import _bench

SECONDS = 0.15  # for each library
DTYPES = ("int8", "int16", "int32", "int64", "bool", "float16", "longdouble", "float32", "float64")
SQUARES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
SMALL = (1, 2, 3, 4, 5, 6, 8, 12, 16, 20, 24, 32, 33, 48)
LONG = 600
STACK = 10000

# (name, dtype, operands, what is asked for of 1 thread, of 1 thread with AVX2, of 2 threads)
TABLE = [
    ("int32 512", "int32", (512,), 60, 35, 110),
    ("int64 512", "int64", (512,), 45, 14, 80),
    ("int16 512", "int16", (512,), 110, 60, 200),
    ("int8 512", "int8", (512,), 75, 45, 140),
    ("half 512", "float16", (512,), 250, 150, None),
    ("bool 512 random", "bool", (512,), 5, None, None),
    ("bool 512 nearly empty", "nearly empty", (512,), 100, None, None),
    ("long double 512", "longdouble", (512,), 1.5, None, 3),
    ("int32 1024", "int32", (1024,), None, None, None),
    ("10000 of 16x16 float32", "float32", (16, STACK), 1.3, None, 2),
    ("10000 of 64x64 float32", "float32", (64, STACK), None, None, 2),
    ("10000 of 4x4 float64", "float64", (4, STACK), 3, None, 5),
]


def values(dtype, shape, seed):
    rng = np.random.default_rng(seed)
    if dtype == "nearly empty":
        return rng.random(shape) < 0.001
    if dtype == "bool":
        return rng.random(shape) < 0.5
    kind = np.dtype(dtype).kind
    if kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return (rng.standard_normal(shape) if kind == "f" else rng.integers(-99, 99, shape)).astype(
        dtype
    )


def table_cells(_dtypes):
    for name, dtype, (n, *stack), *_ in TABLE:
        yield name, dtype, (*stack, n, n), (*stack, n, n)


def sweep_cells(dtypes):
    for dtype in dtypes:
        for n in SQUARES:
            yield f"{dtype} {n}", dtype, (n, n), (n, n)


def small_cells(dtypes):
    for dtype in dtypes:
        for n in SMALL:
            yield f"{dtype} {n}", dtype, (n, n), (n, n)


def thin_cells(dtypes):
    for dtype in dtypes:
        for thin in (1, 3, 17):
            for m, k, n in ((thin, LONG, LONG), (LONG, thin, LONG), (LONG, LONG, thin)):
                yield f"{dtype} {m}x{k}x{n}", dtype, (m, k), (k, n)
        yield f"{dtype} {LONG}x{LONG} transposed", dtype, (LONG, LONG), "transposed"
        yield f"{dtype} vector", dtype, (LONG, LONG), (LONG,)
        yield f"{dtype} 1000 of 3x3", dtype, (1000, 3, 3), (1000, 3, 3)
        yield f"{dtype} 1000 of 12x12", dtype, (1000, 12, 12), (1000, 12, 12)


def float_cells(_dtypes):
    for dtype in ("float32", "float64"):
        for n in (128, 256, 512, 1024, 2048):
            yield f"{dtype} {n}", dtype, (n, n), (n, n)


def vector_cells(_dtypes):
    """The larger operand is read once; no other traffic counts."""
    n = 4096
    for dtype in ("float32", "float64", "complex64", "complex128"):
        for thin in (2, 4, 8):
            yield f"{dtype} {n}x{n}x{thin}", dtype, (n, n), (n, thin)
        yield f"{dtype} 4x{n}x{n}", dtype, (4, n), (n, n)
        yield f"{dtype} matrix, vector", dtype, (n, n), (n,)
        yield f"{dtype} vector, matrix", dtype, (n,), (n, n)


def short_cells(_dtypes):
    """What is written is most of it."""
    for dtype in ("float32", "float64"):
        for k in (1, 4, 8, 16):
            yield f"{dtype} 2000x{k}x2000", dtype, (2000, k), (k, 2000)


def stack_cells(_dtypes):
    for dtype in ("float32", "float64", "complex128"):
        yield f"{dtype} 220x250 of 1x270", dtype, (220, 250, 1, 270), (270, 270)
        yield f"{dtype} 270x270, 5000 of 270", dtype, (270, 270), (5000, 270, 1)


def joined_cells(_dtypes):
    """A matrix and a stack of vectors, or of narrow matrices, on either side."""
    shapes = ((2, 8000), (16, 1000), (64, 1000), (256, 64), (1000, 64), (4000, 8))
    for dtype in ("float32", "float64", "complex64", "complex128"):
        for n, k in shapes:
            for stack, m in ((3, 1), (8, 1), (50, 1), (3, 2), (8, 4), (50, 2)):
                yield f"{dtype} {stack} of {m}x{k}, {k}x{n}", dtype, (stack, m, k), (k, n)
                yield f"{dtype} {n}x{k}, {stack} of {k}x{m}", dtype, (n, k), (stack, k, m)


PARTS = {
    "table": table_cells,
    "sweep": sweep_cells,
    "thin": thin_cells,
    "small": small_cells,
    "floats": float_cells,
    "vectors": vector_cells,
    "short": short_cells,
    "stacks": stack_cells,
    "joined": joined_cells,
}


def once(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def numpys_rate(dtype, rates={}):  # noqa: B006
    """Seconds that NumPy needs for one multiplication."""
    if dtype not in rates:
        a, b = (values(dtype, (100, 100), seed) for seed in range(2))
        np.matmul(a, b)
        rates[dtype] = min(once(lambda: np.matmul(a, b)) for _ in range(3)) / 1e6
    return rates[dtype]


def operations(a, b):
    return 2 * np.matmul(a[..., :1], b[..., :1, :] if b.ndim > 1 else b[:1]).size * a.shape[-1]


def measure(name, dtype, shape_a, shape_b, limit):
    a = values(dtype, shape_a, 1)
    b = a.swapaxes(-1, -2) if shape_b == "transposed" else values(dtype, shape_b, 2)
    operands = {"a": a, "b": b}
    ours = Call("f(a, b)", {"f": nc.matmul, **operands})
    cell = {"cell": name, "dtype": dtype, "operations": operations(a, b)}
    cell["read_bytes"] = max(a.nbytes, b.nbytes)
    expected = cell["operations"] / 2 * numpys_rate(dtype)
    if expected * (1 if a.size < 10**6 else 5) > limit:
        ours()
        samples = measuring.in_rounds({"ours": ours}, SECONDS)
        return {**cell, "our_seconds": statistics.median(samples["ours"]), "numpy_least": expected}
    numpys = Call("f(a, b)", {"f": np.matmul, **operands})
    cell["same"] = agree(numpys(), ours(), a.shape[-1])
    calls = {"numpy": numpys, "ours": ours, **torch_calls(a, b), **mkl_calls(a, b)}
    samples = measuring.in_rounds(calls, SECONDS)
    cell |= measuring.compared(samples.pop("numpy"), samples.pop("ours"))
    return {**cell, "peers": {name: statistics.median(of) for name, of in samples.items()}}


def agree(theirs, ours, k):
    """Whether they are equal; sums of k floats of about 1 have an order of their own in each."""
    if theirs.dtype.char not in "fdFD":
        return np.array_equal(theirs, ours)
    return np.allclose(theirs, ours, rtol=0, atol=4 * k * np.finfo(theirs.dtype).eps)


def torch_calls(a, b):
    """What torch has for such a product; of int8 also its product with sums of 32 bits."""
    if importlib.util.find_spec("torch") is None or a.dtype == np.longdouble:
        return {}
    import torch

    torch.set_num_threads(nc.info()["threads"])
    names = {"a": torch.from_numpy(a), "b": torch.from_numpy(b)}
    functions = {"torch": torch.matmul}
    if a.dtype == np.int8 and a.ndim == b.ndim == 2:
        functions["torch._int_mm"] = torch._int_mm
    calls = {name: Call("f(a, b)", {"f": f, **names}) for name, f in functions.items()}
    return {name: call for name, call in calls.items() if runs(call)}


def mkl_calls(a, b):
    """MKL's own product of two matrices, where it is installed."""
    library = mkl()
    if library is None or a.dtype.char not in "fd" or not a.ndim == b.ndim == 2:
        return {}
    c = np.empty((a.shape[0], b.shape[1]), a.dtype)
    (m, k), n = a.shape, b.shape[1]
    if not (a.flags.c_contiguous and b.flags.c_contiguous):
        return {}
    gemm = library.cblas_sgemm if a.dtype.char == "f" else library.cblas_dgemm
    real = ctypes.c_float if a.dtype.char == "f" else ctypes.c_double
    pointer = ctypes.c_void_p
    rows, plain = 101, 111  # CblasRowMajor, CblasNoTrans
    arguments = (rows, plain, plain, m, n, k, real(1), pointer(a.ctypes.data), k,
                 pointer(b.ctypes.data), n, real(0), pointer(c.ctypes.data), n)  # fmt: skip
    return {"MKL": Call("f(*arguments)", {"f": gemm, "arguments": arguments, "kept": (a, b, c)})}


def mkl(found=[]):  # noqa: B006
    if not found:
        paths = sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*"))
        found.append(ctypes.CDLL(str(paths[0])) if paths else None)
        if paths:
            found[0].MKL_Set_Num_Threads(nc.info()["threads"])
    return found[0]


def runs(call):
    try:
        call()
    except RuntimeError:  # not for this dtype, or not for this shape
        return False
    return True


def shares(part, cell, limits):
    """Of what plain C does in this run."""
    if part == "floats":
        most, done, what = limits[cell["dtype"]], cell["operations"], "FMA peak"
    else:
        most, done, what = limits["read"], cell["read_bytes"], "reading"
    sides = {"ours": cell["our_seconds"], "NumPy": cell["numpy_seconds"], **cell["peers"]}
    each = (f"{name} {done / seconds / most:.0%}" for name, seconds in sides.items())
    return f"   of {what}: " + ", ".join(each)


def line(cell, asked=None):
    text = f"{cell['cell']:28} {cell['our_seconds'] * 1e6:12.2f} µs"
    text += f" {cell['operations'] / cell['our_seconds'] / 1e9:8.1f} GOP/s"
    if "ratio" not in cell:
        return f"{text}   NumPy left out: at least {cell['numpy_least']:.0f} s"
    text += f" {cell['numpy_seconds'] * 1e6:14.2f} µs {cell['ratio']:9.2f} x"
    text += "".join(f"   {name} {of * 1e6:.2f} µs" for name, of in cell["peers"].items())
    if asked:
        text += f"   asked {asked}" + ("" if cell["ratio"] >= asked else "  MISSED")
    text += "  SLOWER" if measuring.is_slower(cell) else ""
    return text + ("" if cell["same"] else "  RESULTS DIFFER")


def rate_of_float32():
    """int32 against float32's BLAS, at 1024."""
    cells = [measure(f"{d} 1024", d, (1024, 1024), (1024, 1024), 0) for d in ("int32", "float32")]
    rates = [cell["operations"] / cell["our_seconds"] / 1e9 for cell in cells]
    ratio = rates[0] / rates[1]
    print(f"int32 {rates[0]:.1f} GOP/s, float32 {rates[1]:.1f} ({_bench.blas()}): {ratio:.2f}")


def run_all_tables():
    """The table three times, each in a process of its own. True: something was slower."""
    status = 0
    modes = (("1 thread", 1, None), ("1 thread, AVX2", 1, "avx2"), ("2 threads", 2, None))
    for column, (title, threads, isa) in enumerate(modes):
        print(f"\n{title}", flush=True)
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}
        if isa:
            environment["NUMC_ISA"] = isa
        command = [
            sys.executable,
            __file__,
            "table",
            "--threads",
            str(threads),
            "--column",
            str(column),
        ]
        status |= subprocess.run(command, env=environment, check=False).returncode
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--dtypes", default=",".join(DTYPES), type=lambda text: text.split(","))
    parser.add_argument(
        "--threads", type=int, help="of ours and torch; of BLAS: OPENBLAS_NUM_THREADS"
    )
    parser.add_argument("--limit", type=float, default=10)
    parser.add_argument("--column", type=int, help="of the table: which of its demands hold here")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.parts == ["table"] and options.threads is None:
        return run_all_tables()
    nc.set_config(threads=options.threads, device="cpu")
    print(f"NumPy {np.__version__}, {nc.info()['isa']}, threads: {options.threads}")
    print(f"BLAS {_bench.blas()}")
    if "OPENBLAS_CORETYPE" in os.environ:
        print("OPENBLAS_CORETYPE is set: it may hold NumPy's BLAS back", file=sys.stderr)
    limits = None
    if not {"floats", "vectors"}.isdisjoint(options.parts):
        limits = peak.measured(nc.info()["threads"])
        print(
            f"peak: float32 {limits['float32'] / 1e9:.1f} GOP/s, float64 "
            f"{limits['float64'] / 1e9:.1f} GOP/s, reading {limits['read'] / 1e9:.1f} GB/s"
        )
    cells = []
    for part in options.parts:
        for cell in PARTS[part](options.dtypes):
            asked = None
            if part == "table" and options.column is not None:
                asked = {row[0]: row[3 + options.column] for row in TABLE}[cell[0]]
            cells.append(measure(*cell, options.limit))
            has_share = part in ("floats", "vectors") and "ratio" in cells[-1]
            share = shares(part, cells[-1], limits) if has_share else ""
            print(line(cells[-1], asked) + share, flush=True)
        if part == "table":
            rate_of_float32()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"blas": _bench.blas(), "info": nc.info(), "cells": cells}, file)
    compared = [cell for cell in cells if "ratio" in cell]
    return any(measuring.is_slower(cell) or not cell["same"] for cell in compared)


if __name__ == "__main__":
    sys.exit(main())
