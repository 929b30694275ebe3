"""NumPy ufuncs that use the whole machine.

``add``, ``subtract``, ``multiply``, ``divide`` and ``matmul`` are `numpy.ufunc` objects with SIMD
kernels and threads inside. `parallel` runs any other ufunc on all cores, and every ufunc of NumPy
is at hand in that form: ``numc_ufuncs.exp`` is ``parallel(numpy.exp)``.
"""

import numpy as _np

try:
    from . import _core as _core
except ImportError as error:
    raise ImportError(
        "numc_ufuncs has no compiled part here: either this is its source tree, in which case "
        "start Python elsewhere, or the installation is incomplete"
    ) from error

from ._config import config, get_config, info, set_config, show_config, warn_of_bad_environment
from ._ufuncs import add, divide, matmul, multiply, parallel, subtract
from ._version import __version__

__all__ = [
    "__version__",
    "add",
    "config",
    "divide",
    "get_config",
    "info",
    "matmul",
    "multiply",
    "parallel",
    "set_config",
    "show_config",
    "subtract",
]

warn_of_bad_environment()
del warn_of_bad_environment


def __getattr__(name):
    ufunc = getattr(_np, name, None) if not name.startswith("_") else None
    if type(ufunc) is not _np.ufunc:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = parallel(ufunc)
    return globals()[name]


def __dir__():
    return sorted({*globals(), *(n for n in dir(_np) if type(getattr(_np, n)) is _np.ufunc)})
