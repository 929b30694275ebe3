"""Finance: prices and sensitivities of a million options, and the volatility that prices imply."""

import sys
from zlib import crc32

import numpy as np

OPTIONS, SMALL = 1_000_000, 20_000


def normal_density(x):
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def normal_distribution(x):
    """The polynomial 26.2.17 of Abramowitz and Stegun: seven digits."""
    t = 1 / (1 + 0.2316419 * np.abs(x))
    coefficients = 1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.319381530
    tail = np.zeros_like(t)
    for coefficient in coefficients:
        tail = (tail + coefficient) * t
    tail *= normal_density(x)
    return np.where(x >= 0, 1 - tail, tail)


def black_scholes(spot, strike, years, rate, volatility):
    """Prices of calls and puts; delta and vega of the calls."""
    deviation = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * years) / deviation
    d2 = d1 - deviation
    discounted = strike * np.exp(-rate * years)
    delta = normal_distribution(d1)
    call = spot * delta - discounted * normal_distribution(d2)
    put = call - spot + discounted
    vega = spot * normal_density(d1) * np.sqrt(years)
    return call, put, delta, vega


def main(options=OPTIONS):
    rng = np.random.default_rng(2)
    spot = rng.uniform(50, 150, options)
    strike = spot * rng.uniform(0.8, 1.2, options)
    years = rng.uniform(0.25, 2, options)
    volatility = rng.uniform(0.1, 0.5, options)
    call, put, delta, vega = black_scholes(spot, strike, years, 0.03, volatility)

    implied = np.full(options, 0.3)
    for _ in range(3):  # steps of Newton's method
        price, _, _, slope = black_scholes(spot, strike, years, 0.03, implied)
        implied -= (price - call) / np.maximum(slope, 1e-8)
        implied = np.clip(implied, 0.01, 2)
    error = np.abs(implied - volatility)

    print(f"calls {call.mean():.12g}, puts {put.mean():.12g}, delta {delta.mean():.12g}")
    print(f"vega {vega.mean():.12g}, error of implied volatility {error.mean():.3e}")
    print(f"checksum {crc32(call):08x} {crc32(implied):08x}")


if __name__ == "__main__":
    main(SMALL) if "--small" in sys.argv[1:] else main()
