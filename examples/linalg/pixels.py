"""Remote sensing: a trend and a season for each pixel of a stack of images, by least squares.

    python examples/linalg/pixels.py [--small] [--plot FILE]

Clouds hide pixels at random, so that each has dates, and a matrix, of its own.
"""

import sys

import numpy as np

ROWS, COLUMNS, DATES = 300, 300, 60
SMALL = 24


def images(rng, rows, columns):
    """What a satellite sees of a drying landscape, NaN below clouds; and the dates in years."""
    years = np.sort(rng.uniform(0, 5, DATES))
    y, x = np.mgrid[:rows, :columns] / (rows, columns)[0]
    trend = -0.05 * np.exp(-((x - 0.4) ** 2 + (y - 0.5) ** 2) / 0.05)
    season = 0.2 * x * np.sin(2 * np.pi * years)[:, None, None]
    seen = 0.5 + trend * years[:, None, None] + season
    seen += 0.02 * rng.standard_normal(seen.shape)
    seen[rng.uniform(size=seen.shape) < 0.3] = np.nan
    return seen, years


def main(rows=ROWS, columns=COLUMNS, plot=None):
    rng = np.random.default_rng(21)
    seen, years = images(rng, rows, columns)
    angle = 2 * np.pi * years
    model = np.stack([np.ones(DATES), years, np.sin(angle), np.cos(angle)], axis=1)

    # The normal equations of each pixel: a matrix of 4 x 4.
    clear = ~np.isnan(seen).reshape(DATES, -1).T
    values = np.nan_to_num(seen).reshape(DATES, -1).T
    products = (model[:, :, None] * model[:, None, :]).reshape(DATES, -1)
    matrices = (clear.astype(float) @ products).reshape(-1, 4, 4)
    right = (values * clear) @ model
    fit = np.linalg.solve(matrices, right[..., None])[..., 0]
    residual = np.where(clear, values - fit @ model.T, 0)
    freedom = clear.sum(axis=1) - 4
    variance = (residual**2).sum(axis=1) / freedom
    error = np.sqrt(variance[:, None] * np.diagonal(np.linalg.inv(matrices), axis1=1, axis2=2))

    trend = fit[:, 1].reshape(rows, columns)
    certain = np.abs(fit[:, 1]) > 3 * error[:, 1]
    print(f"{rows * columns} pixels, {clear.mean():.1%} clear")
    noise = np.sqrt(np.median(variance))
    print(f"steepest trend {trend.min():.6f} per year, median noise {noise:.6f}")
    print(f"drying beyond doubt: {np.mean(certain & (fit[:, 1] < 0)):.2%} of the pixels")
    if plot:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 3.5), layout="constrained")
        for axes, picture, title in zip(
            figure.subplots(1, 2), (seen[0], trend), ("first image", "trend per year"), strict=True
        ):
            figure.colorbar(axes.imshow(picture), ax=axes)
            axes.set_title(title)
        figure.savefig(plot)


if __name__ == "__main__":
    options = sys.argv[1:]
    file = options[options.index("--plot") + 1] if "--plot" in options else None
    main(*((SMALL, SMALL) if "--small" in options else (ROWS, COLUMNS)), plot=file)
