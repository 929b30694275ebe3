"""Options: of the process, of a block of code, and what results from both."""

import operator

import numpy as np

from . import _core, _device_memory
from ._version import __version__

# As numbers, in the C part (options.h). A kind of devices alone, "cuda", is the first of them.
DEVICES = {"auto": 1, "cpu": 2}
KINDS, MOST_OF_A_KIND = _core.kinds_of_devices()
for _kind in KINDS:
    _first = max(DEVICES.values()) + 1
    DEVICES[_kind] = _first
    DEVICES |= {f"{_kind}:{i}": _first + i for i in range(MOST_OF_A_KIND)}
MOST_THREADS = 65536
PRECISIONS = {"ieee": 1, "tf32": 2, "bf16": 3}
GEMMS = {"auto": 1, "cublas": 2, "tiled": 3}
MEMORIES = {"system": 1, "cached": 2, "pinned": 3, "managed": 4}
OPTIONS = ("threads", "device", "precision", "gemm", "memory")


def _listed(names):
    return ", ".join(map(repr, names))


def _thread_number(value):
    """The number of threads, None for what is none; a bool is none."""
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        return None
    return number if number is not None and 1 <= number <= MOST_THREADS else None


def _number_in(names):
    return lambda value: names.get(value) if isinstance(value, str) else None


def _name_of(names, number):
    return next(name for name, value in names.items() if value == number)


# What is allowed, and the number of a value, None for one that is not allowed.
RULES = {
    "threads": (f"an integer from 1 to {MOST_THREADS}", _thread_number),
    "device": (
        f"one of {_listed(('auto', 'cpu', *KINDS))}"
        + "".join(f", or '{kind}:0' to '{kind}:{MOST_OF_A_KIND - 1}'" for kind in KINDS),
        _number_in(DEVICES),
    ),
    "precision": (f"one of {_listed(PRECISIONS)}", _number_in(PRECISIONS)),
    "gemm": (f"one of {_listed(GEMMS)}", _number_in(GEMMS)),
    "memory": (f"one of {_listed(MEMORIES)}", _number_in(MEMORIES)),
}


