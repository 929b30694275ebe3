"""Calls at random, NumPy's beside ours: which are slower?

    python benchmarks/random_calls.py --seconds 120 --seed 1 --threads 1

The grid of compare.py holds what was thought of. This draws ufuncs, methods, dtypes, shapes and
layouts, and prints the calls in which NumPy was faster in each of four measurements: two here, two
in processes of their own. Where memory comes from differs from process to process: a result in
pages that the system must clear in each call, NumPy's or ours, takes up to three times as long.
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np
from measuring import Call, against_numpy

import numc_ufuncs as nc
from numc_ufuncs import _bench

SUSPECT = 0.9  # NumPy's time / ours
SECONDS = 0.006  # of one measurement
MOST_ELEMENTS, MOST_MULTIPLICATIONS = 2e6, 1e5
DTYPES = "?bhilBHILefdFD"
OFTEN = "add subtract multiply divide maximum less negative sqrt exp absolute".split()
REDUCED = "add add add multiply maximum minimum fmax logical_or logical_and bitwise_or gcd".split()
PRODUCTS = "matmul matmul vecdot matvec vecmat".split()
LAYOUTS = "C C C F reversed stepped inner offset broadcast".split()


def element_wise(inputs):
    """Every ufunc of NumPy with so many inputs; some of them more often."""
    names = [*OFTEN * 3, *dir(np)]
    found = [name for name in names if type(getattr(np, name)) is np.ufunc]
    return [n for n in found if getattr(np, n).nin == inputs and getattr(np, n).signature is None]


BINARY, UNARY = element_wise(2), element_wise(1)


def values(rng, shape, dtype):
    x = rng.random(shape) * 50 + 1
    return x > 25 if dtype == "?" else x.astype(dtype)


def operand(rng, shape, dtype):
    """An array in a layout drawn at random, and the layout's name."""
    layout, shape = str(rng.choice(LAYOUTS)), list(shape)
    if layout == "broadcast":
        axis = rng.integers(len(shape))
        single = [1 if i == axis else n for i, n in enumerate(shape)]
        return np.broadcast_to(values(rng, single, dtype), shape), f"broadcast {axis}"
    if layout == "stepped":
        return values(rng, [2 * shape[0], *shape[1:]], dtype)[::2], layout
    if layout == "inner":
        return values(rng, [*shape[:-1], 3 * shape[-1]], dtype)[..., ::3], layout
    if layout == "offset":
        return values(rng, [*shape[:-1], shape[-1] + 3], dtype)[..., 3:], layout
    x = values(rng, shape, dtype)
    return {"reversed": x[::-1], "F": np.asfortranarray(x)}.get(layout, x), layout


def extents(rng, count, most):
    """Extents whose product is at most about `most`, on a logarithmic scale."""
    total, weights = most ** rng.random(), rng.random(count) ** 2 + 0.03
    return [max(1, round(total ** (w / weights.sum()))) for w in weights]


def axes(rng, count):
    """One axis, several, or all."""
    chosen = rng.choice(count, rng.integers(1, count + 1), replace=False)
    return None if rng.integers(4) == 0 else tuple(int(axis) for axis in chosen)


