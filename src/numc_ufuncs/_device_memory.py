"""Pinned and managed memory: where arrays live, and what a process does that has such memory."""

import atexit
import functools
import os
import warnings

import numpy as np

from . import _core

bounds = np.lib.array_utils.byte_bounds


def kind_of(array):
    """Return where an array lives: 'ordinary', 'pinned' or 'managed'."""
    return _core.memory_of(*bounds(array))


@functools.cache
def prepare():
    """Have forks warned of, and the driver left alone when the process ends. Once."""
    os.register_at_fork(before=_warn_of_fork)
    atexit.register(_core.end_device_memory)


def _warn_of_fork():
    in_use = _core.managed_in_use()
    if in_use > 0:
        warnings.warn(
            f"arrays have {in_use} bytes of managed memory, which CUDA does not give to forked "
            "processes: a child that touches one of these arrays dies (SIGSEGV)",
            RuntimeWarning,
            stacklevel=2,
        )
