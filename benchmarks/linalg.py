"""numpy.linalg and numc_ufuncs.linalg in turn: stacks of matrices, one matrix, other gufuncs.

    python benchmarks/linalg.py [--threads 1 2 ...] [--json FILE] [--quick]

Wanted are the ratios of `wanted`; MISSED marks what is below. As fast as NumPy is what loses no
more than 3 %, which is all that is wanted of one matrix. NumPy's BLAS must not be held back: its
variables must not be set.
"""

import argparse
import json
import os
import subprocess
import sys

import measuring
import numpy as np
from timed_program import peak_bytes

import numc_ufuncs as nc
from numc_ufuncs import _bench
from numc_ufuncs.__main__ import _writable

SECONDS = 0.4  # of each side of a row
# How many matrices of n x n.
STACKS = {2: 10**5, 3: 10**5, 4: 10**5, 8: 20_000, 16: 5000, 64: 500}
SINGLE = (2, 3, 4, 8, 16, 64, 256, 512)
ITEMS = 10**6  # of the other gufuncs
OPS = ("inv", "solve", "det", "cholesky", "eigh", "svd", "qr")
LEAST_SINGLE = 0.97
HOLDS_BLAS_BACK = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def wanted(op, n, threads):
    """The ratio to NumPy, None where nothing is wanted."""
    if op in ("guvectorize", "sum_of_squares"):
        ratios = None, 1.9, 12.0
    elif op == "inv" and n == 4:
        ratios = 8.0, 14.0, 60.0
    elif op == "eigh" and n == 3:
        ratios = 4.0, 7.0, 30.0
    elif op in ("eigh", "svd", "qr") or n >= 16:
        ratios = 1.0, 1.8, 10.0
    else:
        ratios = (5.0, 9.0, 40.0) if n <= 4 else (2.5, 4.5, 25.0)
    return dict(zip((1, 2, 16), ratios, strict=True)).get(threads)


def operands(op, n, count):
    """Well-conditioned and positive definite ones; `count` of None is one matrix."""
    rng = np.random.default_rng(n)
    shape = () if count is None else (count,)
    a = rng.uniform(-1, 1, (*shape, n, n))
    a = a @ a.swapaxes(-1, -2) + n * np.eye(n)
    return (a, rng.uniform(-1, 1, (*shape, n, 1))) if op == "solve" else (a,)


def distinct(op, results):
    """What has one answer."""
    if op == "qr":
        return abs(results[1])
    return results[{"eigh": 0, "svd": 1}[op]] if isinstance(results, tuple) else results


def same(op, theirs, ours):
    theirs, ours = distinct(op, theirs), distinct(op, ours)
    return bool(np.all(abs(theirs - ours) <= 1e-9 * np.max(abs(theirs))))


def calls(theirs, ours, args, threads):
    """By name: NumPy's, and ours with so many threads."""
    names = ", ".join(f"x{i}" for i in range(len(args)))
    given = {f"x{i}": arg for i, arg in enumerate(args)}
    found = {"numpy": measuring.Call(f"f({names})", {"f": theirs, **given})}
    for count in threads:
        known = {"f": ours, "config": nc.config, **given}
        statement = f"f({names})" if count is None else f"with config(threads={count}): f({names})"
        found[count] = measuring.Call(statement, known)
    return found


def measure(op, n, count, theirs, ours, args, threads, seconds):
    timed = calls(theirs, ours, args, threads)
    samples = measuring.in_rounds(timed, seconds, pauses=seconds >= SECONDS / 10)
    rows = []
    for used in threads:
        figures = measuring.compared(samples["numpy"], samples[used])
        least = LEAST_SINGLE if count is None else wanted(op, n, used)
        rows.append({"op": op, "n": n, "count": count, "threads": used, "wanted": least, **figures})
    is_same = same(op, theirs(*args), ours(*args))
    return [{**row, "same": is_same} for row in rows]


