"""Operands of two-operand calls: every dtype, in every layout of memory."""

from math import isqrt

import numpy as np

_POOL = 4099  # a prime: no two rows are alike


def values(shape, dtype, seed, zeros=False):
    """Values from 1 to 2, integers from 1 to 99; of bool only with `zeros` some False."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        pool = 1 + rng.random(_POOL) + 1j * (1 + rng.random(_POOL))
    elif dtype.kind == "f":
        pool = 1 + rng.random(_POOL)
    else:
        pool = rng.integers(0, 2, _POOL) if zeros else rng.integers(1, 100, _POOL)
    return np.resize(pool.astype(dtype), shape)


def two(shape_a, shape_b, dtype):
    """Two operands; the second has no zeros, so that dividing by it raises no flag."""
    zeros = np.dtype(dtype).kind == "b"
    return values(shape_a, dtype, 1, zeros), values(shape_b, dtype, 2)


def contiguous(rows, columns, dtype):
    return two(rows * columns, rows * columns, dtype)


def scalar(rows, columns, dtype):
    return two(rows * columns, (), dtype)


def row(rows, columns, dtype):
    return two((rows, columns), columns, dtype)


def column(rows, columns, dtype):
    return two((rows, 1), (1, columns), dtype)


def row_slices(rows, columns, dtype):
    a, b = two((2 * rows, columns), (2 * rows, columns), dtype)
    return a[::2], b[::2]


def column_slices(rows, columns, dtype):
    a, b = two((rows, 2 * columns), (rows, 2 * columns), dtype)
    return a[:, ::2], b[:, ::2]


def transposed(rows, columns, dtype):
    a, b = two((columns, rows), (columns, rows), dtype)
    return a.T, b.T


def c_and_f(rows, columns, dtype):
    a, b = two((rows, columns), (columns, rows), dtype)
    return a, b.T


LAYOUTS = {
    "contiguous": contiguous,
    "array, scalar": scalar,
    "(n,m), (m,)": row,
    "(n,1), (1,m)": column,
    "a[::2], b[::2]": row_slices,
    "a[:, ::2], b[:, ::2]": column_slices,
    "a.T, b.T": transposed,
    "C, F order": c_and_f,
}
SHORT_ROW = 100


def sides(layout, n):
    """(rows, columns) of `n` elements: as square as can be, but short rows for (n,m), (m,)."""
    longest = min(isqrt(n), SHORT_ROW) if layout == "(n,m), (m,)" else isqrt(n)
    short = next(side for side in range(longest, 0, -1) if n % side == 0)
    return n // short, short


def empty_out(a, b, dtype):
    """An output in the order that the ufunc would choose, with its pages in place."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    f_order = a.flags.fnc and b.flags.fnc
    out = np.empty(shape, dtype, order="F" if f_order else "C")
    out.fill(1)
    return out
