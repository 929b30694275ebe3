"""Every element-wise ufunc of NumPy, on a million elements: the slowest beside NumPy.

    python benchmarks/every_ufunc.py --threads 2

Operands are contiguous, broadcast (a row), or of two dtypes; ufuncs of one input get strided
columns in place of a row, and integers where they compute floats.
"""

import argparse
import sys

import numpy as np
from measuring import Call, against_numpy

import numc_ufuncs as nc
from numc_ufuncs import _bench

ELEMENTS, SHAPE = 10**6, (1000, 1000)
SECONDS = 0.05  # of one measurement
WORST, LOSS = 3, 0.95
DTYPES = "dl?"  # the first that the ufunc takes
MIXED = {"d": "f", "l": "i", "?": "b"}


def ufuncs():
    found = {"clip": np._core.umath.clip}
    for name in sorted(dir(np)):
        ufunc = getattr(np, name)
        if type(ufunc) is np.ufunc and ufunc.signature is None and ufunc.ntypes > 0:
            found.setdefault(ufunc.__name__, ufunc)
    return found


def values(dtype, shape, seed):
    x = np.random.default_rng(seed).random(shape) * 0.8 + 0.1
    return (
        x > 0.5 if dtype == "?" else x.astype(dtype) if dtype in "df" else (x * 9 + 1).astype(dtype)
    )


def operands(layout, dtype, inputs):
    shape = SHAPE if layout == "broadcast" else (ELEMENTS,)
    arrays = [values(dtype, shape, seed) for seed in range(inputs)]
    if layout == "broadcast":
        wide = values(dtype, (SHAPE[0], 2 * SHAPE[1]), 9)
        arrays[-1] = wide[:, ::2] if inputs == 1 else arrays[-1][0]
    if layout == "mixed":
        arrays[-1] = values("i" if inputs == 1 and dtype == "d" else MIXED[dtype], shape, 7)
    return arrays


def measure(ufunc, layout):
    """NumPy's time / ours, and the dtypes; None where the ufunc does not take such operands."""
    for dtype in DTYPES:
        names = {"a": operands(layout, dtype, ufunc.nin)}
        try:
            names["out"] = ufunc(*names["a"])
        except TypeError:
            continue
        calls = [Call("f(*a, out=out)", {"f": f, **names}) for f in (ufunc, nc.parallel(ufunc))]
        ratio = against_numpy(*calls, SECONDS)["ratio"]
        return ratio, " ".join(x.dtype.name for x in names["a"])
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int)
    nc.set_config(threads=parser.parse_args().threads, device="cpu")
    print("\n".join(_bench.header(_bench.Bench(True, lambda *_: None).machine)))
    losses = 0
    with np.errstate(all="ignore"):
        for layout in ("contiguous", "broadcast", "mixed"):
            measured = [(measure(ufunc, layout), name) for name, ufunc in ufuncs().items()]
            ranked = sorted((*found, name) for found, name in measured if found is not None)
            losses += sum(ratio < LOSS for ratio, *_ in ranked)
            worst = ", ".join(f"{name} {ratio:.2f} ({of})" for ratio, of, name in ranked[:WORST])
            print(f"{layout}, {len(ranked)} ufuncs: {worst}", flush=True)
    print(f"{losses} slower than NumPy by more than {1 - LOSS:.0%}")


if __name__ == "__main__":
    sys.exit(main())
