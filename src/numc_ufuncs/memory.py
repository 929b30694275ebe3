"""Memory of arrays that stays, and memory that a GPU reaches.

With ``memory="cached"`` (`set_config`, `config`) large blocks of memory are kept when arrays are
freed, for the arrays to come: the pages of a new array cost as much as the sum that is written to
it. With ``"pinned"`` and ``"managed"`` the arrays that NumPy makes are ordinary ones in memory that
a GPU copies from at its full rate, or that both sides see; it is kept likewise. `info` says how
much is kept, and how much may be.
"""

import numpy as np

from . import _core
from ._device_memory import bounds, kind_of

__all__ = ["DeviceView", "device_view", "prefetch", "release"]

_CUDA = 2  # kDLCUDA: what holds managed memory for a kind of its own is refused by torch and JAX


def release():
    """Give back the memory that is kept for arrays to come.

    Returns
    -------
    int
        The bytes that were given back to the system, or to the GPU's driver.

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


def prefetch(array, device):
    """Move the pages of an array in managed memory to where they are used next.

    They move by themselves when they are touched, one after the other, which takes several times as
    long. What this package computes on the GPU moves its operands there; before NumPy reads a large
    result, this moves it back.

    Parameters
    ----------
    array : numpy.ndarray
        An array in managed memory, or a view of one. See `device_view`.
    device : {'cpu', 'cuda'}
        Where to. When it returns, they are there.

    Raises
    ------
    TypeError
        If it is not an array.
    ValueError
        If its memory is not managed, or the device is none of these.
    RuntimeError
        If the GPU fails.

    Examples
    --------
    >>> with nc.config(memory="managed"):  # doctest: +SKIP
    ...     x = nc.matmul(np.ones((1000, 1000)), np.ones((1000, 1000)))
    >>> nc.memory.prefetch(x, "cpu")  # doctest: +SKIP
    """
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'cpu' or 'cuda': got {device!r}")
    _check_managed(array)
    _core.move_memory(*bounds(array), device == "cuda")


def device_view(array):
    """Show an array in managed memory to libraries that compute on the GPU, without a copy.

    Parameters
    ----------
    array : numpy.ndarray
        An array in managed memory, or a view of one: made under ``config(memory="managed")``, and
        of 1 KiB or more; or by others, in managed memory of the first GPU.

    Returns
    -------
    DeviceView
        What ``cupy.asarray``, ``torch.from_dlpack``, ``numba.cuda.as_cuda_array`` and
        ``jax.dlpack.from_dlpack`` take. It keeps the memory alive, and so does what they make.

    Raises
    ------
    TypeError
        If it is not an array.
    ValueError
        If its memory is not managed.

    Notes
    -----
    Both sides see what the other one writes. What this package computes is done when a call
    returns, and NumPy computes at once, so the GPU may read without waiting; but libraries on the
    GPU return before they are done: synchronise with theirs (``torch.cuda.synchronize()``) before
    the processor reads.

    JAX takes arrays to be immutable: do not write to an array that it sees.

    Examples
    --------
    >>> with nc.config(memory="managed"):  # doctest: +SKIP
    ...     x = np.ones((1000, 1000))
    >>> t = torch.from_dlpack(nc.memory.device_view(x))  # doctest: +SKIP
    >>> t += 1; torch.cuda.synchronize()  # doctest: +SKIP
    >>> float(x[0, 0])  # doctest: +SKIP
    2.0
    """
    return DeviceView(array)


class DeviceView:
    """An array in managed memory, as libraries on the GPU see it. See `device_view`.

    Whatever they make of it refers to it. When the last of that goes, the GPU may still be at work
    there, and is waited for before the memory serves another array.
    """

    __slots__ = ("_array",)

    def __init__(self, array):
        _check_managed(array)
        self._array = array

    def __del__(self):
        if hasattr(self, "_array"):
            _core.finish_device()

    @property
    def __array_interface__(self):
        return self._array.__array_interface__

    @property
    def __cuda_array_interface__(self):
        if self._array.dtype.hasobject:
            raise TypeError("arrays of Python objects cannot be shared")
        described = self._array.__array_interface__
        return {**described, "version": 3, "stream": None}  # nothing is being computed

    def __dlpack_device__(self):
        return _CUDA, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        _check_stream(stream)
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(
                f"dl_device must be {self.__dlpack_device__()} or None: got {dl_device!r}"
            )
        if copy:
            raise BufferError("copy must be False or None: the memory is shared")
        # NumPy 2.0 knows no versions.
        versioned = {} if max_version is None or _IS_2_0 else {"max_version": max_version}
        shared = np.asarray(self)  # its base is this object
        return _core.dlpack_of_device(shared.__dlpack__(**versioned))


_IS_2_0 = np.lib.NumpyVersion(np.__version__) < "2.1.0"


def _check_managed(array):
    if not isinstance(array, np.ndarray):
        raise TypeError(f"array must be a numpy.ndarray, not {type(array).__name__}")
    kind = kind_of(array)
    if kind != "managed":
        raise ValueError(
            f"array must be in managed memory, and is in {kind} memory: NumPy makes arrays of "
            "1 KiB and more there under numc_ufuncs.config(memory='managed')"
        )


def _check_stream(stream):
    """The processor's writes are seen by all streams: none has to wait."""
    is_int = isinstance(stream, int) and not isinstance(stream, bool)
    if stream is not None and not (is_int and (stream == -1 or stream > 0)):
        raise ValueError(
            f"stream must be None, -1, or the positive number of a stream of CUDA: got {stream!r}"
        )
