"""The functions of the library, with what they take checked."""

import ctypes
import os
from pathlib import Path

import numpy as np

_library = ctypes.CDLL(str(Path(__file__).with_name("build") / "libadds.so"))
_array = np.ctypeslib.ndpointer(np.float32, ndim=1, flags=["C_CONTIGUOUS", "ALIGNED"])
_output = np.ctypeslib.ndpointer(np.float32, ndim=1, flags=["C_CONTIGUOUS", "ALIGNED", "WRITEABLE"])
CORES = len(os.sched_getaffinity(0))


def _function(name, with_threads):
    function = getattr(_library, name)
    function.argtypes = [_array, _array, _output, ctypes.c_ssize_t, *[ctypes.c_int] * with_threads]
    function.restype = None

    def call(a, b, out, threads=CORES):
        if not len(a) == len(b) == len(out):
            raise ValueError(f"{name}: lengths are {len(a)}, {len(b)} and {len(out)}, not equal")
        if threads < 1:
            raise ValueError(f"{name}: threads is {threads}, not at least 1")
        function(a, b, out, len(out), *[threads] * with_threads)

    return call


if not _library.has_avx():
    raise ImportError("this processor has no AVX")
WAYS = {
    "plain": _function("add_plain", False),
    "AVX": _function("add_avx", False),
    "AVX, threads": _function("add_threads", True),
    "AVX, threads, streaming": _function("add_streaming", True),
}


def read_inputs(a, b, out, threads=CORES):
    """What every sum must do at least: read a and b."""
    return _library.read_inputs(a, b, len(out), threads)


_library.read_inputs.argtypes = [_array, _array, ctypes.c_ssize_t, ctypes.c_int]
_library.read_inputs.restype = ctypes.c_float
