"""Memory of arrays that stays.

With ``memory="cached"`` (`set_config`, `config`) large blocks of memory are kept when arrays are
freed, for the arrays to come: the pages of a new array cost as much as the sum that is written to
it. `info` says how much is kept, and how much may be.
"""

from . import _core

__all__ = ["release"]


def release():
    """Give back the memory that is kept for arrays to come.

    Returns
    -------
    int
        The bytes that were given back to the system.

    See Also
    --------
    numc_ufuncs.set_config : Its option ``memory`` decides whether memory is kept.

    Examples
    --------
    >>> import numpy as np, numc_ufuncs as nc
    >>> with nc.config(memory="cached"):
    ...     x = np.ones(1_000_000)
    ...     del x
    ...     nc.memory.release() >= 8_000_000
    True
    """
    return _core.release_memory()
