"""How long each way takes, beside the time in which its inputs can be read.

    python bench.py [--size N] [--rounds R] [--plot FILE]

Three arrays of N float32: a billion of them take 12 GB.
"""

import argparse
import time

import adds
import numpy as np

READING = f"reading only, {adds.CORES} threads"


def available():
    """Bytes that are free, or that the system would free for us."""
    with open("/proc/meminfo") as file:
        rows = dict(line.split(":", 1) for line in file)
    return int(rows["MemAvailable"].split()[0]) * 1024


def seconds_of(function, *arguments):
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def measured(n, rounds):
    """Seconds of each way, by name: the least of several rounds in which each has its turn."""
    a, b, out = (np.full(n, value, np.float32) for value in (1, 2, 0))
    ways = {READING: adds.read_inputs, "np.add": np.add, **adds.WAYS}
    for name, way in ways.items():
        out.fill(0)  # new pages would cost as much as the sum: the first round finds them there
        way(a, b, out)
        if name != READING and not (out == 3).all():
            raise SystemExit(f"{name}: wrong sums")
    samples = [[seconds_of(way, a, b, out) for way in ways.values()] for _ in range(rounds)]
    return dict(zip(ways, map(min, zip(*samples, strict=True)), strict=True))


def draw(seconds, n, path):
    from matplotlib.figure import Figure

    limit, *ways = seconds
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(ways[::-1], [1e3 * seconds[way] for way in ways[::-1]])
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.axvline(1e3 * seconds[limit], color="black", linestyle="dashed", label=limit)
    axes.set_xlabel(f"ms for the sum of {n:,} float32")
    axes.legend()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=10_000_000, metavar="N")
    parser.add_argument("--rounds", type=int, choices=range(1, 1000), default=20, metavar="R")
    parser.add_argument("--plot", metavar="FILE", help="draw the figures into FILE (matplotlib)")
    options = parser.parse_args()
    needed = 3 * 4 * options.size
    if not 0 < needed <= available() * 3 // 4:
        parser.error(
            f"--size {options.size} needs {needed:,} bytes; allowed are 1 to three quarters of the "
            f"{available():,} that are available"
        )
    seconds = measured(options.size, options.rounds)
    for name, taken in seconds.items():
        print(f"{name:26}{1e3 * taken:10.2f} ms{100 * seconds[READING] / taken:8.0f} %")
    if options.plot:
        draw(seconds, options.size, options.plot)


if __name__ == "__main__":
    main()
