"""What the benchmarks call, and on which arrays."""

import numpy as np

import numc_ufuncs
from numc_ufuncs._ufuncs import own

LIBRARIES = {"numpy": np, "numc_ufuncs": numc_ufuncs}
OWN_ELEMENTWISE = [name for name, ufunc in own.items() if ufunc.signature is None]
OWN_GENERALIZED = [name for name, ufunc in own.items() if ufunc.signature is not None]
NUMPY_UFUNCS = sorted(name for name in dir(np) if type(getattr(np, name)) is np.ufunc)

# The dtype with which to call a ufunc: the first of these that all its inputs can have.
_PREFERRED = "dl?M"
_CORE = 64  # length of each core dimension of a generalized ufunc


def values(shape, dtype):
    """Numbers from 1 to 2, where nearly all functions are defined; integers from 1 to 9."""
    rng = np.random.default_rng(0)
    dtype = np.dtype(dtype)
    if dtype.kind in "fc":
        return (1 + rng.random(shape)).astype(dtype)
    if dtype.kind == "M":
        return rng.integers(1, 10, shape).astype("M8[s]")
    return rng.integers(1, 10, shape).astype(dtype)


def _input_types(ufunc):
    inputs = [types.partition("->")[0] for types in ufunc.types]
    for code in _PREFERRED:
        if code * ufunc.nin in inputs:
            return code * ufunc.nin
    return next((i for i in inputs if i[0] == "d"), inputs[0])


def _input_shapes(ufunc, n):
    if ufunc.signature is None:
        return [(n,)] * ufunc.nin
    loops = max(n // _CORE**2, 1)
    operands = ufunc.signature.partition("->")[0].strip("()").split("),(")
    return [(loops, *(_CORE for _ in operand.split(","))) for operand in operands]


def inputs_of(name, n):
    """Inputs for any ufunc of NumPy, of about `n` elements."""
    ufunc = getattr(np, name)
    shapes, codes = _input_shapes(ufunc, n), _input_types(ufunc)
    inputs = [values(shape, code) for shape, code in zip(shapes, codes, strict=True)]
    if name in ("arcsin", "arccos", "arctanh", "asin", "acos", "atanh"):
        inputs[0] -= 1.0  # defined from -1 to 1 only
    return inputs
