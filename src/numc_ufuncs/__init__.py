"""NumPy ufuncs that use the whole machine.

``add``, ``subtract``, ``multiply``, ``divide`` and ``matmul`` are `numpy.ufunc` objects with SIMD
kernels and threads inside. `parallel` runs any other ufunc on all cores, and every ufunc of NumPy
is at hand in that form: ``numc_ufuncs.exp`` is ``parallel(numpy.exp)``.
"""

import importlib as _importlib
import sys as _sys
import warnings as _warnings

from . import _run

if _run.python_options() is not None and _sys.argv[1:2] == ["run"]:
    # Before NumPy is loaded; and a program is run even if the rest of this package is broken.
    _run.main(_sys.argv[2:])

import numpy as _np

try:
    import numc_ufuncs._core as _core
except ModuleNotFoundError as error:
    if error.name != "numc_ufuncs._core":
        raise
    raise ImportError(
        f"{__path__[0]} has no compiled part: it is the source tree, or an incomplete installation"
    ) from error

from . import memory
from ._config import config, get_config, info, last_call, measure_rates, set_config, show_config
from ._ipython import load_ipython_extension, unload_ipython_extension
from ._patch import is_patched, patch_numpy, patched, restore_numpy
from ._profile import profile
from ._ufuncs import own as _own
from ._ufuncs import parallel
from ._version import __version__

globals().update(_own)

__all__ = [
    "__version__",
    "config",
    "get_config",
    "info",
    "is_patched",
    "last_call",
    "linalg",
    "load_ipython_extension",
    "measure_rates",
    "memory",
    "parallel",
    "patch_numpy",
    "patched",
    "profile",
    "restore_numpy",
    "set_config",
    "show_config",
    "unload_ipython_extension",
]
__all__ += list(_own)


def __getattr__(name):
    if name == "linalg":  # few programs use it
        return _importlib.import_module(f"{__name__}.linalg")
    ufunc = getattr(_np, name, None) if not name.startswith("_") else None
    if type(ufunc) is not _np.ufunc:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = parallel(ufunc)
    return globals()[name]


def __dir__():
    ufuncs = (name for name, value in vars(_np).items() if type(value) is _np.ufunc)
    return sorted({*globals(), *__all__, *ufuncs})


for _text in (*_core.take_import_warnings(), *_run.environment_problems()):
    try:
        _warnings.warn(_text, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        # Warnings are errors here; but a bad variable is no reason for an import to fail.
        print(f"numc_ufuncs: RuntimeWarning: {_text}", file=_sys.stderr)
