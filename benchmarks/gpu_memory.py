"""Arrays in memory that a GPU reaches: pinned and managed, beside ordinary ones, CuPy and cuBLAS.

    python benchmarks/gpu_memory.py [part ...]      # parts: see PARTS; all without any

Times are medians of calls made in turn, as in benchmarks/gpu.py.
"""

import statistics
import time

import numpy as np
from gpu import (
    _device_seconds,
    cupy,
    free_peers,
    main,
    median_seconds,
    ms,
    operand,
    parts_of,
    start_device,
    table,
    times,
)

import numc_ufuncs as nc

SLAB = 352  # SLAB_DOUBLE of src/device/device_cutoffs.h
# Of products, and of the copies alone on the machine that it was asked of.
MOST_PINNED_MS = {2048: (1.55, 1.22), 4096: (6.0, 4.9), 8192: (33, 19.5)}
MOST_TIMES_CUBLAS = 1.05
GIB = 1 << 30
MOST_READ_MS, MOST_BACK_MS = 80, 25


def copy_in(memory, array):
    with nc.config(memory=memory):
        return array.copy()


def product(a, b, out):
    with nc.config(device="cuda"):
        return nc.matmul(a, b, out=out)


def copies_seconds(a, b, out):
    """Copies of pinned arrays alone: b and a to the GPU, the result back as soon as b is there."""
    on_gpu = [cupy.empty(x.shape, x.dtype).data for x in (a, b, out)]
    back, b_is_there = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event()

    def copy():
        up = cupy.cuda.get_current_stream()
        on_gpu[1].copy_from_host_async(b.ctypes.data, b.nbytes)
        b_is_there.record(up)
        on_gpu[0].copy_from_host_async(a.ctypes.data, a.nbytes)
        back.wait_event(b_is_there)
        on_gpu[2].copy_to_host_async(out.ctypes.data, out.nbytes, back)
        up.wait_event(back.record())

    return _device_seconds(copy)


def part_pinned():
    rows = []
    for n in (2048, 4096, 8192):
        a, b = operand((n, n), "d", 1), operand((n, n), "d", 2)
        out = np.empty_like(a)
        pinned = [copy_in("pinned", x) for x in (a, b, out)]
        turned = [pinned[0], pinned[1].T, pinned[2]]
        calls = {
            "pinned": lambda of=pinned: product(*of),
            "b.T": lambda of=turned: product(*of),
            "ordinary": lambda of=(a, b, out): product(*of),
        }
        seconds = median_seconds(calls, 3.0)
        copies = copies_seconds(*pinned) if cupy is not None else None
        free_peers()
        most, copies_then = MOST_PINNED_MS[n]
        if copies is not None:
            most *= max(1, 1e3 * copies / copies_then)  # no link is faster than it is
        missed = "MISSED" if seconds["pinned"] * 1e3 > most else ""
        rows.append((f"float64 {n}", *map(ms, (*seconds.values(), copies)), f"{most:.3g}", missed))
        del pinned, turned, calls
        nc.memory.release()
    table(
        "products of pinned arrays into a pinned one",
        ("case, ms", "pinned", "b.T", "ordinary", "copies alone", "<=", ""),
        rows,
    )


def by_cublas(a, b):
    """A product by cuBLAS alone on the device, in the slabs that are as exact as a processor."""
    from cupy import cublas

    a, b = cupy.asarray(a, order="F"), cupy.asarray(b)
    out = cupy.empty((a.shape[0], b.shape[1]), "d", order="F")

    def multiply():
        for first in range(0, b.shape[0], SLAB):
            some = slice(first, first + SLAB)
            cublas.gemm("N", "N", a[:, some], b[some], out, 1.0, 0.0 if first == 0 else 1.0)
        cupy.cuda.get_current_stream().synchronize()

    return multiply


def part_managed():
    rows = []
    for n in (1024, 2048, 4096, 8192):
        a, b = operand((n, n), "d", 1), operand((n, n), "d", 2)
        managed = [copy_in("managed", x) for x in (a, b, np.zeros_like(a))]
        symmetric = [managed[0], managed[0].T, managed[2]]
        calls = {
            "out=": lambda of=managed: product(*of),
            "a @ a.T": lambda of=symmetric: product(*of),
        }
        if cupy is not None:
            calls["cuBLAS in slabs"] = by_cublas(a, b)
        product(*managed)  # moves them
        seconds = median_seconds(calls, 3.0)
        ours, theirs = seconds["out="], seconds.get("cuBLAS in slabs")
        ratio = times(ours, theirs)
        missed = "MISSED" if n >= 4096 and theirs and ours > MOST_TIMES_CUBLAS * theirs else ""
        rows.append((f"float64 {n}", ms(ours), ms(seconds["a @ a.T"]), ms(theirs), ratio, missed))
        del managed, symmetric, calls
        free_peers()
        nc.memory.release()
    table(
        f"products of managed arrays that lie on the GPU, at most {MOST_TIMES_CUBLAS} x cuBLAS",
        ("case, ms", "out=", "a @ a.T", "cuBLAS in slabs", "ratio", ""),
        rows,
    )


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def part_moves():
    """One GiB between both sides, by prefetching and by faults."""
    with nc.config(memory="managed"):
        array = np.ones(GIB // 8)
    found = {name: [] for name in ("to the GPU", "there already", "to the processor", "read after")}
    faults = []
    for _ in range(5):
        nc.memory.prefetch(array, "cpu")
        found["to the GPU"].append(seconds_of(lambda: nc.memory.prefetch(array, "cuda")))
        found["there already"].append(seconds_of(lambda: nc.memory.prefetch(array, "cuda")))
        found["to the processor"].append(seconds_of(lambda: nc.memory.prefetch(array, "cpu")))
        found["read after"].append(seconds_of(array.max))
        nc.memory.prefetch(array, "cuda")
        faults.append(seconds_of(array.max))
    medians = {name: statistics.median(of) for name, of in found.items()}
    missed = (
        medians["to the GPU"] * 1e3 > MOST_BACK_MS
        or medians["to the processor"] * 1e3 > MOST_READ_MS
    )
    table(
        f"a GiB of managed memory; at most {MOST_BACK_MS} to the GPU, {MOST_READ_MS} back",
        ("ms", *medians, "read by faults", ""),
        [
            (
                "",
                *map(ms, medians.values()),
                ms(statistics.median(faults)),
                "MISSED" if missed else "",
            )
        ],
    )


def part_making():
    """A new array of 256 MiB, of memory that is new and that was kept."""
    rows = []
    for memory in ("system", "cached", "pinned", "managed"):
        with nc.config(memory=memory):
            nc.memory.release()
            new = seconds_of(lambda: np.ones(1 << 25))
            again = statistics.median(seconds_of(lambda: np.ones(1 << 25)) for _ in range(5))
            small = statistics.median(seconds_of(lambda: np.empty(1000)) for _ in range(1000))
        nc.memory.release()
        rows.append((memory, ms(new), ms(again), f"{small * 1e6:.2f}"))
    table("np.ones of 256 MiB; np.empty of 8 kB, us", ("memory, ms", "new", "again", "small"), rows)


PARTS = parts_of(globals())

if __name__ == "__main__":
    start_device()
    main(PARTS, __doc__)