def stacks(ops, threads, seconds, divisor):
    for n, count in STACKS.items():
        for op in ops:
            functions = getattr(np.linalg, op), getattr(nc.linalg, op)
            few = max(count // divisor, 2)
            yield from measure(op, n, few, *functions, operands(op, n, few), threads, seconds)


def single(ops, seconds, largest):
    for n in filter(lambda n: n <= largest, SINGLE):
        for op in ops:
            functions = getattr(np.linalg, op), getattr(nc.linalg, op)
            yield from measure(op, n, None, *functions, operands(op, n, None), (None,), seconds)


def gufuncs():
    """Those of others: one that the tests compile, one of numba, where they are installed."""
    found = {}
    try:
        import _numc_test
    except ImportError:
        pass
    else:
        found["sum_of_squares"] = _numc_test.sum_of_squares
    try:
        import numba
    except ImportError:
        return found

    def sum_of_squares(x, result):
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i] * x[i]
        result[0] = total

    decorate = numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()", nopython=True)
    found["guvectorize"] = decorate(sum_of_squares).ufunc
    return found


def others(threads, seconds, divisor):
    x = np.random.default_rng(0).uniform(size=(ITEMS // divisor, 8))
    for name, gufunc in gufuncs().items():
        yield from measure(name, 8, len(x), gufunc, nc.parallel(gufunc), (x,), threads, seconds)


def is_missed(row):
    if row["wanted"] is None:
        return False
    return row["ratio"] < (LEAST_SINGLE if row["wanted"] == 1 else row["wanted"])


def line(row):
    notes = ["MISSED"] * is_missed(row)
    notes += ["RESULTS DIFFER"] * (not row["same"])
    count = "one" if row["count"] is None else f"{row['count']:,}"
    return (
        f"{row['op']:15} {row['n']:>4} {count:>9} {row['threads'] or 'all':>7}"
        f" {_bench._duration(row['numpy_seconds']):>9} {_bench._duration(row['our_seconds']):>9}"
        f" {row['ratio']:>7.2f} {row['wanted'] or '-':>6} {row['spread']:>6.0%}"
        f"  {', '.join(notes)}"
    ).rstrip()


HEAD = (
    f"{'':15} {'n':>4} {'matrices':>9} {'threads':>7} {'NumPy':>9} {'ours':>9} {'ratio':>7}"
    f" {'wanted':>6} {'spread':>6}"
)


def peak_of(side, divisor):
    """The most memory of a process that computes all stacks on one side."""
    command = [sys.executable, __file__, "--peak-of", side, "--divisor", str(divisor)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def compute_all(module, divisor):
    for n, count in STACKS.items():
        for op in OPS:
            getattr(module, op)(*operands(op, n, max(count // divisor, 2)))


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    cores = nc.info()["threads"]
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, cores}))
    parser.add_argument("--ops", nargs="+", choices=OPS, default=OPS)
    parser.add_argument("--only", choices=("stacks", "single", "gufuncs"))
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each side of a row")
    parser.add_argument("--quick", action="store_true", help="small stacks: a check, no figures")
    parser.add_argument("--json", type=_writable, metavar="FILE", help="write all figures to FILE")
    parser.add_argument("--divisor", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--peak-of", choices=("numpy", "ours"), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments=None):
    options = options_of(arguments)
    divisor = 1000 if options.quick else options.divisor
    if options.peak_of:
        compute_all(np.linalg if options.peak_of == "numpy" else nc.linalg, divisor)
        print(peak_bytes())
        return 0
    seconds = 0.002 if options.quick else options.seconds
    machine = _bench.Bench(True, lambda *_: None).machine
    held = [f"UNSET {name}={os.environ[name]}" for name in HOLDS_BLAS_BACK if name in os.environ]
    print("\n".join([*_bench.header(machine), *held, "", HEAD]))
    parts = {
        "stacks": lambda: stacks(options.ops, options.threads, seconds, divisor),
        "single": lambda: single(options.ops, seconds, 8 if options.quick else max(SINGLE)),
        "gufuncs": lambda: others(options.threads, seconds, divisor),
    }
    rows = []
    for part, measured in parts.items():
        if options.only in (None, part):
            for row in measured():
                print(line(row), flush=True)
                rows.append({"part": part, **row})
    peaks = {side: peak_of(side, divisor) for side in ("numpy", "ours")}
    missed = sum(map(is_missed, rows))
    print(f"\n{missed} of {len(rows)} below what is wanted; medians; ratio = NumPy / ours")
    print(
        "peak memory of all stacks: {:.0f} / {:.0f} MiB".format(
            *(p / 2**20 for p in peaks.values())
        )
    )
    if options.json:
        figures = {"machine": machine, "rows": rows, "peak_bytes": peaks}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if all(row["same"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
