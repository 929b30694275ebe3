"""Products of pinned and managed arrays, on the fake device; tests marked `cuda` run on a GPU."""

import _numc_test
import numpy as np
import pytest
from conftest import FAKE_MEMORY
from devices import DTYPES, assert_right, operand

import numc_ufuncs as nc


def strided(rng, shape, dtype):
    """The same matrix in several layouts, all in the memory in effect."""
    a = operand(rng, shape, dtype).copy()
    wide = np.zeros((shape[0], shape[1] + 7), a.dtype)
    wide[:, 3:-4] = a
    sparse = np.zeros((2 * shape[0], 2 * shape[1]), a.dtype)
    sparse[::2, ::2] = a
    turned = a[::-1].copy()
    return [a, np.asfortranarray(a), wide[:, 3:-4], sparse[::2, ::2], turned[::-1]]


class TestProducts:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_layouts(self, memory, dtype):
        rng = np.random.default_rng(0)
        with nc.config(device="cuda", threads=3):
            for m, k, n in [(1, 1, 1), (40, 50, 30), (1, 70, 33), (3, 90, 290)]:
                for a in strided(rng, (m, k), dtype):
                    for b in strided(rng, (k, n), dtype)[:: 1 if m > 3 else 3]:
                        assert_right(nc.matmul(a, b), a, b)
                        out = np.empty((n, m), a.dtype).T
                        nc.matmul(a, b, out=out)
                        assert_right(out, a, b)

    @pytest.mark.parametrize("dtype", "ldD")
    def test_stacks(self, memory, dtype):
        rng = np.random.default_rng(0)
        with nc.config(device="cuda"):
            for shapes in [
                ((5, 20, 30), (5, 30, 40)),
                ((5, 20, 30), (30, 40)),
                ((2, 3, 9, 9),) * 2,
            ]:
                a, b = (operand(rng, shape, dtype).copy() for shape in shapes)
                assert_right(nc.matmul(a, b), a, b)
                assert_right(
                    nc.matmul(a[::2], b if b.ndim == 2 else b[::2]),
                    a[::2],
                    b if b.ndim == 2 else b[::2],
                )

    @pytest.mark.parametrize("dtype", "efdFD")
    def test_large(self, memory, dtype):
        """Rows that are copied by themselves, panels, and symmetric results."""
        rng = np.random.default_rng(0)
        a = operand(rng, (60, 1100), dtype).copy()
        with nc.config(device="cuda"):
            for x in (a, a[:, 3:-9], a.T[:150], a[::2]):
                y = x.T.copy()
                result = nc.matmul(x, y)
                assert_right(result, x, y)
                result = nc.matmul(x, x.T)
                assert_right(result, x, x.T)
                assert (result == result.T).all()

    @pytest.mark.parametrize("dtype", "fdFD")
    def test_rows_in_turn(self, memory, dtype):
        """Of pinned matrices, rows of either are multiplied by what is there of the other."""
        rng = np.random.default_rng(0)
        with nc.config(device="cuda"):
            for m, k, n in [(513, 1301, 5), (1700, 390, 3), (3, 700, 600)]:
                a, wide = (operand(rng, (m, k + i), dtype).copy() for i in (0, 5))
                b = operand(rng, (k, n), dtype).copy()
                for x in (a, wide[:, 2:-3]):
                    assert_right(nc.matmul(x, b), x, b)
                    out = np.empty((n, m), a.dtype).T
                    nc.matmul(x, b, out=out)
                    assert_right(out, x, b)
            a = operand(rng, (100, 705), dtype).copy()[:, 2:-3]
            # Most dtypes have rows long enough to be copied by themselves.
            b = operand(rng, (700, 300), dtype).copy()[:, 3:-4]
            out = np.empty((100, 300), a.dtype)[:, 3:-4]
            nc.matmul(a, b, out=out)
            assert_right(out, a, b)
            with np.errstate(all="raise"):
                a[3, -1] = np.finfo(a.dtype).max
                b[-1] = np.finfo(a.dtype).max
                with pytest.raises(FloatingPointError, match="overflow encountered in matmul"):
                    nc.matmul(a, b)

    def test_nothing_is_copied(self, fake_gpu):
        """Calls of the device do not grow with the product, and no thread copies."""
        calls = []
        with nc.config(memory="managed", device="cuda"):
            for n in (100, 100, 300):
                a = np.ones((n, n))
                out = np.empty((n, n))
                before = _numc_test.device_calls()
                nc.matmul(a, a, out=out)
                calls.append(_numc_test.device_calls() - before)
                assert nc.last_call()["threads"] == 1 and (out == n).all()
        assert calls[1] == calls[2] < 10

    def test_pinned_operands_need_no_thread_that_copies(self, fake_gpu):
        with nc.config(memory="pinned", device="cuda", threads=4):
            a, wide = np.ones((300, 300)), np.ones((300, 600))
            for b in (a, a.T, wide[:, :300]):
                assert (nc.matmul(a, b) == 300).all()
                assert nc.last_call()["threads"] == 1
        ordinary = np.ones((300, 300))
        with nc.config(memory="pinned", device="cuda", threads=4):
            assert (nc.matmul(a, ordinary) == 300).all()
            assert nc.last_call()["threads"] > 1

    def test_unaligned(self, memory):
        """NumPy's complex numbers are aligned to their halves."""
        rng = np.random.default_rng(0)
        with nc.config(device="cuda"):
            for dtype, offset in (("D", 8), ("F", 4), ("d", 3)):
                text = np.empty(100 * 90 * 16 + 8, np.uint8)
                a = text[offset:][: 9000 * np.dtype(dtype).itemsize].view(dtype).reshape(100, 90)
                a[:] = operand(rng, (100, 90), dtype)
                b = operand(rng, (90, 80), dtype).copy()
                out = nc.matmul(a, b)
                assert_right(out, a, b)

    @pytest.mark.parametrize("dtype", "efdFD")
    def test_floating_point_errors(self, memory, dtype):
        a = np.ones((300, 300), dtype)
        with nc.config(device="cuda"), np.errstate(all="raise"):
            assert (nc.matmul(a, a) == 300).all()
            if dtype in "efd":
                a[7, 9] = np.inf
                assert np.isinf(nc.matmul(a, a[:, :1].copy())[7])
            a[:] = np.finfo(a.dtype).max
            with pytest.raises(FloatingPointError, match="overflow encountered in matmul"):
                nc.matmul(a, a)
            a[:] = 0
            a[5, 5] = np.inf
            with pytest.raises(FloatingPointError, match="invalid value encountered in matmul"):
                nc.matmul(a, a)

    def test_where_auto_computes(self, fake_gpu):
        """Without their transfer, products pay on the device that do not with it."""
        a = np.ones((300, 300))
        _numc_test.use_fake_device(FAKE_MEMORY, True, 1)
        try:
            with nc.config(memory="managed"):
                b = np.ones((300, 300))
                fast = [nc.matmul(b, b)]
                assert nc.last_call()["device"] == "cpu"  # equally fast
            fast.clear()
            del b
            _numc_test.use_fake_device(FAKE_MEMORY, True, 1e6)
            with nc.config(memory="managed"):
                b = np.ones((300, 300))
                assert (nc.matmul(b, b) == 300).all()
                assert nc.last_call()["device"] == "fake"
                with nc.config(device="cpu"):
                    assert (nc.matmul(b, b) == 300).all()
                    assert nc.last_call()["device"] == "cpu"
            del b
        finally:
            _numc_test.use_fake_device(FAKE_MEMORY)
        assert (nc.matmul(a, a) == 300).all()
