"""Physics: heat spreads in a cube of two metals, float32, computed in place."""

import sys
from zlib import crc32

import numpy as np

SIZE, STEPS = 120, 40
SMALL = 32, 5


def main(size=SIZE, steps=STEPS):
    x, y, z = np.meshgrid(*3 * [np.linspace(-1, 1, size, dtype=np.float32)], indexing="ij")
    temperature = np.full(x.shape, 20, np.float32)
    temperature[x**2 + y**2 + z**2 < 0.2] = 500
    conductivity = np.where(x + y > 0, np.float32(0.15), np.float32(0.03))
    start = temperature.mean(dtype=np.float64)

    inner = (slice(1, -1),) * 3
    flow = np.empty_like(temperature[inner])
    for _ in range(steps):
        np.multiply(temperature[inner], -6, out=flow)
        flow += temperature[2:, 1:-1, 1:-1]
        flow += temperature[:-2, 1:-1, 1:-1]
        flow += temperature[1:-1, 2:, 1:-1]
        flow += temperature[1:-1, :-2, 1:-1]
        flow += temperature[1:-1, 1:-1, 2:]
        flow += temperature[1:-1, 1:-1, :-2]
        flow *= conductivity[inner]
        temperature[inner] += flow
        if np.abs(flow).max() < 1e-3:
            break

    profile = temperature.mean(axis=(1, 2))
    hot = temperature > 100
    print(f"mean {start:.9g}, then {temperature.mean(dtype=np.float64):.9g}")
    print(f"hottest {temperature.max():.7g}, layers {profile.min():.7g} to {profile.max():.7g}")
    print(f"above 100 degrees: {hot.mean():.4%}, in the better metal {hot[x + y > 0].mean():.4%}")
    print(f"checksum {crc32(temperature):08x}")


if __name__ == "__main__":
    main(*SMALL) if "--small" in sys.argv[1:] else main()
