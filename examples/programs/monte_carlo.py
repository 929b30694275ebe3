"""Finance: an Asian option by Monte Carlo, with antithetic paths and a control variate."""

import math
import sys
from zlib import crc32

import numpy as np

PATHS, SMALL = 160_000, 2_000
DAYS = 128
SPOT, STRIKE, RATE, VOLATILITY, YEARS = 100.0, 102.0, 0.03, 0.25, 0.5


def prices(normals):
    """Paths of prices, one a row: geometric Brownian motion."""
    step = YEARS / normals.shape[1]
    drift = (RATE - VOLATILITY**2 / 2) * step
    growth = np.cumsum(drift + VOLATILITY * np.sqrt(step) * normals, axis=1)
    return SPOT * np.exp(growth)


def plain_price():
    """Of the plain option, by the formula of Black and Scholes."""
    deviation = VOLATILITY * math.sqrt(YEARS)
    d1 = (math.log(SPOT / STRIKE) + (RATE + VOLATILITY**2 / 2) * YEARS) / deviation
    d2 = d1 - deviation
    n1, n2 = (0.5 * math.erfc(-d / math.sqrt(2)) for d in (d1, d2))
    return SPOT * n1 - STRIKE * math.exp(-RATE * YEARS) * n2


def payoffs(paths):
    """Discounted payoffs of the option on the mean, and of a plain one."""
    discount = np.exp(-RATE * YEARS)
    asian = np.maximum(paths.mean(axis=1) - STRIKE, 0)
    plain = np.maximum(paths[:, -1] - STRIKE, 0)
    return discount * asian, discount * plain


def main(paths=PATHS):
    rng = np.random.default_rng(6)
    normals = rng.standard_normal((paths // 2, DAYS))
    up, down = prices(normals), prices(-normals)
    asian, plain = (0.5 * (a + b) for a, b in zip(payoffs(up), payoffs(down), strict=True))

    covariance = np.mean((asian - asian.mean()) * (plain - plain.mean()))
    slope = covariance / plain.var()
    controlled = asian - slope * (plain - plain_price())
    knocked_out = (up.max(axis=1) > 130) | (down.max(axis=1) > 130)

    error = controlled.std() / np.sqrt(len(controlled))
    print(f"price {controlled.mean():.12g} +- {error:.3g}, without control {asian.mean():.12g}")
    print(f"above the barrier: {knocked_out.mean():.4%}")
    print(f"checksum {crc32(controlled):08x}")


if __name__ == "__main__":
    main(SMALL) if "--small" in sys.argv[1:] else main()
