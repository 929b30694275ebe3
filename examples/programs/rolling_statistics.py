"""Time series: moving averages, bands and drawdowns of prices, and how a rule on them trades."""

import sys
from zlib import crc32

import numpy as np

TICKS, SMALL = 3_000_000, 40_000
WINDOW, LONG_WINDOW = 200, 2000


def rolling_sum(values, window):
    sums = np.cumsum(values)
    sums[window:] -= sums[:-window].copy()
    return sums[window - 1 :]


def rolling_mean_and_std(values, window):
    shifted = values - values.mean()
    mean = rolling_sum(shifted, window) / window
    variance = rolling_sum(shifted**2, window) / window - mean**2
    return mean + values.mean(), np.sqrt(np.maximum(variance, 0))


def main(ticks=TICKS):
    rng = np.random.default_rng(7)
    returns = 1e-4 * rng.standard_normal(ticks)
    returns[rng.random(ticks) < 1e-4] *= 20
    price = 100 * np.exp(np.cumsum(returns))

    mean, std = rolling_mean_and_std(price, WINDOW)
    long_mean, _ = rolling_mean_and_std(price, LONG_WINDOW)
    current = price[LONG_WINDOW - 1 :]
    mean, std = mean[LONG_WINDOW - WINDOW :], std[LONG_WINDOW - WINDOW :]
    score = (current - mean) / np.where(std > 0, std, 1)

    position = np.zeros(len(current))
    position[(score < -2) & (mean > long_mean)] = 1
    position[(score > 2) & (mean < long_mean)] = -1
    gains = position[:-1] * np.diff(np.log(current))
    wealth = np.exp(np.cumsum(gains))
    drawdown = 1 - wealth / np.maximum.accumulate(wealth)
    trades = np.count_nonzero(np.diff(position))

    print(f"trades {trades}, wealth {wealth[-1]:.12g}, worst drawdown {drawdown.max():.12g}")
    print(f"beyond two deviations: {np.mean(np.abs(score) > 2):.4%}, score {score.std():.12g}")
    print(f"checksum {crc32(score):08x} {crc32(wealth):08x}")


if __name__ == "__main__":
    main(SMALL) if "--small" in sys.argv[1:] else main()
