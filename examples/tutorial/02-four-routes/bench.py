"""What a call costs, and an element (in the L1 cache), by each route and by np.add."""

from timeit import Timer

import by_buffer
import by_cpp
import by_ctypes
import by_ufunc
import numpy as np

ROUTES = {
    "ctypes, unchecked": by_ctypes.unchecked_add,
    "ctypes": by_ctypes.add,
    "buffer": by_buffer.add,
    "C++": by_cpp.add,
    "ufunc": by_ufunc.add,
    "np.add": np.add,
}
SIZES = (10, 1000)
SECONDS = 0.001  # short samples, of which the least are hardly disturbed by other programs
REPETITIONS = 100


def timer(add, n):
    a, b, out = np.ones((3, n))
    return Timer("add(a, b, out)", globals={"add": add, "a": a, "b": b, "out": out})


def least(timer):
    calls = max(1, int(1000 * SECONDS / timer.timeit(1000)))
    return min(timer.repeat(REPETITIONS, calls)) / calls


print(f"{'':20}{'ns per call':>12}{'ps per element':>16}")
for name, add in ROUTES.items():
    short, long = (least(timer(add, n)) for n in SIZES)
    print(f"{name:20}{1e9 * short:12.0f}{1e12 * (long - short) / (SIZES[1] - SIZES[0]):16.0f}")
