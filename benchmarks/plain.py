"""Plain C loops over the bytes of a case of compare.py: what the machine gives on these threads."""

import ctypes
from pathlib import Path

import numpy as np
from measuring import Call, compiled_loops

ENOUGH = 0.9  # of their speed: the machine gives no more
FROM_ELEMENTS = 10**5  # below, what ctypes takes would count


class Plain:
    def __init__(self, threads):
        self._threads = threads
        self._loops = compiled_loops(Path(__file__).with_suffix(".c"), "-O3", "-march=native")
        self._loops.read_words.restype = ctypes.c_uint64

    def call(self, case, names):
        """The call of a case, into a new array where the case makes one; None without a loop."""
        a = names.get("a")
        if a is None or a.size < FROM_ELEMENTS or case.true is not None:
            return None
        if case.op.endswith(".reduce"):
            return self._call("read_words", [a], a.nbytes // 8)
        if (case.op, case.layout) != ("add", "contiguous"):
            return None
        b = names["b"]
        name = f"add_{a.dtype.char}{b.dtype.char}".replace("?", "b")
        if not hasattr(self._loops, name):
            return None
        if "out" in names:
            return self._call(name, [a, b, names["out"]], a.size)
        return self._call(name, [a, b], a.size, "empty(n, dtype).ctypes, ")

    def _call(self, name, arrays, n, new=""):
        loop = getattr(self._loops, name)
        operands = len(arrays) + bool(new)
        loop.argtypes = [ctypes.c_void_p] * operands + [ctypes.c_ssize_t, ctypes.c_int]
        return Call(
            f"loop(*pointers, {new}n, threads)",
            {
                "loop": loop,
                "pointers": [array.ctypes for array in arrays],  # which keep the arrays
                "empty": np.empty,
                "dtype": np.result_type(*arrays),
                "n": n,
                "threads": self._threads,
            },
        )
