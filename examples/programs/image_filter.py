"""Image processing: blur a colour photograph, sharpen it by what the blur lost, mark its edges."""

import sys
from zlib import crc32

import numpy as np

HEIGHT, WIDTH = 2000, 3000
SMALL = 120, 180


def photograph(height, width):
    """Smooth colours, a disc, and the noise of a sensor: uint8."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:height, 0:width]
    image = np.empty((height, width, 3), np.uint8)
    image[..., 0] = 255 * x / width
    image[..., 1] = 255 * y / height
    image[..., 2] = 128
    disc = (y - height / 2) ** 2 + (x - width / 2) ** 2 < (height / 4) ** 2
    image[disc] = (240, 200, 40)
    noise = rng.integers(-12, 13, image.shape)
    return np.clip(image + noise, 0, 255).astype(np.uint8)


def convolve(image, kernel):
    """The sum of shifted images, without the border."""
    rows, columns = kernel.shape
    height, width = image.shape[0] - rows + 1, image.shape[1] - columns + 1
    result = np.zeros((height, width, *image.shape[2:]), np.float32)
    for i in range(rows):
        for j in range(columns):
            result += kernel[i, j] * image[i : i + height, j : j + width]
    return result


def main(height=HEIGHT, width=WIDTH):
    image = photograph(height, width)
    pixels = image.astype(np.float32) / 255

    line = np.array([1, 4, 6, 4, 1], np.float32)
    blur = np.outer(line, line) / line.sum() ** 2
    blurred = convolve(pixels, blur)
    inner = pixels[2:-2, 2:-2]
    sharp = np.clip(inner + 1.5 * (inner - blurred), 0, 1)
    result = (sharp * 255 + 0.5).astype(np.uint8)

    grey = blurred @ np.array([0.299, 0.587, 0.114], np.float32)
    sobel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]], np.float32)
    gradient = np.hypot(convolve(grey, sobel), convolve(grey, sobel.T))
    edges = gradient > 0.25

    print(f"sharpened: mean {result.mean():.6f}, checksum {crc32(result):08x}")
    print(f"edges: {edges.mean():.3%} of the pixels, strongest {gradient.max():.4f}")


if __name__ == "__main__":
    main(*SMALL) if "--small" in sys.argv[1:] else main()
