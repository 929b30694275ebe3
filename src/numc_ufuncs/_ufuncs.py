"""The ufuncs: our own, and `parallel`, which makes one out of any other."""

import functools
import importlib
import sys

import numpy as np

from . import _core

_PACKAGE = __name__.rpartition(".")[0]

# Our own ufuncs: what they do, and an example with its result. Tests and benchmarks enumerate it.
OWN = {
    "add": ("Add two arrays, element by element.", "np.array([1, 2]), 3", "array([4, 5])"),
    "subtract": (
        "Subtract the second array from the first, element by element.",
        "np.array([5, 7]), 3",
        "array([2, 4])",
    ),
    "multiply": (
        "Multiply two arrays, element by element.",
        "np.array([5, 7]), 3",
        "array([15, 21])",
    ),
    "divide": (
        "Divide the first array by the second, element by element.",
        "np.array([5, 7]), 2",
        "array([2.5, 3.5])",
    ),
    "matmul": (
        "Multiply two matrices, or stacks of them.",
        "np.eye(2), np.array([1.0, 2.0])",
        "array([1., 2.])",
    ),
    "vecdot": (
        "Multiply vectors along the last axis, the first one conjugated.",
        "np.array([1.0, 2.0]), np.array([3.0, 4.0])",
        "np.float64(11.0)",
    ),
    "matvec": (
        "Multiply matrices with vectors, or stacks of both.",
        "np.eye(2), np.array([1.0, 2.0])",
        "array([1., 2.])",
    ),
    "vecmat": (
        "Multiply vectors, conjugated, with matrices, or stacks of both.",
        "np.array([1.0, 2.0]), np.eye(2)",
        "array([1., 2.])",
    ),
}

# After the summary; what follows it is NumPy's, to which it refers.
_NOTE_OF_OWN = """\
As `numpy.{name}`, on all cores: the same operands, dtypes, broadcasting, errors and methods, and
the same results{but}. `numc_ufuncs.config` limits the threads."""
_BUT_OF_PRODUCTS = ", but for the last bits of products of floats"
_EXAMPLES_OF_OWN = """\
Examples
--------
>>> import numpy as np
>>> import numc_ufuncs as nc
>>> nc.{name}({example})
{result}
"""
_NOTE_OF_PARALLEL = "The parallel form of `{name}`: the same results, computed on all cores."

_clones: dict[np.ufunc, np.ufunc] = {}


@functools.cache
def ufuncs_by_name():
    """All ufuncs of NumPy, those without a public name included."""
    modules = (np, importlib.import_module("numpy._core.umath"))
    named = ((name, value) for module in modules for name, value in vars(module).items())
    return {name: value for name, value in named if type(value) is np.ufunc}


@functools.cache
def linalg_ufuncs():
    """The generalized ufuncs of `numpy.linalg`, which have no public names."""
    try:
        module = importlib.import_module("numpy.linalg._umath_linalg")
    except ImportError:
        return {}
    return {name: value for name, value in vars(module).items() if type(value) is np.ufunc}


@functools.cache
def _ufuncs_of_numpy():
    return {*ufuncs_by_name().values(), *linalg_ufuncs().values()}


def _has_name_here(ufunc):
    """Whether numc_ufuncs.<name> is the parallel form of this ufunc."""
    return getattr(np, ufunc.__name__, None) is ufunc


def _scipy_error_handling(ufunc):
    """For a ufunc of scipy.special: whether errors are handled otherwise than on a new thread.

    ``scipy.special.errstate`` holds for the calling thread only, so that workers would not see it:
    where it differs from what a new thread has, the calling thread computes alone.
    """
    if ufunc in _ufuncs_of_numpy():
        return None  # scipy.special has names for some of them
    special = sys.modules.get("scipy.special")
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("scipy.special")]
    # Some have another name there, or none without an underscore.
    if special is None or not any(ufunc is v for m in modules for v in list(vars(m).values())):
        return None
    import threading

    of_new_thread = {}
    thread = threading.Thread(target=lambda: of_new_thread.update(special.geterr()))
    thread.start()
    thread.join()
    return lambda: special.geterr() != of_new_thread


def _clone(ufunc, op, doc):
    clone = _core.parallel_clone(ufunc, op, doc, _scipy_error_handling(ufunc))
    if clone is not ufunc and _has_name_here(ufunc):  # it is where NumPy's parts are unknown
        try:
            clone.__module__ = _PACKAGE
            # numpy.ma reads it; NumPy's stubs do not know that it can be set.
            clone.__qualname__ = ufunc.__name__  # pyright: ignore[reportAttributeAccessIssue]
        except AttributeError:
            pass  # NumPy 2.0 and 2.1 have no such attribute: pickle finds the name by search
    # Two threads may get here at once; both must see one object.
    return _clones.setdefault(ufunc, clone)


