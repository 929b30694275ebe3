"""Earth science: anomalies, trends and means by area of monthly temperatures with gaps."""

import sys
from zlib import crc32

import numpy as np

YEARS, LATITUDES, LONGITUDES = 40, 90, 180
SMALL = 10, 18, 36


def observations(years, latitudes, longitudes):
    """Temperatures by year, month and place, in float32; NaN where nobody measured."""
    rng = np.random.default_rng(18)
    latitude = np.linspace(-89, 89, latitudes)
    year = np.arange(years)[:, None, None, None]
    season = np.cos(2 * np.pi * (np.arange(12) - 6) / 12)[:, None, None]
    mean = 30 * np.cos(np.radians(latitude))[:, None] - 5
    swing = 0.2 * latitude[:, None]
    shape = years, 12, latitudes, longitudes
    weather = rng.standard_normal(shape, dtype=np.float32)
    temperature = mean + season * swing + 0.02 * year + 1.5 * weather
    temperature[rng.random(shape, dtype=np.float32) < 0.05] = np.nan
    return latitude, temperature.astype(np.float32)


def main(years=YEARS, latitudes=LATITUDES, longitudes=LONGITUDES):
    latitude, temperature = observations(years, latitudes, longitudes)
    climatology = np.nanmean(temperature, axis=0)
    anomaly = temperature - climatology
    yearly = np.nanmean(anomaly, axis=1)

    year = np.arange(years) - (years - 1) / 2
    trend = (year[:, None, None] * yearly).sum(axis=0) / (year**2).sum()
    weights = np.cos(np.radians(latitude))
    globe = np.average(yearly.mean(axis=2), axis=1, weights=weights)

    deviation = np.nanstd(anomaly, axis=(0, 1))
    extreme = np.abs(anomaly) > 3 * deviation
    known = ~np.isnan(anomaly)
    share = extreme.sum(axis=(1, 2, 3)) / known.sum(axis=(1, 2, 3))
    frost = np.where(known, temperature < 0, False).mean(axis=(0, 1, 3))
    yearly_range = climatology.max(axis=0) - climatology.min(axis=0)

    print(f"trend {100 * trend.mean():.9g} degrees in 100 years, range {yearly_range.mean():.7g}")
    print(f"the globe: {globe[0]:.9g} in the first year, {globe[-1]:.9g} in the last")
    print(f"extremes {share.min():.4%} to {share.max():.4%}, frost {frost.max():.4%} of the time")
    print(f"checksum {crc32(anomaly):08x} {crc32(deviation):08x}")


if __name__ == "__main__":
    main(*SMALL) if "--small" in sys.argv[1:] else main()
