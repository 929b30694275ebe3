"""Fluid dynamics: a drop falls into a basin; the shallow-water equations by Lax and Friedrichs."""

import sys
from zlib import crc32

import numpy as np

SIZE, STEPS = 400, 60
SMALL = 120, 10
GRAVITY = 9.81


def neighbours(field):
    """The mean of the four neighbours of each cell, in a periodic basin."""
    return 0.25 * (
        np.roll(field, 1, axis=0)
        + np.roll(field, -1, axis=0)
        + np.roll(field, 1, axis=1)
        + np.roll(field, -1, axis=1)
    )


def difference(flux, axis):
    return np.roll(flux, -1, axis=axis) - np.roll(flux, 1, axis=axis)


def step(height, momentum_x, momentum_y, factor):
    """Height and momenta after one step; factor: time step / (2 * spacing)."""
    u, v = momentum_x / height, momentum_y / height
    pressure = 0.5 * GRAVITY * height**2
    inflow = difference(momentum_x, 0) + difference(momentum_y, 1)
    new_height = neighbours(height) - factor * inflow
    new_x = neighbours(momentum_x) - factor * (
        difference(momentum_x * u + pressure, 0) + difference(momentum_x * v, 1)
    )
    new_y = neighbours(momentum_y) - factor * (
        difference(momentum_y * u, 0) + difference(momentum_y * v + pressure, 1)
    )
    return new_height, new_x, new_y


def main(size=SIZE, steps=STEPS):
    spacing = 1.0 / size
    x = (np.arange(size) + 0.5) * spacing
    distance = (x[:, None] - 0.3) ** 2 + (x - 0.4) ** 2
    height = 1 + 0.4 * np.exp(-distance / 0.005)
    momentum_x = np.zeros_like(height)
    momentum_y = np.zeros_like(height)
    volume = height.sum()

    time = 0.0
    for _ in range(steps):
        speed = np.sqrt(GRAVITY * height) + np.hypot(momentum_x, momentum_y) / height
        time_step = 0.4 * spacing / speed.max()
        factor = time_step / (2 * spacing)
        height, momentum_x, momentum_y = step(height, momentum_x, momentum_y, factor)
        time += time_step

    energy = (momentum_x**2 + momentum_y**2) / (2 * height) + GRAVITY * height**2 / 2
    print(f"time {time:.12g}, height {height.min():.12g} to {height.max():.12g}")
    print(f"volume lost {abs(height.sum() / volume - 1):.0e}, energy {energy.mean():.12g}")
    print(f"checksum {crc32(height):08x} {crc32(momentum_x):08x} {crc32(momentum_y):08x}")


if __name__ == "__main__":
    main(*SMALL) if "--small" in sys.argv[1:] else main()
