"""Astronomy: a cluster of stars under its own gravity, every pair of them by broadcasting."""

import sys
from zlib import crc32

import numpy as np

STARS, STEPS = 1000, 10
SMALL = 150, 3
SOFTENING = 0.05
TIME_STEP = 0.01


def accelerations(positions, masses):
    separations = positions[np.newaxis, :, :] - positions[:, np.newaxis, :]
    squares = np.sum(separations**2, axis=-1) + SOFTENING**2
    weights = masses * squares**-1.5
    return np.sum(weights[:, :, np.newaxis] * separations, axis=1)


def energy(positions, velocities, masses):
    kinetic = 0.5 * np.sum(masses * np.sum(velocities**2, axis=1))
    separations = positions[np.newaxis, :, :] - positions[:, np.newaxis, :]
    distances = np.sqrt(np.sum(separations**2, axis=-1) + SOFTENING**2)
    pairs = masses[:, np.newaxis] * masses / distances
    np.fill_diagonal(pairs, 0)
    return kinetic - 0.5 * np.sum(pairs)


def main(stars=STARS, steps=STEPS):
    rng = np.random.default_rng(5)
    masses = rng.uniform(0.5, 1.5, stars)
    masses /= masses.sum()
    positions = rng.standard_normal((stars, 3))
    velocities = 0.5 * rng.standard_normal((stars, 3))
    velocities -= np.average(velocities, axis=0, weights=masses)
    before = energy(positions, velocities, masses)

    forces = accelerations(positions, masses)
    for _ in range(steps):  # leapfrog
        velocities += 0.5 * TIME_STEP * forces
        positions += TIME_STEP * velocities
        forces = accelerations(positions, masses)
        velocities += 0.5 * TIME_STEP * forces

    after = energy(positions, velocities, masses)
    radius = np.sqrt(np.median(np.sum(positions**2, axis=1)))
    print(f"energy {before:.12g}, then {after:.12g}; half are within {radius:.12g}")
    print(f"checksum {crc32(positions):08x} {crc32(velocities):08x}")


if __name__ == "__main__":
    main(*SMALL) if "--small" in sys.argv[1:] else main()