def draw(rng):
    """A statement for the ufunc f, its name, its operands by name, and all of it in words."""
    what = str(
        rng.choice(["binary", "unary", "reduce", "accumulate", "reduceat", "outer", "product"])
    )
    names = {}
    dtype, statement = str(rng.choice(list(DTYPES))), "f(*operands)"
    if what == "product":
        name, (m, k, n) = str(rng.choice(PRODUCTS)), extents(rng, 3, MOST_MULTIPLICATIONS)
        stack = [(), (3,), (50,)][rng.integers(3)]
        shapes = {
            "matmul": ((m, k), (k, n)),
            "vecdot": ((m, k), (m, k)),
            "matvec": ((m, k), (k,)),
            "vecmat": ((k,), (k, n)),
        }[name]
        pairs = [operand(rng, stack + shape, dtype) for shape in shapes]
    else:
        shape = extents(rng, rng.integers(1, 4), MOST_ELEMENTS ** (0.5 if what == "outer" else 1))
        by_name = {"binary": BINARY, "outer": BINARY, "unary": UNARY}
        name = str(rng.choice(by_name.get(what, REDUCED)))
        two = what in ("binary", "outer")
        pairs = [operand(rng, shape, dtype) for _ in range(2 if two else 1)]
        if what == "binary" and rng.integers(3) == 0:
            other = str(rng.choice(list(DTYPES)))
            pairs[1] = operand(rng, shape, other)
            dtype = f"{dtype} and {other}"
        if what == "reduce":
            widened = ", dtype='d'" if name == "add" and rng.integers(4) == 0 else ""
            keywords = f"axis={axes(rng, len(shape))}{widened}"
            if name in ("add", "logical_or") and rng.integers(3) == 0:
                names["mask"] = rng.random(shape) < rng.random()
                keywords += ", where=mask"
            statement = f"f.reduce(*operands, {keywords})"
        elif what == "reduceat":
            axis = rng.integers(len(shape))
            names["starts"] = np.arange(0, shape[axis], rng.integers(1, shape[axis] + 1))
            statement = f"f.reduceat(*operands, starts, axis={axis})"
        elif what == "accumulate":
            statement = f"f.accumulate(*operands, axis={rng.integers(len(shape))})"
        elif what == "outer":
            statement = "f.outer(*operands)"
        elif rng.integers(2):
            statement = "f(*operands, out=out)"
            if rng.integers(4) == 0:
                names["mask"] = rng.random(shape) < rng.random()
                statement = "f(*operands, out=out, where=mask)"
        elif rng.integers(6) == 0:
            statement = "f(*operands, dtype='d')"
    layouts = ", ".join(f"{x.shape} {layout}" for x, layout in pairs)
    words = f"{statement.replace('f', name, 1)}, {dtype}: {layouts}"
    return statement, name, {"operands": [x for x, _ in pairs], **names}, words


def drawn_calls(rng):
    """NumPy's call and ours, and the call in words; None if NumPy has no such call."""
    statement, name, names, words = draw(rng)
    if not hasattr(np, name):
        return None
    try:
        plain = statement.replace(", out=out, where=mask", "").replace(", out=out", "")
        names["out"] = Call(plain, {"f": getattr(np, name), **names})()
    except TypeError:  # not for this dtype
        return None
    return [Call(statement, {"f": getattr(of, name), **names}) for of in (np, nc)], words


def ratio_of(calls):
    return against_numpy(*calls, SECONDS, nc.get_config()["threads"] > 1)["ratio"]


def ratio_elsewhere(state):
    """The ratio of the call drawn in this state of the generator, measured in a new process."""
    command = [sys.executable, __file__, "--state", json.dumps(state)]
    command += ["--threads", str(nc.get_config()["threads"])]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--state", help="print the ratio of the call drawn in this state")
    options = parser.parse_args()
    nc.set_config(threads=options.threads, device="cpu")
    rng, drawn, slower = np.random.default_rng(options.seed), 0, 0
    np.seterr(all="ignore")
    if options.state:
        rng.bit_generator.state = json.loads(options.state)
        print(ratio_of(drawn_calls(rng)[0]))
        return
    print(f"BLAS {_bench.blas()}")
    end = time.perf_counter() + options.seconds
    while time.perf_counter() < end:
        state = rng.bit_generator.state
        found = drawn_calls(rng)
        if found is None:
            continue
        calls, words = found
        drawn += 1
        ratios = []
        while len(ratios) < 4 and (not ratios or ratios[-1] < SUSPECT):
            ratios.append(ratio_of(calls) if len(ratios) < 2 else ratio_elsewhere(state))
        if ratios[-1] < SUSPECT:
            slower += 1
            print(f"{max(ratios):.2f}  {words}", flush=True)
    print(f"{drawn} calls, {slower} slower than NumPy")


if __name__ == "__main__":
    main()