def _parts_of_doc(ufunc):
    """The summary of a docstring and the rest of it, without signatures: NumPy adds one."""
    doc = (ufunc.__doc__ or "").strip()
    while doc.startswith(f"{ufunc.__name__}("):
        doc = doc.partition("\n\n")[2].strip()
    summary, _, rest = doc.partition("\n\n")
    return summary, rest


def _joined(*paragraphs):
    return "\n\n".join(filter(None, paragraphs))


def _name_in_docs(ufunc):
    return f"numpy.{ufunc.__name__}" if _has_name_here(ufunc) else ufunc.__name__


# Functions of NumPy that are a method of a ufunc.
_METHODS = {
    "sum": "add.reduce",
    "prod": "multiply.reduce",
    "max": "maximum.reduce",
    "min": "minimum.reduce",
    "any": "logical_or.reduce",
    "all": "logical_and.reduce",
    "cumsum": "add.accumulate",
    "cumprod": "multiply.accumulate",
}


def _hint_for(function):
    """What to use instead of something that is no ufunc, if that is known."""
    owner = getattr(function, "__self__", None)
    if type(owner) is np.ufunc and _has_name_here(owner):
        return f": use {_PACKAGE}.{owner.__name__}.{function.__name__}"
    if type(getattr(function, "ufunc", None)) is np.ufunc:  # numba.vectorize makes such ones
        return ": pass its attribute `.ufunc`"
    for name, method in _METHODS.items():
        if function is getattr(np, name):
            return f": use {_PACKAGE}.{method}"
    return ""


def parallel(ufunc):
    """Return a ufunc that computes what `ufunc` computes, on all cores.

    Parameters
    ----------
    ufunc : numpy.ufunc
        Any ufunc or generalized ufunc with inner loops in its type table: NumPy's, those of
        ``scipy.special``, or those that another package compiled.

    Returns
    -------
    numpy.ufunc
        A ufunc with the same dtypes, promotion, methods and errors, and with bit-identical results.
        The same object for each call with the same `ufunc`, which it keeps alive. A ufunc of this
        package is returned unchanged.

    Raises
    ------
    TypeError
        If `ufunc` is not a `numpy.ufunc`, or has no inner loops in its type table.

    See Also
    --------
    patch_numpy : Leads calls of NumPy's own ufuncs to their parallel forms.

    Notes
    -----
    Calls that take less than some 20 us stay on the calling thread, as do loops over Python
    objects and what must be computed in order. Of a generalized ufunc the items of a stack are
    shared out. The inner loops must be safe to run in several threads at once, which NumPy itself
    relies on when it releases the GIL around them.

    Examples
    --------
    >>> import numpy as np
    >>> import numc_ufuncs as nc
    >>> exp = nc.parallel(np.exp)
    >>> bool(np.all(exp(np.arange(5.0)) == np.exp(np.arange(5.0))))
    True
    """
    if type(ufunc) is not np.ufunc:
        raise TypeError(
            f"ufunc must be a numpy.ufunc: got {ufunc!r} of type {type(ufunc).__name__}"
            f"{_hint_for(ufunc)}"
        )
    if ufunc in _clones:
        return _clones[ufunc]
    if any(ufunc is clone for clone in list(_clones.values())):
        return ufunc
    if ufunc.ntypes == 0:
        raise TypeError(
            f"parallel() cannot run {ufunc!r}: "
            "it has no inner loops in its type table (ufunc.types)"
        )
    summary, rest = _parts_of_doc(ufunc)
    note = _NOTE_OF_PARALLEL.format(name=_name_in_docs(ufunc))
    return _clone(ufunc, None, _joined(summary, note, rest))


def _own(name):
    summary, example, result = OWN[name]
    # NumPy has matvec and vecmat from 2.2 on.
    original = getattr(np, name, None) or _core.make_gufunc(name, np.matmul, np.vecdot)
    rest = _parts_of_doc(original)[1].partition("Examples\n--------\n")[0].rstrip()
    doc = _joined(
        summary,
        _NOTE_OF_OWN.format(name=name, but=_BUT_OF_PRODUCTS if original.signature else ""),
        rest,
        _EXAMPLES_OF_OWN.format(name=name, example=example, result=result),
    )
    return _clone(original, name, doc)


own = {name: _own(name) for name in OWN}
