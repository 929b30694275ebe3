"""Exact arithmetic: Hilbert matrices are inverted in fractions, as arrays of Python objects."""

import sys
from fractions import Fraction

import numpy as np

SIZE, SMALL = 56, 8


def hilbert(size):
    return np.array([[Fraction(1, i + j + 1) for j in range(size)] for i in range(size)])


def inverse(matrix):
    """Gauss and Jordan, without a search for pivots: these matrices need none."""
    size = len(matrix)
    identity = np.array([[Fraction(int(i == j)) for j in range(size)] for i in range(size)])
    rows = np.concatenate([matrix, identity], axis=1)
    for i in range(size):
        rows[i] = rows[i] / rows[i, i]
        for j in range(size):
            if j != i:
                rows[j] = rows[j] - rows[j, i] * rows[i]
    return rows[:, size:]


def main(size=SIZE):
    matrix = hilbert(size)
    inverted = inverse(matrix)
    corner = matrix[: size // 2] @ inverted[:, : size // 2]
    largest = np.abs(inverted).max()
    exact = np.array_equal(corner, np.eye(size // 2, dtype=int))
    print(f"{size} x {size}: the product is {'' if exact else 'not '}the identity")
    print(f"the largest entry has {len(str(largest))} digits; the sum is {inverted.sum()}")


if __name__ == "__main__":
    main(SMALL) if "--small" in sys.argv[1:] else main()
