"""Every way has the bits of np.add, for any length, alignment and number of threads."""

import adds
import numpy as np
import pytest


@pytest.mark.parametrize("way", adds.WAYS)
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 1023, 1024, 1025])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_sums(way, n, threads):
    for offset in range(9):
        a, b, whole = np.random.default_rng(0).random((3, n + 20), dtype=np.float32)
        before, out = whole.copy(), whole[offset : offset + n]
        adds.WAYS[way](a[:n], b[3 : n + 3], out, threads)
        before[offset : offset + n] = a[:n] + b[3 : n + 3]
        assert np.array_equal(whole, before)  # nothing beside it was written to


@pytest.mark.parametrize("way", adds.WAYS)
@pytest.mark.parametrize("n", [2**18, 2**18 + 1, 2**20 - 1])
def test_several_parts(way, n):
    a, b, out = np.random.default_rng(0).random((3, n), dtype=np.float32)
    adds.WAYS[way](a, b, out)
    assert np.array_equal(out, a + b)


def test_read():
    one, two = np.ones(1000, np.float32), np.full(1000, 2, np.float32)
    assert adds.read_inputs(one, two, one) == adds.read_inputs(two, one, one) == 2


@pytest.mark.parametrize("way", adds.WAYS)
def test_refuses(way):
    a = np.zeros(4, np.float32)
    for wrong in (a.astype("d"), np.zeros(8, "f")[::2], np.zeros(3, "f")):
        with pytest.raises((ValueError, adds.ctypes.ArgumentError)):
            adds.WAYS[way](a, wrong, a.copy())
    with pytest.raises(ValueError, match="threads is 0"):
        adds.WAYS[way](a, a, a.copy(), 0)
