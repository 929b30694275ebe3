"""NumPy's own ufuncs on all cores: the objects stay, what computes them changes."""

import functools
import importlib
from _thread import allocate_lock  # threading would take longer than the rest of our import
from collections.abc import Iterable

import numpy as np

from . import _core, _products
from ._ufuncs import linalg_ufuncs, parallel, ufuncs_by_name

_multiarray_umath = importlib.import_module("numpy._core._multiarray_umath")

# Functions that are products, though no ufuncs: by name, what they are in NumPy, and ours.
_FUNCTIONS = {
    "dot": (_multiarray_umath.dot, _products.dot),
    "ndarray.dot": (np.ndarray.dot, _products.dot),
    "inner": (_multiarray_umath.inner, _products.inner),
    "vdot": (_multiarray_umath.vdot, _products.vdot),
    "einsum": (_multiarray_umath.c_einsum, _products.einsum),
}


@functools.cache
def _patchable():
    """What can be patched, by name, as tuples: ufuncs, those without a public name included; names
    of functions. ``linalg.eigh`` is all ufuncs that `numpy.linalg.eigh` may call.
    """
    found: dict[str, tuple[str | np.ufunc, ...]] = {
        name: (name,) for name in _FUNCTIONS if not name.startswith("ndarray.")
    }
    found |= {name: (ufunc,) for name, ufunc in ufuncs_by_name().items() if ufunc.ntypes > 0}
    for name, ufunc in linalg_ufuncs().items():
        function = f"linalg.{name.partition('_')[0].rstrip('1')}"  # of eigh_lo, solve1
        if ufunc.ntypes > 0:
            found[function] = (*found.get(function, ()), ufunc)
    return found


def _all_patchable():
    return {what for group in _patchable().values() for what in group}


def _named(name, argument):
    """What a name stands for."""
    if not isinstance(name, str) or name not in _patchable():
        raise ValueError(
            f"{argument} must be the name of a ufunc of numpy, or 'dot', 'inner', 'vdot', "
            f"'einsum', or such as 'linalg.inv': got {name!r}"
        )
    return _patchable()[name]


_preparation = allocate_lock()


@functools.cache
def _prepare():
    """Put the trampolines in place, once and for all; return what has one."""
    led = set()
    for what in _all_patchable():
        if isinstance(what, str):
            continue
        clone = parallel(what)
        if clone is not what and _core.lead_to_clone(what, clone):
            led.add(what)
    for name, (function, ours) in _FUNCTIONS.items():
        if _core.lead_function(name, function, ours):
            led.add(name)
    _core.lead_methods()
    return led


def _chosen(names):
    if names is None:
        chosen = _all_patchable()
    elif isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"names must be a list of names, or None: got {names!r}")
    else:
        chosen = {what for name in names for what in _named(name, "each of names")}
    with _preparation:
        return frozenset(chosen & _prepare())


def patch_numpy(names=None):
    """Lead calls of NumPy's ufuncs to this package, in the whole process.

    The objects stay what they are: `numpy.add`, the operators of arrays, methods such as
    ``numpy.add.reduce``, and functions that call them, such as `numpy.sum`, compute on all cores
    from then on, wherever they were imported, and so do the functions of `numpy.linalg` for stacks
    of matrices, and `numpy.dot`, `numpy.inner`, `numpy.vdot` and `numpy.einsum` of two operands
    (not with NumPy 2.0). Results are NumPy's.

    Parameters
    ----------
    names : iterable of str, optional
        Names of ufuncs, such as ``["add", "matmul"]``, of ``dot``, ``inner``, ``vdot`` and
        ``einsum``, and of what `numpy.linalg` is made of, such as ``linalg.inv`` (but not
        ``linalg.pinv``, which calls ``linalg.svd``); all by default. Others that are patched stay
        so.

    Raises
    ------
    TypeError
        If `names` is a string, or nothing that can be iterated over.
    ValueError
        For any other name. Nothing is changed then.

    See Also
    --------
    restore_numpy : The way back.
    patched : For a block of code.

    Examples
    --------
    >>> import numpy as np, numc_ufuncs
    >>> numc_ufuncs.patch_numpy()
    >>> int((np.arange(10) + 1).sum())
    55
    >>> numc_ufuncs.restore_numpy()
    """
    for what in _chosen(names):
        _core.set_patched(what, True)


def restore_numpy():
    """Let NumPy compute its calls itself again; what `patched` leads here stays led.

    See Also
    --------
    patch_numpy : What this ends.

    Examples
    --------
    >>> import numc_ufuncs as nc
    >>> nc.patch_numpy()
    >>> nc.restore_numpy()
    >>> nc.is_patched()
    False
    """
    for what in _all_patchable():
        _core.set_patched(what, False)


def is_patched(name=None):
    """Whether calls from here are led to this package.

    Parameters
    ----------
    name : str, optional
        As for `patch_numpy`; whether anything is patched by default.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        For a name that cannot be patched.

    Examples
    --------
    >>> import numc_ufuncs as nc
    >>> with nc.patched(["add"]):
    ...     nc.is_patched("add"), nc.is_patched("multiply"), nc.is_patched()
    (True, False, True)
    """
    if name is None:
        return any(map(_core.is_patched, _all_patchable()))
    return all(map(_core.is_patched, _named(name, "name")))


class patched:
    """Lead calls of NumPy's ufuncs to this package within a ``with`` block.

    Parameters
    ----------
    names : iterable of str, optional
        As for `patch_numpy`.

    Notes
    -----
    Like the options of `config`, it holds for a context (`contextvars`): other threads and tasks do
    not see it.

    Examples
    --------
    >>> import numpy as np, numc_ufuncs
    >>> with numc_ufuncs.patched():
    ...     int(np.add.reduce(np.arange(10)))
    45
    """

    def __init__(self, names=None):
        self._what = _chosen(names)
        self._blocks = []  # open ones, of all contexts

    def __enter__(self):
        _core.open_block(self._blocks, 0, 0, 0, 0, 0, self._what)
        return self

    def __exit__(self, *exception):
        _core.close_block(self._blocks)
        return False
