"""`numpy.linalg` on all cores: NumPy's own functions, with the parallel forms of its ufuncs inside.

Each function runs NumPy's code with other globals: arguments, errors, named tuples and whatever
differs from version to version are NumPy's. Where NumPy's module is not as expected, a function is
NumPy's own.
"""

import functools
import importlib
import types
import warnings

import numpy as np

from . import _core, _products
from ._ufuncs import parallel

LinAlgError = np.linalg.LinAlgError

_NAMES = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]
__all__ = ["LinAlgError"]
__all__ += list(_NAMES)

_DOC = """\
{summary}

Same arguments, results and errors as `numpy.linalg.{name}`; stacks of matrices are computed on all
cores.

See Also
--------
numpy.linalg.{name} : Describes the parameters.
numc_ufuncs.config : How many threads a call may use.
"""

# Products of smaller operands gain less than asking takes.
LEAST_ELEMENTS = 512

# Smaller stacks are as fast in NumPy's way; small matrices make lines of so many bytes.
LEAST_STACK_BYTES = 1 << 21
LINE_BYTES = 1 << 13

# Functions whose first two arguments are arrays; of all others, the first one is.
_OF_TWO_ARRAYS = frozenset(
    ("cross", "lstsq", "matmul", "outer", "solve", "tensordot", "tensorsolve", "vecdot")
)

# What asks no more than what NumPy's own dispatch asks: other types get NumPy's function.
_DISPATCH = """\
def {name}({parameters}):
    if {is_usual} or not _overrides({arrays}):
        return _ours({arguments})
    return _theirs({arguments})
"""


class _ParallelForms:
    """A module whose ufuncs are made parallel when they are first asked for."""

    def __init__(self, module):
        self._module = module

    def __getattr__(self, name):
        value = getattr(self._module, name)
        if type(value) is np.ufunc and value.ntypes > 0:
            value = parallel(value)
        setattr(self, name, value)
        return value


# Without the dispatch of NumPy's functions: what overrides it has not come here.
_dot_of_numpy = getattr(np.dot, "_implementation", np.dot)
_triu_of_numpy = getattr(np.triu, "_implementation", np.triu)


def _dot(a, b, out=None):
    """As `numpy.dot`, which is no ufunc."""
    if type(a) is type(b) is np.ndarray and a.size + b.size >= LEAST_ELEMENTS:
        product = _products.dot(a, b, out)
        if product is not NotImplemented:
            return product
    return _dot_of_numpy(a, b, out)


def _is_in_order(m):
    """Whether what lies in memory is in the order of the axes, and rows are contiguous."""
    least = m.itemsize
    for step, count in zip(reversed(m.strides), reversed(m.shape), strict=True):
        if step < least:
            return False
        least = step * count
    return m.strides[-1] == m.itemsize


