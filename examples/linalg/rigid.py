"""Shapes: the rotation and shift that lay each of many scans onto a model (Kabsch's algorithm).

python examples/linalg/rigid.py [--small] [--plot FILE]
"""

import sys

import numpy as np

SCANS, POINTS = 50_000, 12
SMALL = 300


def rotations(rng, count):
    """Uniformly distributed: Q of random matrices, with signs that make them unique."""
    q, r = np.linalg.qr(rng.standard_normal((count, 3, 3)))
    q = q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None]
    return q * np.linalg.det(q)[:, None, None]


def main(scans=SCANS, plot=None):
    rng = np.random.default_rng(23)
    model = rng.standard_normal((POINTS, 3)) * (3, 2, 1)
    turned = rotations(rng, scans)
    shifts = rng.uniform(-10, 10, (scans, 1, 3))
    seen = model @ turned.swapaxes(1, 2) + shifts + 0.05 * rng.standard_normal((scans, POINTS, 3))

    centre, centres = model.mean(axis=0), seen.mean(axis=1, keepdims=True)
    covariance = (seen - centres).swapaxes(1, 2) @ (model - centre)
    u, _, vh = np.linalg.svd(covariance)
    # A reflection would fit mirrored noise: the weakest axis is turned back.
    u[:, :, 2] *= np.sign(np.linalg.det(u @ vh))[:, None]
    found = u @ vh
    back = (seen - centres) @ found + centre

    angle = (np.trace(found.swapaxes(1, 2) @ turned, axis1=1, axis2=2) - 1) / 2
    wrong = np.degrees(np.arccos(np.clip(angle, -1, 1)))
    error = np.sqrt(((back - model) ** 2).sum(axis=2).mean(axis=1))
    print(f"{scans} scans of {POINTS} points")
    print(f"rotations are off by {wrong.mean():.5f} degrees, at most {wrong.max():.4f}")
    print(f"points are off by {error.mean():.6f}; determinants {np.linalg.det(found).min():.6f}")
    if plot:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 4), layout="constrained")
        for column, (points, title) in enumerate(((seen, "seen"), (back, "laid onto the model"))):
            axes = figure.add_subplot(1, 2, column + 1, projection="3d")
            for scan in range(6):
                axes.plot(*points[scan].T, "o", markersize=3)
            axes.plot(*model.T, "k-", linewidth=1)
            axes.set_title(title)
        figure.savefig(plot)


if __name__ == "__main__":
    options = sys.argv[1:]
    file = options[options.index("--plot") + 1] if "--plot" in options else None
    main(SMALL if "--small" in options else SCANS, plot=file)
