"""Every own op, dtype, size and layout: is any call slower than NumPy's?

A run is short for each cell. One that looks slower is measured again at length before it counts,
and only what is slower then goes on to the next run.
"""

import layouts
import measuring
import numpy as np
from measuring import Call

import numc_ufuncs as nc
from numc_ufuncs import _machine
from numc_ufuncs._ufuncs import OWN

OPS = [name for name in OWN if getattr(nc, name).signature is None]
DTYPES = "? i1 i8 e f d F".split()
SIZES = [1, 8, 100, 10**3, 10**4, 10**5, 10**6, 10**7]
SECONDS, LONG_SECONDS = 0.03, 0.3  # per cell, and for one that looks slower
LOOKS_SLOWER = 0.98
QUIET, ATTEMPTS = 0.05, 3  # with more noise than that, a cell is measured again: so often
WORST = 10
BYTES = 12 * 8  # per element: inputs of twice the size, results, and what comparing them takes


def result_dtype(op, dtype):
    """Of NumPy's ufunc; None if it refuses the dtype, as subtract does bool."""
    try:
        return getattr(np, op)(np.ones(1, dtype), np.ones(1, dtype)).dtype
    except TypeError:
        return None


def columns(ops, sizes):
    """(dtype, n, layout, calls) of cells that share operands; calls are (op, output)."""
    for dtype in DTYPES:
        possible = [op for op in ops if result_dtype(op, dtype) is not None]
        for n in sizes:
            for layout in layouts.LAYOUTS:
                outputs = ("out=", "new") if layout == "contiguous" else ("out=",)
                yield dtype, n, layout, [(op, output) for op in possible for output in outputs]


def name_of(op, dtype, n, layout, output):
    return f"{op} {np.dtype(dtype)} {n:,} {layout}, {output}"


def same(theirs, ours):
    """Equal; but products of complex numbers depend on strides in NumPy itself."""
    if theirs.dtype != ours.dtype or theirs.shape != ours.shape:
        return False
    if theirs.dtype.kind == "c":
        return np.allclose(theirs, ours, rtol=8 * np.finfo(theirs.dtype).eps, atol=0)
    return np.array_equal(theirs, ours)


def measure(op, a, b, output):
    """Both times, ratio and spread, and whether the results agree."""
    names, statement = {"a": a, "b": b}, "f(a, b)"
    if output == "out=":
        names["out"] = layouts.empty_out(a, b, result_dtype(op, a.dtype))
        statement = "f(a, b, out=out)"
    theirs, ours = (Call(statement, {**names, "f": getattr(lib, op)}) for lib in (np, nc))
    expected = np.array(theirs())
    if output == "out=":
        names["out"].fill(0)
    agrees = bool(same(expected, np.asarray(ours())))
    del expected
    cell = measuring.against_numpy(theirs, ours, SECONDS)
    for _ in range(ATTEMPTS):
        if cell["ratio"] >= LOOKS_SLOWER:
            break
        cell = measuring.against_numpy(theirs, ours, LONG_SECONDS)
        if cell["spread"] <= QUIET:
            break
    return {**cell, "same": agrees}


def run(ops, sizes, only, progress):
    """Measure the cells, or those of them whose names are in `only`; list what was left out."""
    measured, skipped, shown = [], [], ""
    for dtype, n, layout, calls in columns(ops, sizes):
        named = {name_of(op, dtype, n, layout, output): (op, output) for op, output in calls}
        if only is not None:
            named = {name: call for name, call in named.items() if name in only}
        if not named:
            continue
        if shown != (shown := f"{np.dtype(dtype)} {n:,}"):
            progress(shown)
        if n * BYTES > _machine.free_memory() / 2:
            skipped.append(f"{np.dtype(dtype)} {n:,} {layout}: not enough free memory")
            continue
        a, b = layouts.LAYOUTS[layout](*layouts.sides(layout, n), dtype)
        for name, (op, output) in named.items():
            measured.append({"cell": name, **measure(op, a, b, output)})
    return {"cells": measured, "skipped": skipped}


def slower(result):
    """Names of the cells that were slower in one run."""
    return [cell["cell"] for cell in result["cells"] if measuring.is_slower(cell)]


def worst(results):
    """Lines for the worst cells: those slower in all runs, then by the best ratio of any run."""
    by_cell = measuring.by_cell(results)
    lost = {name for name, _ in measuring.slower_in_all(results)}
    order = sorted(
        by_cell, key=lambda name: (name not in lost, max(cell["ratio"] for cell in by_cell[name]))
    )
    head = f"{'the worst cells':54} {'NumPy, µs':>11} {'ours, µs':>11}"
    lines = [f"{head}  ratio (noise) in each run"]
    for name in order[:WORST]:
        runs = by_cell[name]
        ratios = "  ".join(f"{cell['ratio']:.2f} ({cell['spread']:.1%})" for cell in runs)
        times = f"{runs[-1]['numpy_seconds'] * 1e6:11.3f} {runs[-1]['our_seconds'] * 1e6:11.3f}"
        lines.append(f"{name:54} {times}  {ratios}{'  SLOWER' if name in lost else ''}")
    return lines
