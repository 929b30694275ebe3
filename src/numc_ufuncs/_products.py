"""Products that NumPy computes outside of its ufuncs: dot, inner, vdot and einsum of two operands.

Each function returns NotImplemented for what NumPy is to compute: where ours would not gain, and
for whatever is wrong, so that the error is NumPy's.
"""

import functools
import math

import numpy as np

from . import _core
from ._ufuncs import own

_matmul = own["matmul"]

# Products of fewer elements gain less than is spent here.
LEAST_PRODUCTS = 1 << 13
# BLAS computes floats, in NumPy as here; only a GPU gains.
LEAST_BLAS_PRODUCTS = 1 << 20


def _dtype_if_ours(a, b):
    """The dtype of a product that our kernels are ahead in, else None."""
    dtype = a.dtype if a.dtype == b.dtype else np.result_type(a, b)
    return dtype if dtype.kind in "bui" or dtype.char in "eg" else None


@functools.cache
def _has_device():
    return any(names for _, names, _ in _core.devices())


def _has_no_errors(product):
    """Whether there is nothing that NumPy would report by the name of its own function."""
    return product.dtype.kind in "bui" or bool(np.isfinite(product).all())


def _product(a, b, shape, dtype, out):
    """The product of two matrices, in a new array of that shape, or in `out`."""
    if out is not None:
        usable = (
            type(out) is np.ndarray
            and out.dtype == dtype
            and out.shape == shape
            and out.flags.c_contiguous
            and out.flags.behaved
            and not np.may_share_memory(out, a)
            and not np.may_share_memory(out, b)
        )
        if not usable:
            return NotImplemented
    with np.errstate(all="ignore"):
        product = _matmul(a, b, out=None if out is None else out.reshape(len(a), b.shape[1]))
    if not _has_no_errors(product):
        return NotImplemented
    return product.reshape(shape) if out is None else out


def dot(a, b, out=None):
    """As `numpy.dot`."""
    if a.ndim == 0 or b.ndim == 0 or a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        return NotImplemented
    k = a.shape[-1]
    products = a.size // max(k, 1) * b.size
    dtype = _dtype_if_ours(a, b)
    if dtype is None:
        is_matrix_product = a.ndim == b.ndim == 2 and a.dtype == b.dtype and a.dtype.char in "fdFD"
        if not is_matrix_product or products < LEAST_BLAS_PRODUCTS or not _has_device():
            return NotImplemented
        dtype = a.dtype
    elif products < LEAST_PRODUCTS:
        return NotImplemented
    if a.ndim == b.ndim == 1:
        if out is not None:
            return NotImplemented
        with np.errstate(all="ignore"):
            product = _matmul(a, b)
        return product if _has_no_errors(product) else NotImplemented
    shape = a.shape[:-1] + (b.shape[:-2] + b.shape[-1:] if b.ndim > 1 else ())
    columns = b[:, None] if b.ndim == 1 else np.moveaxis(b, -2, 0).reshape(k, -1)
    return _product(a.reshape(-1, k), columns, shape, dtype, out)


def inner(a, b):
    """As `numpy.inner`."""
    if a.ndim == 0 or b.ndim == 0 or a.shape[-1] != b.shape[-1]:
        return NotImplemented
    k = a.shape[-1]
    dtype = _dtype_if_ours(a, b)
    if dtype is None or a.size // max(k, 1) * b.size < LEAST_PRODUCTS:
        return NotImplemented
    if a.ndim == b.ndim == 1:
        return dot(a, b)
    shape = a.shape[:-1] + b.shape[:-1]
    return _product(a.reshape(-1, k), b.reshape(-1, k).T, shape, dtype, None)


def vdot(a, b):
    """As `numpy.vdot`."""
    dtype = _dtype_if_ours(a, b)  # none of them is complex
    if dtype is None or a.size != b.size or a.size < LEAST_PRODUCTS:
        return NotImplemented
    return dot(a.ravel(), b.ravel())


# ---- einsum ----


@functools.lru_cache(maxsize=256)
def _labels(subscripts):
    """How two operands are multiplied, None if that is not one product of matrices.

    Labels of the batch (in both operands and in the result), of the rows (of the first alone), of
    the columns (of the second alone), those that are summed over, and those of the result.
    """
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    first, comma, second = left.partition(",")
    operands = first + second
    if not comma or not (operands + result).isalpha() or not subscripts.isascii():
        return None
    if not arrow:
        result = "".join(sorted(c for c in operands if operands.count(c) == 1))
    repeats = any(len(set(labels)) < len(labels) for labels in (first, second, result))
    if repeats or not set(result) <= set(operands):
        return None
    batch = [c for c in result if c in first and c in second]
    rows = [c for c in result if c in first and c not in second]
    columns = [c for c in result if c in second and c not in first]
    summed = [c for c in first if c in second and c not in result]
    if len(batch) + len(rows) + len(summed) != len(first):
        return None
    if len(batch) + len(columns) + len(summed) != len(second) or not summed:
        return None
    return first, second, result, batch, rows, columns, summed


def einsum(subscripts, a, b):
    """As `numpy.einsum` of two operands."""
    known = _labels(subscripts) if type(subscripts) is str else None
    if known is None or a.dtype != b.dtype:
        return NotImplemented
    first, second, result, batch, rows, columns, summed = known
    if a.ndim != len(first) or b.ndim != len(second):
        return NotImplemented
    size = dict(zip(first, a.shape, strict=True))
    if any(size.setdefault(c, n) != n for c, n in zip(second, b.shape, strict=True)):
        return NotImplemented

    def count(labels):
        return math.prod(size[c] for c in labels)

    m, n, k = count(rows), count(columns), count(summed)
    if count(batch) * m * n * k < LEAST_PRODUCTS:
        return NotImplemented
    # einsum's own loop is as good where each element of an operand is used once.
    if _dtype_if_ours(a, b) is None and (m < 4 or n < 4 or k < 4 or a.dtype.char not in "fdFD"):
        return NotImplemented

    def matrices(array, labels, order, shape):
        return array.transpose([labels.index(c) for c in order]).reshape(shape)

    batch_shape = tuple(size[c] for c in batch)
    swaps = bool(rows and columns) and result.index(columns[0]) < result.index(rows[0])
    left = matrices(a, first, batch + rows + summed, (*batch_shape, m, k))
    right = matrices(b, second, batch + summed + columns, (*batch_shape, k, n))
    if swaps:
        left, right = right.swapaxes(-1, -2), left.swapaxes(-1, -2)
    order = batch + (columns + rows if swaps else rows + columns)
    with np.errstate(all="ignore"):
        product = _matmul(left, right)
    product = product.reshape([size[c] for c in order])
    product = np.ascontiguousarray(product.transpose([order.index(c) for c in result]))
    return product if result else product[()]