def _triu(m, k=0):
    """As `numpy.triu`, which does it on one core: large stacks as one operation on bits."""
    if (
        m.ndim < 3
        or k != 0
        or m.nbytes < LEAST_STACK_BYTES
        or type(m) is not np.ndarray
        or m.dtype.char not in "dD"
        or not m.dtype.isnative
        or not _is_in_order(m)
        or _core.get_options()[0] == 1
    ):
        return _triu_of_numpy(m, k)
    upper = np.triu(np.full(m.shape[-2:], -1, np.int64))
    mask = np.repeat(upper, m.itemsize // upper.itemsize, axis=-1).ravel()
    result = np.empty(m.shape, m.dtype)
    bits, upper_bits = m.view(np.int64), result.view(np.int64)
    bitwise_and = parallel(np.bitwise_and)
    if not m.flags.c_contiguous:
        bitwise_and(bits, mask.reshape(bits.shape[-2:]), upper_bits)
        return result
    at_once = max(LINE_BYTES // mask.nbytes, 1)
    whole = bits.size // (at_once * mask.size) * (at_once * mask.size)
    bits, upper_bits = bits.reshape(-1), upper_bits.reshape(-1)
    for part, line in (
        (slice(whole), np.tile(mask, at_once)),
        (slice(whole, None), mask),
    ):
        shape = (-1, line.size)
        bitwise_and(bits[part].reshape(shape), line, upper_bits[part].reshape(shape))
    return result


def _warn(message, category=None, stacklevel=1):
    # In between are this function, and the one that asks for overrides.
    warnings.warn(message, category, stacklevel + 2)


@functools.cache
def _functions():
    """NumPy's functions with globals of ours, by name: they call each other, and our ufuncs."""
    theirs = vars(importlib.import_module("numpy.linalg._linalg"))
    if type(theirs["_umath_linalg"]) is not types.ModuleType:
        raise TypeError("numpy.linalg._linalg._umath_linalg is no module")
    ours = dict(theirs)
    functions = {}
    for name, value in theirs.items():
        function = getattr(value, "_implementation", value)
        if type(function) is types.FunctionType and function.__globals__ is theirs:
            made = types.FunctionType(
                function.__code__,
                ours,
                function.__name__,
                function.__defaults__,
                function.__closure__,
            )
            made.__kwdefaults__ = function.__kwdefaults__
            ours[name] = functions[name] = made
        elif type(value) is np.ufunc and value.ntypes > 0:
            ours[name] = parallel(value)
    ours["_umath_linalg"] = _ParallelForms(theirs["_umath_linalg"])
    ours["dot"] = _dot
    ours["triu"] = _triu
    ours["warnings"] = types.SimpleNamespace(**{**vars(warnings), "warn": _warn})
    return functions


_no_override = np.ndarray.__array_function__


def _overrides(*operands):
    """Whether one of them has an `__array_function__` of its own."""
    for operand in operands:
        kind = type(operand)
        if kind is not np.ndarray and (
            getattr(kind, "__array_function__", _no_override) is not _no_override
        ):
            return True
    return False


def _dispatched(name, ours, theirs):
    """A function of the same parameters, which calls `theirs` where a type overrides it."""
    code = ours.__code__
    positional, only_positional = code.co_argcount, code.co_posonlyargcount
    names = code.co_varnames[: positional + code.co_kwonlyargcount]
    first, keywords = names[:positional], names[positional:]
    parameters = [*first[:only_positional], "/"] if only_positional else []
    parameters += [*first[only_positional:], *(["*"] if keywords else []), *keywords]
    if name == "multi_dot":
        arrays, is_usual = f"*list({first[0]}) + [{keywords[0]}]", "False"
    else:
        operands = first[: 1 + (name in _OF_TWO_ARRAYS)]
        arrays = ", ".join(operands)
        is_usual = " and ".join(f"type({operand}) is _ndarray" for operand in operands)
    text = _DISPATCH.format(
        name=name,
        parameters=", ".join(parameters),
        arrays=arrays,
        is_usual=is_usual,
        arguments=", ".join([*first, *(f"{keyword}={keyword}" for keyword in keywords)]),
    )
    names = {
        "__name__": __name__,
        "_ndarray": np.ndarray,
        "_overrides": _overrides,
        "_ours": ours,
        "_theirs": theirs,
    }
    # In this folder, whose lines are nobody's program, and a file that has none to show.
    exec(compile(text, f"{__file__}:{name}", "exec"), names)
    function = names[name]
    function.__defaults__ = ours.__defaults__
    function.__kwdefaults__ = ours.__kwdefaults__
    summary = (theirs.__doc__ or "").strip().partition("\n\n")[0]
    function.__doc__ = _DOC.format(name=name, summary=summary or f"As `numpy.linalg.{name}`.")
    return function


def _make(name):
    theirs = getattr(np.linalg, name)
    try:
        return _dispatched(name, _functions()[name], theirs)
    except (AttributeError, ImportError, LookupError, SyntaxError, TypeError):
        return theirs  # a NumPy whose module is another one than those that are known


def __getattr__(name):
    if name not in _NAMES or not hasattr(np.linalg, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Two threads may get here at once; both must see one object.
    return globals().setdefault(name, _make(name))


def __dir__():
    return sorted({*globals(), *__all__})
