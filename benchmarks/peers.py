"""The other libraries that compare.py measures, where they are installed: numexpr, numba, torch.

Each gives the call for a case, on NumPy's arrays and without copies, or None where it cannot.
"""

import importlib
import os

import numpy as np
from measuring import Call

EXPRESSIONS = {"add": "a + b", "multiply": "a * b"}
FUNCTIONS = {"add": lambda a, b: a + b, "multiply": lambda a, b: a * b}


def _add_into(a, b, out):
    out[:] = a + b


def _multiply_into(a, b, out):
    out[:] = a * b


INTO = {"add": _add_into, "multiply": _multiply_into}


class Numexpr:
    def __init__(self, threads):
        os.environ["NUMEXPR_MAX_THREADS"] = str(threads)
        self._numexpr = importlib.import_module("numexpr")
        self._numexpr.set_num_threads(threads)

    def call(self, case, names):
        if case.dtype == np.float16 or case.op == "add.at":
            return None
        if case.op == "add.reduce":
            expression = "sum(a)" if case.axis is None else f"sum(a, axis={case.axis})"
        else:
            expression = EXPRESSIONS[case.op]
        operands = {name: names[name] for name in ("a", "b") if name in names}
        out = ", out=out" if "out" in names else ""
        return Call(
            f"evaluate({expression!r}, local_dict=operands{out})",
            {"evaluate": self._numexpr.evaluate, "operands": operands, "out": names.get("out")},
        )


def _import_numba(threads):
    os.environ["NUMBA_NUM_THREADS"] = str(threads)
    return importlib.import_module("numba")


class Torch:
    def __init__(self, threads):
        self._torch = importlib.import_module("torch")
        self._torch.set_num_threads(threads)

    def call(self, case, names):
        names = {name: self._torch.from_numpy(array) for name, array in names.items()}
        out = ", out=out" if "out" in names else ""
        if case.op == "add.at":
            return Call("f(0, indices, values)", {**names, "f": names["target"].index_add_})
        if case.op == "add.reduce":
            dimension = "" if case.axis is None else f", dim={case.axis}"
            return Call(f"f(a{dimension})", {**names, "f": self._torch.sum})
        return Call(f"f(a, b{out})", {**names, "f": getattr(self._torch, case.op)})


class Numba:
    """``vectorize(target="parallel")``, compiled once for each dtype."""

    def __init__(self, threads):
        self._numba = _import_numba(threads)
        self._compiled = {}

    def call(self, case, names):
        if case.op not in FUNCTIONS or case.dtype == np.float16:
            return None
        key = case.op, case.dtype
        if key not in self._compiled:
            kind = self._numba.from_dtype(case.dtype)
            vectorize = self._numba.vectorize([kind(kind, kind)], target="parallel")
            self._compiled[key] = vectorize(FUNCTIONS[case.op])
        f = self._compiled[key]
        return Call("f(a, b, out)" if "out" in names else "f(a, b)", {**names, "f": f})


class Njit:
    """``njit(parallel=True)``, numba's other way, which also does sums: reordered, to use SIMD."""

    def __init__(self, threads):
        self._numba = _import_numba(threads)
        self._threads = threads
        self._compiled = {}

    def call(self, case, names):
        if case.dtype == np.float16:
            return None
        if case.op == "add.at":
            return Call("f(target, indices, values)", {**names, "f": self._once(self._add_at)})
        if case.op == "add.reduce":
            build = self._sum if case.axis is None else self._sum_of_axis
            arguments = "a" if case.axis is None else f"a, {case.axis}"
            return Call(f"f({arguments})", {**names, "f": self._once(build)})
        if "out" in names:
            return Call("f(a, b, out)", {**names, "f": self._once(self._into, case.op)})
        return Call("f(a, b)", {**names, "f": self._once(self._fresh, case.op)})

    def _once(self, build, *arguments):
        key = build.__name__, arguments
        if key not in self._compiled:
            self._compiled[key] = build(*arguments)
        return self._compiled[key]

    def _fresh(self, op):
        return self._numba.njit(parallel=True)(FUNCTIONS[op])

    def _into(self, op):
        return self._numba.njit(parallel=True)(INTO[op])

    def _sum(self):
        prange = self._numba.prange

        @self._numba.njit(parallel=True, fastmath={"reassoc", "nsz"})
        def parallel_sum(a):
            total = a[0] - a[0]
            for i in prange(a.size):
                total += a[i]
            return total

        return parallel_sum

    def _sum_of_axis(self):
        prange, threads = self._numba.prange, self._threads

        @self._numba.njit(parallel=True, fastmath={"reassoc", "nsz"})
        def parallel_sum(a, axis):
            rows, columns = a.shape
            if axis == 1:
                sums = np.zeros(rows, a.dtype)
                for i in prange(rows):
                    total = a[i, 0] - a[i, 0]
                    for j in range(columns):
                        total += a[i, j]
                    sums[i] = total
                return sums
            sums = np.zeros(columns, a.dtype)
            for part in prange(threads):
                start, stop = columns * part // threads, columns * (part + 1) // threads
                for i in range(rows):
                    for j in range(start, stop):
                        sums[j] += a[i, j]
            return sums

        return parallel_sum

    def _add_at(self):
        @self._numba.njit
        def add_at(target, indices, values):
            for i in range(indices.size):
                target[indices[i]] += values[i]

        return add_at


PEERS = {"numexpr": Numexpr, "numba": Numba, "njit": Njit, "torch": Torch}


def installed(wanted, threads):
    """Those of the peers that can be imported, by name, and why others cannot."""
    found, missing = {}, {}
    for name in wanted:
        try:
            found[name] = PEERS[name](threads)
        except ImportError as error:
            missing[name] = str(error)
    return found, missing
