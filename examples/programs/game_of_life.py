"""Cellular automata: Conway's game of life, uint8 and sums of slices, and how the crowd thins."""

import sys
from zlib import crc32

import numpy as np

SIZE, GENERATIONS = 1500, 60
SMALL = 200, 10


def generation(cells):
    """The next generation; nothing lives beyond the border."""
    padded = np.pad(cells, 1)
    neighbours = (
        padded[:-2, :-2]
        + padded[:-2, 1:-1]
        + padded[:-2, 2:]
        + padded[1:-1, :-2]
        + padded[1:-1, 2:]
        + padded[2:, :-2]
        + padded[2:, 1:-1]
        + padded[2:, 2:]
    )
    born = (cells == 0) & (neighbours == 3)
    stays = (cells == 1) & ((neighbours == 2) | (neighbours == 3))
    return (born | stays).astype(np.uint8)


def main(size=SIZE, generations=GENERATIONS):
    rng = np.random.default_rng(12)
    cells = (rng.random((size, size)) < 0.3).astype(np.uint8)
    age = np.zeros((size, size), np.int32)
    population = []
    for _ in range(generations):
        following = generation(cells)
        age = np.where(following & cells, age + 1, 0)
        population.append(following.sum())
        cells = following

    print(f"population {population[0]}, then {population[-1]}; the oldest lives {age.max()} steps")
    print(f"crowded rows: {np.sum(cells.sum(axis=1) > 1.2 * cells.sum(axis=1).mean())}")
    print(f"checksum {crc32(cells):08x} {crc32(age):08x}")


if __name__ == "__main__":
    main(*SMALL) if "--small" in sys.argv[1:] else main()
