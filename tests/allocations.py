"""What test_allocations.py runs: calls of which the Nth allocation of ours fails, for every N.

Each is made in a child of its own, whose pool and kept memory are as they are at the start.
"""

import ctypes
import os
import sys
import traceback
from operator import attrgetter

import _numc_test
import numpy as np

import numc_ufuncs as nc

LIBRARY = "numc_ufuncs/_core"
MOST_ALLOCATIONS = 300
RIGHT, MEMORY_ERROR, NOTHING_FAILED, WRONG = range(4)

malloc = ctypes.CDLL(sys.argv[1])
malloc.failing_malloc_arm.argtypes = [ctypes.c_char_p, ctypes.c_long]
malloc.failing_malloc_count.restype = ctypes.c_long

rng = np.random.default_rng(0)
square = rng.integers(-9, 9, (150, 150))
floats = rng.integers(-9, 9, (300, 400)).astype("d")  # whose sums are exact
turned = np.asfortranarray(floats)
stack = rng.integers(0, 9, (40, 20, 20)).astype("h")

# what it is: ufunc or method, operands, keywords
CALLS = {
    "element-wise": ("add", (floats, floats), {}),
    "converted": ("add", (square, floats[:150, :150]), {}),
    "transposed": ("add", (square, square.T), {}),
    "ranges": ("hypot", (floats, turned), {}),
    "masked": ("add", (square, 1), {"where": square > 0, "out": square.copy()}),
    "outer": ("multiply.outer", (square[0], square[1]), {}),
    "sum": ("add.reduce", (np.ones(1_000_000),), {}),
    "sums of rows": ("add.reduce", (floats,), {"axis": 1}),
    "sums of columns": ("add.reduce", (square,), {"axis": 0}),
    "sums of many columns": ("add.reduce", (np.ones((600, 3000)),), {"axis": 0}),
    "sums of columns in large blocks": ("add.reduce", (np.ones((600, 3000)),), {"axis": 0}),
    "running sum": ("add.accumulate", (square.ravel(),), {}),
    "integers": ("matmul", (square, square.T), {}),
    "bytes": ("matmul", (square.astype("b"), square.astype("b")), {}),
    "truth values": ("matmul", (square > 0, square > 3), {}),
    "halves": ("matmul", (square.astype("e"), np.eye(150, dtype="e")), {}),
    "long doubles": ("matmul", (square.astype("g"), square.astype("g")), {}),
    "thin": ("matmul", (square[:2], square), {}),
    "stack": ("matmul", (stack, stack), {}),
    "device": ("matmul", (square, square), {}),
    "floats on a device": ("matmul", (floats.T.copy(), floats), {}),
}
# Whichever threads come to take part. Others allocate where helpers do, or have no method of ours.
ALLOCATE = {"transposed", "integers", "bytes", "truth values", "halves", "long doubles"} | {
    name for name in CALLS if "device" in name
}


def ours(name):
    ufunc, _, method = CALLS[name][0].partition(".")
    ufunc = getattr(nc, ufunc, None) or nc.parallel(getattr(np, ufunc))
    return getattr(ufunc, method or "__call__")


def call(name, ufunc):
    _, operands, keywords = CALLS[name]
    if "out" in keywords:
        keywords = {**keywords, "out": keywords["out"].copy()}
    return ufunc(*operands, **keywords)


def call_on_device(name, ufunc):
    _numc_test.use_fake_device(1 << 28)
    nc.set_config(device="cuda")
    try:
        return call(name, ufunc)
    finally:
        nc.set_config(device=None)
        assert _numc_test.use_fake_device(0) == 0, "the pipeline left objects behind"


def outcome(name, expected, nth):
    ufunc = ours(name)
    run = call_on_device if "device" in name else call
    nc.set_config(threads=3)
    _numc_test.set_policy(1, True, "large blocks" not in name)
    assert malloc.failing_malloc_arm(LIBRARY.encode(), nth)
    try:
        result = run(name, ufunc)
    except MemoryError:
        result = None
    failed = malloc.failing_malloc_count() >= nth
    malloc.failing_malloc_arm(LIBRARY.encode(), 0)
    again = run(name, ufunc)  # whatever failed before
    if not all(np.array_equal(r, expected) for r in (result, again) if r is not None):
        return WRONG
    if not failed:
        return NOTHING_FAILED if result is not None else WRONG
    return RIGHT if result is not None else MEMORY_ERROR


def in_child(name, expected, nth):
    child = os.fork()
    if child == 0:
        status = WRONG
        try:
            status = outcome(name, expected, nth)
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main():
    seen = {RIGHT: 0, MEMORY_ERROR: 0}
    for name in CALLS:
        expected = call(name, attrgetter(CALLS[name][0])(np))
        for nth in range(1, MOST_ALLOCATIONS):
            status = in_child(name, expected, nth)
            if status == NOTHING_FAILED:
                break
            if status not in seen:
                what = "a wrong result" if status == WRONG else f"exit status {status}"
                raise SystemExit(f"{name}, allocation {nth}: {what}")
            seen[status] += 1
        if nth == 1 and name in ALLOCATE:
            raise SystemExit(f"{name}: no allocation was made to fail")
        print(f"{name}: {nth - 1} allocations")
    print(f"{seen[RIGHT]} right results, {seen[MEMORY_ERROR]} times MemoryError")


if __name__ == "__main__":
    main()
