"""Graphics: spheres on a floor with shadows and mirrors, all rays of a picture at once."""

import sys
from zlib import crc32

import numpy as np

HEIGHT, WIDTH = 480, 640
SMALL = 60, 80
SPHERES = (  # centre, radius, colour
    ((0.0, 1.0, 4.0), 1.0, (0.9, 0.2, 0.2)),
    ((-2.2, 0.8, 3.2), 0.8, (0.2, 0.7, 0.3)),
    ((1.9, 0.6, 2.6), 0.6, (0.3, 0.4, 0.9)),
)
LIGHT = np.array([5.0, 8.0, -3.0])


def dot(a, b):
    return (a * b).sum(axis=-1)


def normalized(vectors):
    return vectors / np.sqrt(dot(vectors, vectors))[..., np.newaxis]


def distance_to_sphere(origin, direction, centre, radius):
    """How far each ray goes to a sphere; infinity where it misses."""
    to_origin = origin - np.array(centre)
    b = dot(direction, to_origin)
    discriminant = b**2 - dot(to_origin, to_origin) + radius**2
    root = np.sqrt(np.where(discriminant > 0, discriminant, np.inf))
    distance = -b - root
    return np.where((discriminant > 0) & (distance > 1e-4), distance, np.inf)


def hits(origin, direction):
    """Point, normal, colour of what each ray meets first; whether it meets anything."""
    falls = np.where(direction[..., 1] < 0, direction[..., 1], -1.0)
    nearest = np.where(direction[..., 1] < 0, -origin[..., 1] / falls, np.inf)
    normal = np.broadcast_to([0.0, 1.0, 0.0], direction.shape).copy()
    colour = np.zeros_like(direction)
    point = origin + np.where(np.isfinite(nearest), nearest, 0)[..., np.newaxis] * direction
    tiles = (np.floor(point[..., 0]) + np.floor(point[..., 2])) % 2
    colour[:] = (0.3 + 0.5 * tiles)[..., np.newaxis]
    for centre, radius, paint in SPHERES:
        distance = distance_to_sphere(origin, direction, centre, radius)
        closer = distance < nearest
        nearest[closer] = distance[closer]
        point[closer] = origin[closer] + nearest[closer][:, np.newaxis] * direction[closer]
        normal[closer] = (point[closer] - centre) / radius
        colour[closer] = paint
    return point, normal, colour, np.isfinite(nearest)


def main(height=HEIGHT, width=WIDTH):
    x = np.linspace(-1, 1, width) * width / height
    y = np.linspace(1, -1, height)[:, np.newaxis]
    screen = np.stack(np.broadcast_arrays(x, y, 1.5), axis=-1)
    direction = normalized(screen)
    origin = np.broadcast_to([0.0, 1.5, -2.0], direction.shape)
    image, weight = np.zeros_like(direction), 1.0
    for _ in range(3):
        point, normal, colour, met = hits(origin, direction)
        to_light = normalized(LIGHT - point)
        lit = np.maximum(dot(normal, to_light), 0)
        for centre, radius, _ in SPHERES:
            lit[np.isfinite(distance_to_sphere(point, to_light, centre, radius))] *= 0.2
        sky = 0.5 + 0.5 * direction[..., 1:2] * np.array([0.6, 0.7, 1.0])
        image += weight * np.where(met[..., np.newaxis], colour * (0.1 + 0.9 * lit[..., None]), sky)
        weight *= 0.35
        direction = direction - 2 * dot(direction, normal)[..., np.newaxis] * normal
        origin = point + 1e-3 * normal

    pixels = (255 * np.clip(image / 1.4, 0, 1) ** (1 / 2.2)).astype(np.uint8)
    print(f"mean colour {image.mean(axis=(0, 1)).round(9)}, dark {np.mean(pixels < 60):.4%}")
    print(f"checksum {crc32(pixels):08x}")


if __name__ == "__main__":
    main(*SMALL) if "--small" in sys.argv[1:] else main()
