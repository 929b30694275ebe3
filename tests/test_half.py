"""float16: NumPy converts in software, our kernels in hardware; bits and warnings must agree."""

import warnings

import numpy as np
import pytest

import numc_ufuncs as nc

N = 8192 + 75  # enough for the kernels, and for a vector's rest
EVERY = np.arange(65536, dtype=np.uint16).view(np.float16)
OPS = ("add", "subtract", "multiply", "divide")

# Bits of operands whose results lie where flags begin to differ. x86 judges underflow after
# rounding, NumPy before: products that round up to 2**-14 (0x0400) are what tells them apart.
PAIRS = [
    (0x21A8, 0x1DA8), (0xA1A8, 0x1DA8), (0x03FF, 0x3C01), (0x23FF, 0x1C00), (0x23FF, 0x1BFF),
    (0x2001, 0x2000), (0x2001, 0x2001), (0x0400, 0x3C01), (0x0400, 0x8001), (0x03FF, 0x0001),
    (0x0001, 0x3800), (0x0001, 0x3801), (0x0001, 0x0001), (0x0001, 0x7BFF), (0x7BFF, 0x0001),
    (0x7BFF, 0x4BFF), (0x7BFF, 0x4C00), (0xFBFF, 0xCC00), (0x7BFF, 0x3C01), (0x7BFF, 0x3BFF),
    (0x7C00, 0x7C00), (0x7C00, 0xFC00), (0x7C00, 0x0000), (0x0000, 0x0000), (0x3C00, 0x8000),
    (0x7E00, 0x3C00), (0x3C00, 0xFE00), (0x7D00, 0x3C00), (0x3C00, 0xFD00),
]  # fmt: skip


def outcome(ufunc, a, b, out):
    """The bits, with one NaN for all, and the warnings."""
    if out is a:
        out = a = a.copy()
    elif out is b:
        out = b = b.copy()
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        result = ufunc(a, b, out=out)
    bits = np.where(np.isnan(result), np.uint16(0x7E00), result.view(np.uint16))
    return bits, [str(w.message) for w in caught]


def assert_same(name, a, b, out=None):
    ours, our_warnings = outcome(getattr(nc, name), a, b, out)
    theirs, their_warnings = outcome(getattr(np, name), a, b, out)
    assert np.array_equal(ours, theirs)
    assert our_warnings == their_warnings


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("place", [0, 1000, 8191, N - 1])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]:04x}-{pair[1]:04x}")
def test_one_result_among_those_that_raise_nothing(name, pair, place):
    a, b = np.ones((2, N), np.float16)
    a.view(np.uint16)[place], b.view(np.uint16)[place] = pair
    assert_same(name, a, b)


@pytest.mark.parametrize("name", OPS)
def test_every_value(name):
    for bits in {bits for pair in PAIRS for bits in pair}:
        one = np.uint16(bits).view(np.float16)
        assert_same(name, EVERY, one)
        assert_same(name, one, EVERY)
    assert_same(name, EVERY, np.random.default_rng(0).permutation(EVERY))


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("name", OPS)
def test_layouts(name):
    rng = np.random.default_rng(1)
    for _ in range(20):
        n = int(rng.integers(N, 3 * N))
        rooms = rng.integers(0, 65536, (3, 2 * n), np.uint16).view(np.float16)
        a, b, out = (
            room[start:][:n] for room, start in zip(rooms, rng.integers(0, 64, 3), strict=True)
        )
        assert_same(name, a, b, out)
        assert_same(name, a, b, a)
        assert_same(name, a, b, b)
        assert_same(name, rooms[0, ::2], b)
        assert_same(name, rooms[0, ::-2], b[::-1], rooms[2, ::2])


def test_streaming_stores():
    """Larger than any cache: the kernels that write past it."""
    n = 60_000_011
    a = np.tile(EVERY, n // 65536 + 1)[:n]
    out = np.empty(n + 3, np.float16)[3:]
    with np.errstate(all="ignore"):
        nc.multiply(a, np.float16(0.3), out=out)
        expected = np.multiply(EVERY, np.float16(0.3))
    assert np.array_equal(out, np.resize(expected, n), equal_nan=True)
