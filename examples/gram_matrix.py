"""Gram matrix of real images: the product of every image with every other, exactly, in integers.

    pip install scikit-learn && python examples/gram_matrix.py

The images are scikit-learn's handwritten digits, 1797 of 8 x 8 pixels, which come with its package.
"""

import sys
import time

import numpy as np

import numc_ufuncs as nc


def images():
    """One image per row, uint8."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        print("scikit-learn is not installed: random pixels take the place of its digits")
        return np.random.default_rng(0).integers(0, 17, (1797, 64), dtype=np.uint8)
    return load_digits().data.astype(np.uint8)


def timed(matmul, a, b):
    start = time.perf_counter()
    product = matmul(a, b)
    return product, time.perf_counter() - start


def main():
    pixels = images().astype(np.int32)  # sums of 64 products of bytes need more than a byte
    nc.matmul(pixels[:9], pixels[:9].T)
    theirs, numpy_seconds = timed(np.matmul, pixels, pixels.T)
    ours, our_seconds = timed(nc.matmul, pixels, pixels.T)
    squares = np.diag(ours)
    distances = squares[:, None] + squares - 2 * ours
    np.fill_diagonal(distances, np.iinfo(np.int32).max)
    first, second = np.unravel_index(distances.argmin(), distances.shape)
    print(f"{len(pixels)} images; the most alike: {first} and {second}")
    print(f"np.matmul {numpy_seconds:.3f} s, nc.matmul {our_seconds:.4f} s: ", end="")
    print(f"{numpy_seconds / our_seconds:.0f} times as fast")
    if not np.array_equal(ours, theirs):
        sys.exit("the results differ")
    print("the results are equal")


if __name__ == "__main__":
    main()
