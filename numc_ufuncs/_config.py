"""Options: for the process, for the calling thread, and what results from both."""

import threading

import numpy as np

from . import _core
from ._version import __version__

DEVICES = ("auto", "cpu")

_process_device = "auto"
_thread = threading.local()


def _checked(options):
    """Raise what a bad option deserves, before anything is changed."""
    for name, value in options.items():
        if name == "threads":
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise ValueError(
                    f"threads must be an integer of at least 1, or None: got {value!r}"
                )
            if not 1 <= value <= 65536:
                raise ValueError(f"threads must be from 1 to 65536, or None: got {value}")
        elif name == "device":
            if value is not None and value not in DEVICES:
                allowed = ", ".join(map(repr, DEVICES))
                why = " (this version has no CUDA device)" if "cuda" in str(value) else ""
                raise ValueError(f"device must be one of {allowed}, or None: got {value!r}{why}")
        else:
            raise TypeError(f"unknown option {name!r}: the options are 'threads' and 'device'")
    return options


def set_config(**options):
    """Set options for the whole process.

    Parameters
    ----------
    threads : int or None, optional
        The most threads that one call may use, the calling thread included. It may exceed the
        number of CPUs. None returns to the automatic choice: the least of ``NUMC_NUM_THREADS``,
        the CPUs that the calling thread may run on, the control group's CPU quota rounded up, and
        what OpenMP allows the calling thread (``OMP_NUM_THREADS``, threadpoolctl).
    device : {'auto', 'cpu'} or None, optional
        Where to compute. None means ``'auto'``. This version computes on the CPU only.

    Raises
    ------
    TypeError
        For an unknown option.
    ValueError
        For a value that an option does not allow. Nothing is changed then.

    See Also
    --------
    config : Options for the calling thread, which take precedence.
    """
    global _process_device
    _checked(options)
    if "threads" in options:
        _core.set_process_threads(options["threads"] or 0)
    if "device" in options:
        _process_device = options["device"] or "auto"


class config:
    """Set options for the calling thread, within a ``with`` block.

    Parameters
    ----------
    **options
        As in `set_config`. Options that are not named, or None, keep their value.

    Notes
    -----
    Blocks nest, and an exception restores as well. Other threads, also those started within the
    block, keep seeing what `set_config` set.

    Examples
    --------
    >>> import numpy as np, numc_ufuncs as nc
    >>> with nc.config(threads=2):
    ...     int(nc.get_config()["threads"])
    2
    """

    def __init__(self, **options):
        self._options = _checked(options)
        self._before = threading.local()

    def __enter__(self):
        before = _core.get_thread_threads(), getattr(_thread, "device", None)
        if not hasattr(self._before, "stack"):
            self._before.stack = []
        self._before.stack.append(before)
        if self._options.get("threads") is not None:
            _core.set_thread_threads(self._options["threads"])
        if self._options.get("device") is not None:
            _thread.device = self._options["device"]
        return self

    def __exit__(self, *exception):
        threads, _thread.device = self._before.stack.pop()
        _core.set_thread_threads(threads)
        return False


def get_config():
    """Return the options in effect for the calling thread.

    Returns
    -------
    dict
        ``threads``: the number of threads that a large call would use; ``device``.
    """
    return {
        "threads": _core.thread_limit()[0],
        "device": getattr(_thread, "device", None) or _process_device,
    }


def info():
    """Return what this installation is and what it uses.

    Returns
    -------
    dict
        ``version``, ``numpy`` (versions), ``isa`` (instruction set in use), ``isa_available``,
        ``threads``, ``threads_reason`` (which rule set the number), ``device``, ``devices``.
    """
    isa, available = _core.isas()
    threads, reason = _core.thread_limit()
    return {
        "version": __version__,
        "numpy": np.__version__,
        "isa": isa,
        "isa_available": available,
        "threads": threads,
        "threads_reason": reason,
        "device": get_config()["device"],
        "devices": ["cpu"],
    }


def show_config():
    """Print what `info` returns."""
    for name, value in info().items():
        shown = ", ".join(value) if isinstance(value, list) else value
        print(f"{name:14} {shown}")