def _checked(options):
    """The options as numbers, 0 for None; raises what a bad one deserves."""
    numbers = {}
    for name, value in options.items():
        if name not in RULES:
            raise TypeError(f"unknown option {name!r}: the options are {_listed(OPTIONS)}")
        rule, number_of = RULES[name]
        numbers[name] = 0 if value is None else number_of(value)
        if numbers[name] is None:
            raise ValueError(f"{name} must be {rule}, or None: got {value!r}")
    device = numbers.get("device", 0)
    if device == DEVICES["cpu"] and numbers.get("gemm", 0) > GEMMS["auto"]:
        raise ValueError(
            f"gemm={options['gemm']!r} and device='cpu' exclude each other: "
            "gemm is for GPUs, device must be 'auto' or a GPU"
        )
    if device > DEVICES["cpu"]:
        problem = _core.device_problem(device)
        if problem:
            raise RuntimeError(f"device={options['device']!r} cannot be used: {problem}")
    memory = numbers.get("memory", 0)
    if memory > MEMORIES["system"]:
        problem = _core.memory_problem(memory)
        if problem:
            raise RuntimeError(f"memory={options['memory']!r} cannot be used: {problem}")
    if memory > MEMORIES["cached"]:
        _device_memory.prepare()
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
    device : {'auto', 'cpu', 'cuda', 'cuda:0', ..., 'cuda:15'} or None, optional
        Where `matmul`, `add`, `subtract`, `multiply` and `divide` are computed. ``'auto'``, which
        None means: products where it is done sooner, the others where managed memory (`memory`)
        lies that they read and write; a GPU is started once the time lost without it exceeds what
        starting it takes. ``'cuda'``: on the first GPU; a call that cannot be computed there
        raises. Long double and Python objects are computed on the CPU all the same, and so is
        every other ufunc.
    precision : {'ieee', 'tf32', 'bf16'} or None, optional
        How a GPU multiplies single precision. ``'ieee'``, which None means: as it is. The others
        cut off mantissas before they multiply, which is faster. The CPU always computes ``'ieee'``.
    gemm : {'auto', 'cublas', 'tiled'} or None, optional
        What computes on the GPU: cuBLAS, for floating-point numbers, or a kernel of this package.
        None means ``'auto'``: cuBLAS for floating-point numbers.
    memory : {'system', 'cached', 'pinned', 'managed'} or None, optional
        Where NumPy's arrays of 32 KiB and more get their memory from. ``'system'``, which None
        means: from NumPy, as without this package. ``'cached'``: from blocks that stay when arrays
        are freed, up to a limit; see `numc_ufuncs.memory`. ``'pinned'`` and ``'managed'``, of
        arrays of 1 KiB and more: memory that the first GPU copies from and to directly, and memory
        that both sides see, whose pages move to whoever touches them; likewise kept.

    Raises
    ------
    TypeError
        For an unknown option.
    ValueError
        For a value that an option does not allow, and for ``gemm`` with ``device='cpu'``.
    RuntimeError
        For a GPU that cannot be used here, for ``memory='pinned'`` and ``'managed'`` without such a
        GPU, and for ``memory`` with a NumPy whose memory handler is not known. Whatever is raised,
        nothing is changed.

    See Also
    --------
    config : Options for a block of code, which take precedence.

    Examples
    --------
    >>> import numc_ufuncs as nc
    >>> nc.set_config(threads=2)
    >>> nc.get_config()["threads"]
    2
    >>> nc.set_config(threads=None)
    """
    numbers = _checked(options)
    _core.set_process_options(*(numbers.get(name, -1) for name in OPTIONS))
    if numbers.get("memory", -1) in (0, MEMORIES["system"]):
        _core.release_memory()


class config:
    """Set options for a ``with`` block.

    Parameters
    ----------
    **options
        As in `set_config`. Options that are not named, or None, keep their value.

    Notes
    -----
    Options are kept in a context variable (`contextvars`). A block restores what it found, also
    after an exception, and blocks nest. Tasks of asyncio are apart: a block of one is not seen by
    others. A task that is started within a block sees its options until the block ends. Threads
    that are started within a block see what `set_config` set, unless they run in a copy of the
    context, as those of `asyncio.to_thread` do.

    A generator that is suspended within a block shows its caller the block's options, as it does
    with `numpy.errstate`.

    Examples
    --------
    >>> import numpy as np, numc_ufuncs as nc
    >>> with nc.config(threads=2):
    ...     int(nc.get_config()["threads"])
    2
    """

    def __init__(self, **options):
        self._numbers = _checked(options)
        self._blocks = []  # open ones, of all contexts

    def __enter__(self):
        _core.open_block(self._blocks, *(self._numbers.get(name, 0) for name in OPTIONS))
        return self

    def __exit__(self, *exception):
        _core.close_block(self._blocks)
        return False


def get_config():
    """Return the options in effect where it is called.

    Returns
    -------
    dict
        ``threads``: the number of threads that a large call would use; ``device``, ``precision``,
        ``gemm``, ``memory``.

    See Also
    --------
    info : Says also what set the number of threads.

    Examples
    --------
    >>> import numc_ufuncs as nc
    >>> with nc.config(threads=3, device="cpu"):
    ...     nc.get_config()
    {'threads': 3, 'device': 'cpu', 'precision': 'ieee', 'gemm': 'auto', 'memory': 'system'}
    """
    threads, _, device, precision, gemm, memory = _core.get_options()
    return {
        "threads": threads,
        "device": _name_of(DEVICES, device),
        "precision": _name_of(PRECISIONS, precision),
        "gemm": _name_of(GEMMS, gemm),
        "memory": _name_of(MEMORIES, memory),
    }


def last_call():
    """Return what the calling thread's last call of `matmul` did.

    Or of `add`, `subtract`, `multiply` or `divide`, once a device or its memory was asked for.

    Returns
    -------
    dict or None
        ``op``, ``device``, ``reason`` (why there), ``seconds`` and ``threads``, which are None for
        calls that are too small to be looked at. Of a call whose operands NumPy hands over in
        several parts, the last part. None before the first call.

    Examples
    --------
    >>> import numpy as np
    >>> import numc_ufuncs as nc
    >>> with nc.config(device="cpu"):
    ...     a = nc.matmul(np.ones((300, 300)), np.ones((300, 300)))
    >>> call = nc.last_call()
    >>> call["op"], call["device"]
    ('matmul', 'cpu')
    """
    return _core.last_call()


def info():
    """Return what this installation is and what it uses.

    Returns
    -------
    dict
        ``version``, ``numpy`` (versions), ``isa`` (instruction set in use), ``isa_available``,
        ``threads``, ``threads_reason`` (which rule set the number), ``device``, ``devices``,
        ``cuda`` (whether the part for GPUs was built, and what it lacks), ``rates_file`` (what
        `measure_rates` replaces; None where nothing can be kept), ``startup`` (the start-up file,
        which has NumPy patched in programs that run with ``NUMC_PATCH=1``; None without one),
        ``memory``, ``memory_kept`` and ``memory_limit`` (bytes that are kept for arrays to come,
        and that may be, of each kind of memory).

    See Also
    --------
    get_config : The options alone.

    Examples
    --------
    >>> import numc_ufuncs as nc
    >>> with nc.config(threads=3):
    ...     nc.info()["threads"], nc.info()["threads_reason"]
    (3, 'config(threads=)')
    """
    from . import _startup_file  # here: pathlib would double the time of our import

    found = _core.devices()
    isa, available = _core.isas()
    threads, reason, device, _, _, memory = _core.get_options()
    kept, limit = _core.kept_memory()
    return {
        "version": __version__,
        "numpy": np.__version__,
        "isa": isa,
        "isa_available": available,
        "threads": threads,
        "threads_reason": reason,
        "device": _name_of(DEVICES, device),
        "devices": [
            "cpu",
            *(f"{kind}:{i} ({text})" for kind, texts, _ in found for i, text in enumerate(texts)),
        ],
        **{kind: problem or "ready" for kind, _, problem in found},
        "rates_file": _core.rates_file(),
        "startup": _startup_file.find(),
        "memory": _name_of(MEMORIES, memory),
        "memory_kept": kept,
        "memory_limit": limit,
    }


def measure_rates():
    """Measure anew how fast this machine's CPU and its GPU are.

    ``device="auto"`` goes by these rates. They are measured when they are needed first, and kept
    in a file, which `info` names; this replaces them, for instance when something else used the
    machine then. Products of this process may change sides, and so their last bits, by that.

    Returns
    -------
    dict
        Bytes and operations per second, by dtype; ``disturbed`` is true if times varied again.

    Raises
    ------
    RuntimeError
        If there is no GPU, or it fails.

    Examples
    --------
    >>> import numc_ufuncs as nc
    >>> rates = nc.measure_rates()  # doctest: +SKIP
    """
    return _core.measure_rates()


def show_config():
    """Print what `info` returns.

    Examples
    --------
    >>> import numc_ufuncs as nc
    >>> nc.show_config()  # doctest: +ELLIPSIS
    version ...
    """
    for name, value in info().items():
        shown = ", ".join(value) if isinstance(value, list) else "none" if value is None else value
        print(f"{name:14} {shown}")
