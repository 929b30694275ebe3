"""Found first by programs under ``python -m numc_ufuncs run`` and their children, of any Python.

It starts what patches NumPy, and goes out of the way of the user's own sitecustomize.
"""

import os
import sys


def _start():
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    if sys.version_info < (3, 10):
        return
    root = os.path.dirname(os.path.dirname(folder))
    try:
        sys.path.insert(0, root)
        try:
            import numc_ufuncs_startup
        finally:
            sys.path.remove(root)
        numc_ufuncs_startup.start()
    except Exception as error:
        sys.stderr.write("numc_ufuncs: NumPy is not patched: %s\n" % error)


_start()
del sys.modules["sitecustomize"]
__import__("sitecustomize")  # the next one; `site` expects that there may be none
