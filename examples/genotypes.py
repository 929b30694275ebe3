"""Genotypes: how often each pair of individuals differs, counted by a product of int8.

Each individual has 0, 1 or 2 copies of a variant at each site. As frequencies differ from site to
site, so do what is drawn here: no real genomes are needed to see that the counts are exact.

    python examples/genotypes.py [individuals] [sites]
"""

import sys
import time

import numpy as np

import numc_ufuncs as nc


def genotypes(individuals, sites):
    rng = np.random.default_rng(14556)
    frequency = rng.beta(0.5, 2, sites)
    return rng.binomial(2, frequency, (individuals, sites)).astype(np.int8)


def carriers_shared(matmul, carriers, block):
    """Sites at which both of a pair carry the variant; int8 holds counts of 127 sites."""
    shared = np.zeros((len(carriers), len(carriers)), np.int32)
    for start in range(0, carriers.shape[1], block):
        part = carriers[:, start : start + block]
        shared += matmul(part, part.T)
    return shared


def main(individuals=1000, sites=2000):
    carriers = (genotypes(individuals, sites) > 0).astype(np.int8)
    nc.matmul(carriers[:9], carriers[:9].T)
    results, seconds = [], []
    for matmul in (np.matmul, nc.matmul):  # in this order: our threads spin for a while afterwards
        start = time.perf_counter()
        results.append(carriers_shared(matmul, carriers, 127))
        seconds.append(time.perf_counter() - start)
    counts = np.diag(results[0])
    differing = counts[:, None] + counts - 2 * results[0]
    print(f"{individuals} individuals, {sites} sites; pairs differ at {differing.mean():.1f} sites")
    print(f"np.matmul {seconds[0]:.3f} s, nc.matmul {seconds[1]:.4f} s: ", end="")
    print(f"{seconds[0] / seconds[1]:.0f} times as fast")
    if not np.array_equal(*results):
        sys.exit("the results differ")
    print("the results are equal")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
