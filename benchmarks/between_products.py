"""`add` in a program that multiplies matrices: NumPy's and ours, each between products of BLAS.

    python benchmarks/between_products.py

BLAS's threads keep the processors busy for a while after a product, in the way of other threads.
OPENBLAS_THREAD_TIMEOUT=4 in the environment sends OpenBLAS's to sleep at once.
"""

import statistics
import time

import numpy as np

import numc_ufuncs as nc
from numc_ufuncs import _bench

REPEATS = 40


def median_seconds(add, operands, factors):
    """Seconds of the sum and of the product, in turn."""
    x, y, total = operands
    a, b, product = factors
    time.sleep(0.1)  # whatever spins from before
    of_add, of_matmul = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        add(x, y, out=total)
        between = time.perf_counter()
        np.matmul(a, b, out=product)
        of_matmul.append(time.perf_counter() - between)
        of_add.append(between - start)
    return statistics.median(of_add), statistics.median(of_matmul)


def main():
    rng = np.random.default_rng(0)
    print(f"BLAS {_bench.blas()}")
    print("elements, product    add of NumPy, ours, ms    np.matmul after it, after ours, ms")
    for n, extent in ((1_000_000, 256), (1_000_000, 512), (10_000_000, 512)):
        operands = (*rng.random((2, n), dtype=np.float32), np.empty(n, np.float32))
        factors = (*rng.random((2, extent, extent)), np.empty((extent, extent)))
        theirs, ours = (median_seconds(add, operands, factors) for add in (np.add, nc.add))
        cells = " ".join(f"{1e3 * t:10.2f}" for t in (theirs[0], ours[0], theirs[1], ours[1]))
        print(f"{n:>10,}, {extent:>4}² {cells}")


if __name__ == "__main__":
    main()
