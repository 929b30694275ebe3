"""Genetics: frequencies, heterozygosity, and linkage of sites by an integer matrix product."""

import sys
from zlib import crc32

import numpy as np

INDIVIDUALS, SITES = 1500, 500
SMALL = 200, 80


def genotypes(rng, individuals, sites):
    """Copies of a variant, 0 to 2; neighbouring sites are inherited together."""
    frequency = rng.beta(1, 2, sites).clip(0.05, 0.95)
    copies = np.zeros((individuals, sites), np.int8)
    for _ in range(2):
        draw = rng.random((individuals, sites))
        linked = rng.random((individuals, sites)) < 0.8
        for site in range(1, sites):
            previous = linked[:, site]
            draw[previous, site] = draw[previous, site - 1]
        copies += draw < frequency
    return copies


def main(individuals=INDIVIDUALS, sites=SITES):
    rng = np.random.default_rng(10)
    copies = genotypes(rng, individuals, sites)
    frequency = copies.mean(axis=0) / 2
    heterozygous = (copies == 1).mean(axis=0)
    expected = 2 * frequency * (1 - frequency)

    counts = copies.astype(np.int32)
    products = counts.T @ counts
    sums = counts.sum(axis=0)
    covariance = products / individuals - np.outer(sums, sums) / individuals**2
    variance = np.diag(covariance)
    r_squared = covariance**2 / np.outer(variance, variance)
    distance = np.abs(np.arange(sites)[:, np.newaxis] - np.arange(sites))
    decay = [r_squared[distance == d].mean() for d in range(1, 9)]

    carriers = (copies > 0).astype(np.int32)
    shared = carriers @ carriers.T
    np.fill_diagonal(shared, 0)
    closest = np.unravel_index(shared.argmax(), shared.shape)

    print(f"heterozygous {heterozygous.mean():.12g}, expected {expected.mean():.12g}")
    print("linkage at 1 to 8 sites:", *(f"{value:.6f}" for value in decay))
    print(f"individuals {closest[0]} and {closest[1]} share {shared.max()} sites")
    print(f"checksum {crc32(r_squared):08x} {crc32(shared):08x}")


if __name__ == "__main__":
    main(*SMALL) if "--small" in sys.argv[1:] else main()
