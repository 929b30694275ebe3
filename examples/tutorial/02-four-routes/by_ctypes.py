"""Route 1: a shared library, called by ctypes. Everything that is checked is checked here."""

import ctypes
from pathlib import Path

import numpy as np

_library = ctypes.CDLL(str(Path(__file__).with_name("build") / "libadd.so"))
_input = np.ctypeslib.ndpointer(np.float64, ndim=1, flags=["C_CONTIGUOUS", "ALIGNED"])
_output = np.ctypeslib.ndpointer(np.float64, ndim=1, flags=["C_CONTIGUOUS", "ALIGNED", "WRITEABLE"])
_library.add.argtypes = [_input, _input, _output, ctypes.c_size_t]
_library.add.restype = None


def add(a, b, out):
    if not len(a) == len(b) == len(out):
        raise ValueError(f"add(): lengths are {len(a)}, {len(b)} and {len(out)}, not equal")
    _library.add(a, b, out, len(out))


def unchecked_add(a, b, out):
    """What is left without checks: wrong arguments crash, or write where they should not."""
    pointers = (ctypes.c_void_p(x.ctypes.data) for x in (a, b, out))
    _unchecked.add(*pointers, ctypes.c_size_t(len(out)))


_unchecked = ctypes.CDLL(_library._name)
