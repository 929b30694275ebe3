"""What ``%load_ext numc_ufuncs`` and ``%unload_ext numc_ufuncs`` call."""

from ._patch import patch_numpy, restore_numpy
from ._profile import profile

_MAGIC = "numc_profile"


def load_ipython_extension(shell):
    """Patch NumPy in this session, and define ``%%numc_profile``: ``%load_ext numc_ufuncs``.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The session; IPython passes it.
    """

    def profile_cell(line, cell):
        """Run the cell, and print which ufuncs it called."""
        with profile() as counted:
            shell.run_cell(cell)
        print(counted.table())

    patch_numpy()
    shell.register_magic_function(profile_cell, "cell", _MAGIC)


def unload_ipython_extension(shell):
    """Restore NumPy, and take ``%%numc_profile`` away: ``%unload_ext numc_ufuncs``.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The session; IPython passes it.
    """
    shell.magics_manager.magics["cell"].pop(_MAGIC, None)
    restore_numpy()
