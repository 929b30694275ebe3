"""Statistics: an ellipse of uncertainty for each group of measurements, and who lies outside.

python examples/linalg/ellipses.py [--small] [--plot FILE]
"""

import sys

import numpy as np

GROUPS, MEASUREMENTS = 40_000, 25
SMALL = 250
# Of the chi-squared distribution with two degrees of freedom: 95 % lie within.
LIMIT = 5.991464547107979


def main(groups=GROUPS, plot=None):
    rng = np.random.default_rng(24)
    shape = rng.uniform(0.2, 2, (groups, 1, 2))
    angle = rng.uniform(0, np.pi, groups)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = rng.standard_normal((groups, MEASUREMENTS, 2)) * shape @ turn.transpose(2, 1, 0)

    centred = points - points.mean(axis=1, keepdims=True)
    covariance = centred.swapaxes(1, 2) @ centred / (MEASUREMENTS - 1)
    variances, directions = np.linalg.eigh(covariance)
    axes_of = np.sqrt(LIMIT * variances)
    area = np.pi * np.sqrt(np.linalg.det(LIMIT * covariance))
    tilt = np.degrees(np.arctan2(directions[:, 1, 1], directions[:, 0, 1])) % 180

    # Whitened by the Cholesky factor, the square of the length is Mahalanobis's distance.
    factor = np.linalg.cholesky(covariance)
    white = np.linalg.solve(factor, centred.swapaxes(1, 2))
    outside = (white**2).sum(axis=1) > LIMIT
    off = np.abs((tilt - np.degrees(angle) + 90) % 180 - 90)
    long = shape.max(axis=(1, 2)) > 3 * shape.min(axis=(1, 2))
    off = np.where(shape[:, 0, 0] > shape[:, 0, 1], off, 90 - off)

    print(f"{groups} groups of {MEASUREMENTS}; outside of their ellipse: {outside.mean():.4%}")
    print(f"mean axes {axes_of.mean(axis=0).round(6)}, mean area {area.mean():.6f}")
    print(f"the tilt of long ones is off by {off[long].mean():.4f} degrees")
    if plot:
        from matplotlib.figure import Figure
        from matplotlib.patches import Ellipse

        figure = Figure(figsize=(8, 4), layout="constrained")
        for group, axes in enumerate(figure.subplots(1, 3)):
            axes.scatter(*points[group].T, c=outside[group], s=9, cmap="coolwarm")
            width, height = 2 * axes_of[group, ::-1]
            centre = points[group].mean(axis=0)
            axes.add_patch(Ellipse(centre, width, height, angle=tilt[group], fill=False))
            axes.set_aspect("equal")
        figure.savefig(plot)


if __name__ == "__main__":
    options = sys.argv[1:]
    file = options[options.index("--plot") + 1] if "--plot" in options else None
    main(SMALL if "--small" in options else GROUPS, plot=file)
