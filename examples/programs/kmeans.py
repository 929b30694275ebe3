"""Machine learning: k-means clustering, with distances by broadcasting."""

import sys
from zlib import crc32

import numpy as np

POINTS, SMALL = 50_000, 2_000
DIMENSIONS, CLUSTERS, STEPS = 8, 12, 12


def samples(rng, points):
    """Points around centres, and which of them each is around."""
    centres = rng.uniform(-10, 10, (CLUSTERS, DIMENSIONS))
    labels = rng.integers(CLUSTERS, size=points)
    return centres[labels] + rng.standard_normal((points, DIMENSIONS)), labels


def nearest(data, centres):
    """The nearest centre of each point, and the square of its distance."""
    squares = ((data[:, np.newaxis, :] - centres) ** 2).sum(axis=2)
    return squares.argmin(axis=1), squares.min(axis=1)


def main(points=POINTS):
    rng = np.random.default_rng(3)
    data, truth = samples(rng, points)
    data = (data - data.mean(axis=0)) / data.std(axis=0)

    # k-means++: each first centre is drawn by its distance to those before it.
    centres = data[rng.integers(points)][np.newaxis]
    while len(centres) < CLUSTERS:
        _, squares = nearest(data, centres)
        centres = np.vstack([centres, data[rng.choice(points, p=squares / squares.sum())]])

    for _ in range(STEPS):
        labels, squares = nearest(data, centres)
        for k in range(CLUSTERS):
            members = data[labels == k]
            if len(members):
                centres[k] = members.mean(axis=0)

    # Of the points of each true cluster, how many share the most frequent label?
    pairs = np.bincount(truth * CLUSTERS + labels, minlength=CLUSTERS**2)
    purity = pairs.reshape(CLUSTERS, CLUSTERS).max(axis=1).sum() / points
    print(f"inertia {squares.sum():.12g}, purity {purity:.4f}")
    print(f"sizes {np.sort(np.bincount(labels))}")
    print(f"checksum {crc32(centres):08x}")


if __name__ == "__main__":
    main(SMALL) if "--small" in sys.argv[1:] else main()
