"""Fractals: the Mandelbrot set with complex numbers and masks, coloured smoothly."""

import sys
from zlib import crc32

import numpy as np

HEIGHT, WIDTH, STEPS = 1000, 1500, 60
SMALL = 100, 150, 20


def escape_times(c, steps):
    """Steps until a point is far away, with a fraction; 0 within the set."""
    z = np.zeros_like(c)
    times = np.zeros(c.shape)
    inside = np.ones(c.shape, bool)
    for step in range(1, steps + 1):
        z[inside] = z[inside] ** 2 + c[inside]
        far = inside & (np.abs(z) > 8)
        times[far] = step + 1 - np.log2(np.log(np.abs(z[far])))
        inside &= ~far
    return times


def main(height=HEIGHT, width=WIDTH, steps=STEPS):
    real = np.linspace(-2.1, 0.7, width)
    imaginary = np.linspace(-1.1, 1.1, height)
    c = real + 1j * imaginary[:, np.newaxis]
    times = escape_times(c, steps)

    scaled = np.sqrt(times / times.max())
    phases = np.array([0.0, 0.6, 1.2])
    colours = 0.5 + 0.5 * np.cos(6 * scaled[..., np.newaxis] + phases)
    colours[times == 0] = 0
    image = (255 * colours).astype(np.uint8)

    area = (times == 0).mean() * 2.8 * 2.2
    print(f"area {area:.6f}, mean time {times[times > 0].mean():.12g}")
    print(f"checksum {crc32(times):08x} {crc32(image):08x}")


if __name__ == "__main__":
    main(*SMALL) if "--small" in sys.argv[1:] else main()
