"""What ``%load_ext numc_ufuncs`` and ``%unload_ext numc_ufuncs`` call."""

from ._patch import patch_numpy, restore_numpy


def load_ipython_extension(shell):
    """Patch NumPy in this session."""
    patch_numpy()


def unload_ipython_extension(shell):
    """Restore NumPy."""
    restore_numpy()
