"""Our own element-wise ufuncs: every dtype class, size and layout of operands."""

import numpy as np

from .operands import LIBRARIES, OWN_ELEMENTWISE, values


def _contiguous(n, dtype):
    return values(n, dtype), values(n, dtype), np.empty(n, dtype)


def _new(n, dtype):
    return values(n, dtype), values(n, dtype), None


def _scalar(n, dtype):
    return values(n, dtype), values(1, dtype)[0], np.empty(n, dtype)


def _strided(n, dtype):
    return values(2 * n, dtype)[::2], values(2 * n, dtype)[::2], np.empty(n, dtype)


def _rows(n, dtype):
    """Short rows plus one row: what NumPy hands to its loops in small pieces."""
    shape = n // 100, 100
    return values(shape, dtype), values(100, dtype), np.empty(shape, dtype)


LAYOUTS = {
    "contiguous": _contiguous,
    "new": _new,
    "scalar": _scalar,
    "strided": _strided,
    "rows": _rows,
}


class Elementwise:
    """``f(a, b, out)``."""

    param_names = ("ufunc", "dtype", "n", "layout", "library")
    params = (
        OWN_ELEMENTWISE,
        ["int64", "float16", "float32", "float64", "complex128"],
        [100, 10**4, 10**6],
        list(LAYOUTS),
        list(LIBRARIES),
    )

    def setup(self, ufunc, dtype, n, layout, library):
        code = np.dtype(dtype).char
        if f"{code}{code}->{code}" not in getattr(np, ufunc).types:
            raise NotImplementedError  # it is refused, or a cast is what would be timed
        self.ufunc = getattr(LIBRARIES[library], ufunc)
        self.operands = LAYOUTS[layout](n, dtype)

    def time_call(self, *_):
        self.ufunc(*self.operands)
