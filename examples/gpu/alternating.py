"""Heat in a rod: an iteration that alternates between NumPy and our ufuncs, on managed arrays.

    python examples/gpu/alternating.py [points] [steps]

Nothing names a device. Sums and products of large managed arrays are computed on the GPU; what
NumPy reads comes back by itself. Where it comes back again and again, calls stay on the processor.
"""

import sys

import numpy as np

import numc_ufuncs as nc


def step(rod, looks):
    """One step in time; whether NumPy looks at the result."""
    left, right = rod[:-2], rod[2:]
    middle = nc.add(nc.multiply(rod[1:-1], 0.5), nc.multiply(nc.add(left, right), 0.25))
    where = nc.last_call()["device"] if nc.last_call() else "cpu"
    rod[1:-1] = middle  # NumPy
    return where, float(rod.max()) if looks else None


def main(points=10_000_000, steps=20):
    try:
        options = nc.config(memory="managed")
    except RuntimeError as error:
        print(error)
        return
    with options:
        rod = np.zeros(points, np.float32)
        rod[points // 2] = 1
        places = []
        for number in range(steps):
            where, hottest = step(rod, looks=number == steps - 1)
            places.append(where)
    on_cpu = places.count("cpu")
    print(f"{steps} steps, {on_cpu} of them on the processor; the hottest point is {hottest:.4f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
