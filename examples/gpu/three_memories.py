"""The same product of arrays in three kinds of memory: ordinary, pinned, managed.

    python examples/gpu/three_memories.py [n]

Ordinary arrays are staged by all cores, pinned ones are copied by the GPU itself, and managed ones
lie where they were used last: here on the GPU, so nothing is copied.
"""

import sys
import time

import numpy as np

import numc_ufuncs as nc


def matrices(n):
    """Two of random numbers and an empty one, in the memory that is in effect."""
    rng = np.random.default_rng(0)
    return rng.random((n, n)), rng.random((n, n)), np.empty((n, n))


def shortest_ms(call, calls=5):
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main(n=4096):
    expected = None
    for memory in ("system", "pinned", "managed"):
        try:
            options = nc.config(memory=memory, device="cuda")
        except RuntimeError as error:
            print(error)
            return
        with options:
            a, b, out = matrices(n)
            ms = shortest_ms(lambda of=(a, b, out): nc.matmul(*of[:2], out=of[2]))
        expected = out if expected is None else expected
        print(f"{memory:8} {ms:8.2f} ms, the same result: {np.allclose(out, expected)}")
    print(f"kept for arrays to come: {nc.info()['memory_kept'] >> 20} MiB")
    del a, b, out
    print(f"given back: {nc.memory.release() >> 20} MiB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
