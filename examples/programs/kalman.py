"""Tracking: a Kalman filter of four numbers follows a ship, one measurement after the other."""

import sys

import numpy as np

MEASUREMENTS, SMALL = 30_000, 300


def voyage(rng, count, transition):
    """True positions, and what a radar sees of them."""
    state = np.array([0.0, 0.0, 1.0, 0.5])
    positions = np.empty((count, 2))
    for i in range(count):
        state = transition @ state
        state[2:] += 0.05 * rng.standard_normal(2)
        positions[i] = state[:2]
    return positions, positions + 3 * rng.standard_normal((count, 2))


def main(count=MEASUREMENTS):
    rng = np.random.default_rng(15)
    transition = np.eye(4)
    transition[0, 2] = transition[1, 3] = 1.0
    observation = np.eye(2, 4)
    process_noise = np.diag([1e-4, 1e-4, 0.0025, 0.0025])
    measurement_noise = 9.0 * np.eye(2)
    positions, measured = voyage(rng, count, transition)

    state = np.zeros(4)
    covariance = 100 * np.eye(4)
    estimates = np.empty((count, 2))
    surprises = np.empty(count)
    for i, measurement in enumerate(measured):
        state = transition @ state
        covariance = transition @ covariance @ transition.T + process_noise

        residual = measurement - observation @ state
        spread = observation @ covariance @ observation.T + measurement_noise
        inverse = np.linalg.inv(spread)
        gain = covariance @ observation.T @ inverse
        state = state + gain @ residual
        covariance = (np.eye(4) - gain @ observation) @ covariance
        estimates[i] = state[:2]
        surprises[i] = residual @ inverse @ residual

    before = np.sqrt(np.mean(np.sum((measured - positions) ** 2, axis=1)))
    after = np.sqrt(np.mean(np.sum((estimates - positions) ** 2, axis=1)))
    print(f"error of the radar {before:.6f}, of the filter {after:.6f}")
    print(f"mean surprise {surprises.mean():.6f}, last position {np.round(estimates[-1], 3)}")


if __name__ == "__main__":
    main(SMALL) if "--small" in sys.argv[1:] else main()
