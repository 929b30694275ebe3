"""The same addition on the GPU, of arrays in three kinds of memory: ordinary, pinned, managed.

    python examples/gpu/add_three_ways.py [elements]

Ordinary arrays pass through pinned memory, which all cores copy to and from; a kernel reads and
writes pinned arrays where they are; managed ones move to the GPU once and stay.
"""

import sys
import time

import numpy as np

import numc_ufuncs as nc


def shortest_ms(call, calls=5):
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main(elements=10**8):
    for memory in ("system", "pinned", "managed"):
        try:
            options = nc.config(memory=memory, device="cuda")
        except RuntimeError as error:
            print(error)
            return
        with options:
            a, b, out = np.full(elements, 3.0), np.full(elements, 2.0), np.empty(elements)
            took = shortest_ms(lambda a=a, b=b, out=out: nc.add(a, b, out=out))
        device = nc.last_call()["device"]
        print(f"{memory}: {took:.2f} ms on {device}, sum of one element {out[-1]:g}")
    print(f"NumPy: {shortest_ms(lambda: np.add(a, b, out=out)):.2f} ms, once it has the pages back")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
