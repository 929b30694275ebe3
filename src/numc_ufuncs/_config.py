"""Options: for the process, for the calling thread, and what results from both."""

import threading

import numpy as np

from . import _core
from ._version import __version__

# As numbers, in the C part; "cuda:1" is one more than "cuda".
DEVICES = {"auto": 1, "cpu": 2, "cuda": 3}
MOST_DEVICES = 16
PRECISIONS = {"ieee": 1, "tf32": 2, "bf16": 3}
GEMMS = {"auto": 1, "cublas": 2, "tiled": 3}
OPTIONS = ("threads", "device", "precision", "gemm")


def _device_number(device):
    """The number of a device's name, None for what is no name."""
    if not isinstance(device, str):
        return None
    name, colon, ordinal = device.partition(":")
    if colon:
        known = name == "cuda" and ordinal.isdecimal() and int(ordinal) < MOST_DEVICES
        return DEVICES["cuda"] + int(ordinal) if known else None
    return DEVICES.get(name)


def _device_name(number):
    names = {value: name for name, value in DEVICES.items()}
    return names.get(number) or f"cuda:{number - DEVICES['cuda']}"


def _name_of(names, number):
    return next(name for name, value in names.items() if value == number)


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
            if value is not None and _device_number(value) is None:
                allowed = ", ".join(map(repr, DEVICES))
                raise ValueError(
                    f"device must be one of {allowed}, 'cuda:1' and so on, or None: got {value!r}"
                )
        elif name in ("precision", "gemm"):
            allowed = PRECISIONS if name == "precision" else GEMMS
            if value is not None and value not in allowed:
                names = ", ".join(map(repr, allowed))
                raise ValueError(f"{name} must be one of {names}, or None: got {value!r}")
        else:
            names = ", ".join(map(repr, OPTIONS))
            raise TypeError(f"unknown option {name!r}: the options are {names}")
    return options


def _numbers(options, unset):
    """What the C part is told of device, precision and gemm; `unset` for what is not named."""
    device, precision, gemm = (options.get(name) for name in OPTIONS[1:])
    numbers = list(unset)
    if device is not None:
        numbers[0] = _device_number(device)
    if precision is not None:
        numbers[1] = PRECISIONS[precision]
    if gemm is not None:
        numbers[2] = GEMMS[gemm]
    return numbers


def set_config(**options):
    """Set options for the whole process.

    Parameters
    ----------
    threads : int or None, optional
        The most threads that one call may use, the calling thread included. It may exceed the
        number of CPUs. None returns to the automatic choice: the least of ``NUMC_NUM_THREADS``,
        the CPUs that the calling thread may run on, the control group's CPU quota rounded up, and
        what OpenMP allows the calling thread (``OMP_NUM_THREADS``, threadpoolctl).
    device : {'auto', 'cpu', 'cuda', 'cuda:1', ...} or None, optional
        Where `matmul` is computed. ``'auto'``, which None means: where it is done sooner; a GPU is
        started once the time lost without it exceeds what starting it takes. ``'cuda'``: on the
        first GPU; a call that cannot be computed there raises. Long double and Python objects are
        computed on the CPU all the same, and so is every other ufunc.
    precision : {'ieee', 'tf32', 'bf16'} or None, optional
        How a GPU multiplies single precision. ``'ieee'``, which None means: as it is. The others
        cut off mantissas before they multiply, which is faster. The CPU always computes ``'ieee'``.
    gemm : {'auto', 'cublas', 'tiled'} or None, optional
        What computes on the GPU: cuBLAS, for floating-point numbers, or a kernel of this package.
        None means ``'auto'``: cuBLAS for floating-point numbers.

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
    _checked(options)
    if "threads" in options:
        _core.set_process_threads(options["threads"] or 0)
    # What is named, but None, returns to the default, whose number is 1.
    named = [1 if name in options else 0 for name in OPTIONS[1:]]
    _core.set_process_offload(*_numbers(options, named))


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
        before = _core.get_thread_threads(), _core.get_thread_offload()
        if not hasattr(self._before, "stack"):
            self._before.stack = []
        self._before.stack.append(before)
        if self._options.get("threads") is not None:
            _core.set_thread_threads(self._options["threads"])
        _core.set_thread_offload(*_numbers(self._options, before[1]))
        return self

    def __exit__(self, *exception):
        threads, offload = self._before.stack.pop()
        _core.set_thread_threads(threads)
        _core.set_thread_offload(*offload)
        return False


def get_config():
    """Return the options in effect for the calling thread.

    Returns
    -------
    dict
        ``threads``: the number of threads that a large call would use; ``device``, ``precision``,
        ``gemm``.
    """
    device, precision, gemm = _core.get_offload()
    return {
        "threads": _core.thread_limit()[0],
        "device": _device_name(device),
        "precision": _name_of(PRECISIONS, precision),
        "gemm": _name_of(GEMMS, gemm),
    }


def last_call():
    """Return what the calling thread's last call of `matmul` did.

    Returns
    -------
    dict or None
        ``op``, ``device``, ``reason`` (why there), ``seconds`` and ``threads``, which are None for
        calls that are too small to be looked at. Of a call whose operands NumPy hands over in
        several pieces, the last piece. None before the first call.
    """
    return _core.last_call()


def info():
    """Return what this installation is and what it uses.

    Returns
    -------
    dict
        ``version``, ``numpy`` (versions), ``isa`` (instruction set in use), ``isa_available``,
        ``threads``, ``threads_reason`` (which rule set the number), ``device``, ``devices``,
        ``cuda`` (whether the part for GPUs was built, and what it lacks).
    """
    names, problem = _core.cuda_devices()
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
        "devices": ["cpu", *(f"cuda:{i} ({name})" for i, name in enumerate(names))],
        "cuda": problem or "ready",
    }


def show_config():
    """Print what `info` returns."""
    for name, value in info().items():
        shown = ", ".join(value) if isinstance(value, list) else value
        print(f"{name:14} {shown}")
