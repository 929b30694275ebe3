"""Element-wise calls on a device: results to the bit, what they raise, where they are computed."""

import itertools
import runpy
import warnings
from pathlib import Path

import _numc_test
import numpy as np
import pytest
from checks import in_threads
from devices import on_device, operand, run

import numc_ufuncs as nc

OPS = ("add", "subtract", "multiply", "divide")
DTYPES = "?bHiLefdFD"
MEMORIES = ("system", "pinned", "managed")

LAYOUTS = {
    "contiguous": lambda a, b: (a, b),
    "strided": lambda a, b: (np.repeat(a, 2, axis=-1)[..., ::2], b),
    "transposed": lambda a, b: (a.T, b.T.copy()),
    "crossed": lambda a, b: (a.T, np.ascontiguousarray(b.T)),
    "reversed rows": lambda a, b: (a[::-1], b[::-1].copy()),
    "backwards": lambda a, b: (a.ravel()[::-1], b.ravel()[::-1]),
    "a row for all": lambda a, b: (a, b[:1]),
    "a column for all": lambda a, b: (a, b[..., :1]),
    "one element": lambda a, b: (a, b.ravel()[:1]),
    "a number first": lambda a, b: (b.ravel()[0], a),
    "not on a vector": lambda a, b: (a.ravel()[1:], b.ravel()[1:]),
    "apart from vectors by different distances": lambda a, b: (a.ravel()[1:], b.ravel()[:-1]),
}
SHAPES = ((5, 7), (129, 3), (3, 1, 4, 5), (130, 700))


def exists(op, dtype):
    kind = np.dtype(dtype).kind
    return not (op == "subtract" and kind == "b") and not (op == "divide" and kind in "biu")


CASES = [(op, dtype) for op in OPS for dtype in DTYPES if exists(op, dtype)]


def bits(array):
    array = np.ascontiguousarray(array)
    return array.view(f"u{min(array.itemsize, 8)}") if array.dtype.kind not in "?" else array


def rounds_otherwise():
    """NumPy's products of complex numbers that run backwards."""
    call = nc.last_call()
    return call["op"] == "multiply" and call["reason"].startswith("NumPy rounds otherwise")


@pytest.fixture
def fake():
    _numc_test.use_fake_device(1 << 28)
    _numc_test.set_fake_clock(1e-9)
    yield
    _numc_test.set_fake_clock(0)
    nc.set_config(device=None, memory=None)
    assert _numc_test.use_fake_device(0) == 0


def random_operand(shape, dtype, seed=0):
    a = operand(np.random.default_rng(seed), shape, dtype).copy()
    if a.dtype.kind in "fc":
        a.real[np.abs(a.real) < 0.25] = 0.5  # nothing that raises flags in a product
        if a.dtype.kind == "c":
            a.imag[np.abs(a.imag) < 0.25] = 0.5
    return a


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize(("op", "dtype"), CASES)
class TestResults:
    def test_layouts(self, op, dtype, memory):
        for shape, layout in itertools.product(SHAPES, LAYOUTS):
            with nc.config(memory=memory):
                a, b = random_operand(shape, dtype, 1), random_operand(shape, dtype, 2)
                a, b = LAYOUTS[layout](a, b)
                expected = getattr(np, op)(a, b)
                result = getattr(nc, op)(a, b)
            assert on_device() or rounds_otherwise(), (shape, layout, nc.last_call())
            assert result.dtype == expected.dtype and result.strides == expected.strides
            assert (bits(result) == bits(expected)).all(), (shape, layout)

    def test_outputs(self, op, dtype, memory):
        for shape in SHAPES:
            with nc.config(memory=memory):
                a, b = random_operand(shape, dtype, 1), random_operand(shape, dtype, 2)
                wide = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)
                expected = getattr(np, op)(a, b)
                backwards = np.zeros(shape, dtype)[::-1]
                for out in (np.zeros(shape, dtype), wide[..., ::2], backwards, a):
                    assert getattr(nc, op)(a, b, out=out) is out
                    assert on_device() or rounds_otherwise(), nc.last_call()
                    assert (bits(out) == bits(expected)).all()
                assert not wide[..., 1::2].any()


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("kinds", list(itertools.product(MEMORIES, repeat=3))[1:])
def test_operands_in_several_kinds_of_memory(kinds):
    arrays = []
    for seed, memory in enumerate(kinds):
        with nc.config(memory=memory):
            arrays.append(random_operand((300, 1001), "f", seed))
    a, b, out = arrays
    assert (nc.subtract(a, b, out=out) == np.subtract(a, b)).all() and on_device()
    assert (nc.subtract(a, b[0], out=out) == np.subtract(a, b[0])).all() and on_device()


def every_pair(dtype):
    """Of numbers that matter, all with all."""
    info = np.finfo(dtype)
    real = [0.0, -0.0, 1.0, -1.0, 3.0, np.inf, -np.inf, np.nan, -np.nan, info.max, -info.max]
    real += [info.tiny, info.smallest_subnormal, info.eps, 2 / 3, info.tiny * (1 - info.eps / 2)]
    real += [1 - info.epsneg, 1 + info.eps, float(info.tiny) ** 0.5, float(info.max) ** 0.5]
    values = np.array(real, info.dtype)
    if np.dtype(dtype).kind == "c":
        x, y = np.meshgrid(values, values)
        pairs = np.empty(x.shape, dtype)
        pairs.real, pairs.imag = x, y
        values = pairs.ravel()[::5] if dtype == "F" else pairs.ravel()[::7]
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


def flags_of(ufunc, a, b):
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        result = ufunc(a, b)
    return result, sorted(str(warning.message) for warning in caught)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize(("op", "dtype"), [case for case in CASES if case[1] in "efdFD"])
def test_exceptions_and_special_values(op, dtype, memory):
    """Of all elements at once, and of each by itself."""
    with nc.config(memory=memory):
        a, b = every_pair(dtype)
        expected, raised = flags_of(getattr(np, op), a, b)
        result, ours = flags_of(getattr(nc, op), a, b)
        assert on_device() and ours == raised
        same = bits(result) == bits(expected)
        is_nan = np.isnan(a) & np.isnan(b) if dtype in "efd" else np.isnan(expected)
        if dtype in "FD":  # which NaN is left of several is up to compilers
            same = same.reshape(-1, 2).all(axis=1) if same.size != a.size else same
            parts = [np.isnan(p) == np.isnan(q) for p, q in ((result.real, expected.real),)]
            is_nan = is_nan & parts[0] & (np.isnan(result.imag) == np.isnan(expected.imag))
        else:
            is_nan = is_nan & np.isnan(result)
        assert (same | is_nan).all(), (a[~(same | is_nan)][0], b[~(same | is_nan)][0])
        for i in range(0, a.size, 1 if dtype in "efd" else 97):
            one = slice(i, i + 1)
            expected, raised = flags_of(getattr(np, op), a[one], b[one])
            assert flags_of(getattr(nc, op), a[one], b[one])[1] == raised, (a[one], b[one])


@pytest.mark.usefixtures("device")
def test_nans_that_an_operation_makes_are_the_processors():
    infinite = np.full(5, np.inf, "f")
    with np.errstate(all="ignore"):
        for ufunc in (nc.subtract, nc.divide):
            expected = getattr(np, ufunc.__name__)(infinite, infinite)
            assert (bits(ufunc(infinite, infinite)) == bits(expected)).all() and on_device()


@pytest.mark.usefixtures("device")
def test_errstate():
    a, zero = np.ones(1000), np.zeros(1000)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        nc.divide(a, zero)
    assert on_device()
    with np.errstate(all="raise", divide="ignore"):
        assert np.isinf(nc.divide(a, zero)).all()
        with pytest.raises(FloatingPointError, match="invalid value encountered in divide"):
            nc.divide(zero, zero)


@pytest.mark.usefixtures("device")
def test_what_stays_on_the_processor_says_why():
    a = np.arange(100000, dtype="d")
    nc.add(a.astype("g"), a.astype("g"))
    assert not on_device() and nc.last_call()["reason"] == "no device computes this dtype"
    nc.add(a, a.astype("f"))
    assert not on_device() and "without casts" in nc.last_call()["reason"]
    nc.add(a, a)
    assert on_device() and nc.last_call()["reason"] == "asked for"
    with nc.config(device="cpu"):
        nc.add(a, a)
    assert not on_device() and nc.last_call()["reason"] == "asked for"
    nc.add(a, 1, where=a > 5, out=a)
    assert not on_device() and "masks" in nc.last_call()["reason"]


@pytest.mark.usefixtures("device")
def test_overlaps_are_numpys():
    for first, second in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
        x = np.arange(10000.0)
        y = x.copy()
        assert (nc.add(x[first], 1, out=x[second]) == np.add(y[first], 1, out=y[second])).all()
        assert not on_device() and "overlaps" in nc.last_call()["reason"]


@pytest.mark.usefixtures("device")
def test_nothing_to_compute():
    assert nc.add(np.empty((0, 3)), 1).shape == (0, 3)
    assert nc.add(1.0, 2.0) == 3.0
    assert nc.add(np.float64(1), np.array(2.0)) == 3.0


@pytest.mark.usefixtures("device")
def test_many_axes():
    """Devices take fewer of them than NumPy."""
    shape = (2,) * 17
    a = np.arange(2**17, dtype="i").reshape(shape).transpose(range(16, -1, -1))
    b = np.ones((1, 2) * 8 + (1,), "i")
    assert (nc.add(a, b) == np.add(a, b)).all()


@pytest.mark.usefixtures("device")
def test_several_threads():
    a = random_operand((300, 1000), "d")
    expected, wrong = np.multiply(a, a), []

    def work(_):
        for _ in range(20):
            if not (nc.multiply(a, a) == expected).all():
                wrong.append(1)

    in_threads(4, work)
    assert not wrong


# ---- unasked ----


def managed(shape, dtype="f"):
    with nc.config(memory="managed"):
        return np.ones(shape, dtype)


LARGE = 1 << 20  # elements of 4 bytes, two operands of which are moved


@pytest.mark.usefixtures("fake")
class TestUnasked:
    def add(self, *args, **keywords):
        with nc.config(memory="managed"):
            result = nc.add(*args, **keywords)
        assert (result == np.add(*args)).all()
        return nc.last_call()

    def test_other_memory_stays(self):
        ordinary, mine = np.ones(LARGE, "f"), managed(LARGE)
        with nc.config(memory="pinned"):
            pinned = np.ones(LARGE, "f")
        for other, why in ((ordinary, "ordinary"), (pinned, "pinned")):
            for a, b in ((other, other), (other, mine), (mine, other)):
                call = self.add(a, b)
                assert call["device"] == "cpu" and call["reason"].startswith(why)
            call = self.add(mine, mine, out=other)
            assert call["device"] == "cpu" and call["reason"].startswith(why)
        nc.add(mine, mine)
        assert nc.last_call()["reason"] == "its output is to be ordinary memory"

    def test_large_operands_are_moved_and_small_ones_are_not(self):
        small, large = managed(1000), managed(LARGE)
        assert self.add(small, 1)["reason"] == "too small to be moved to the device"
        assert self.add(large, 1)["device"] == "fake"
        assert nc.last_call()["reason"] == "its operands are managed memory"

    def test_what_is_there_stays_there(self):
        large = managed(LARGE)
        assert self.add(large, 1)["device"] == "fake"
        assert self.add(large[:1000], 1)["device"] == "fake"
        with nc.config(device="cpu"):
            self.add(large, 1)
        assert self.add(large[:1000], 1)["device"] == "cpu"

    def test_prefetch_tells_where_operands_are(self):
        small = managed(1 << 19)
        nc.memory.prefetch(small, "cuda")
        assert self.add(small, 1)["device"] == "fake"
        nc.memory.prefetch(small, "cpu")
        assert self.add(small, 1)["device"] == "cpu"

    def test_a_product_brings_its_operands(self):
        a = managed((100, 100))
        with nc.config(device="cuda", memory="managed"):
            nc.matmul(a, a)
        assert self.add(a, 1)["device"] == "fake"

    @pytest.mark.parametrize("used", ["input", "out"])
    def test_small_operands_that_the_processor_used_stay_with_it(self, used):
        small, out = managed(1 << 19), managed(1 << 19)
        nc.memory.prefetch(small, "cuda")
        assert self.add(small, 1, out=out)["device"] == "fake"
        _numc_test.touch(small if used == "input" else out)
        for _ in range(2):
            assert self.add(small, 1, out=out)["device"] == "cpu"
            assert nc.last_call()["reason"] == "too small to be moved to the device"

    @pytest.mark.parametrize("used", ["input", "out"])
    def test_programs_that_alternate_come_to_stay_on_the_processor(self, used):
        large, out = managed(LARGE), managed(LARGE)
        places = []
        for _ in range(150):
            places.append(self.add(large, 1, out=out)["device"])
            _numc_test.touch(large if used == "input" else out)
        assert places[0] == "fake" and places.count("fake") < 15
        _numc_test.touch(large)
        assert "the processor used" in self.add(large, 1)["reason"]
        for _ in range(100):
            places.append(self.add(large, 1, out=out)["device"])
        assert places[-20:] == ["fake"] * 20  # they have stopped

    def test_products_move_what_is_not_there(self):
        a, b, out = managed((40000, 16)), managed((16, 16)), managed((40000, 16))

        def calls():
            before = _numc_test.device_calls()
            with nc.config(device="cuda"):
                nc.matmul(a, b, out=out)
            return _numc_test.device_calls() - before

        calls()
        without = calls()
        for touched in ([b], [a, out], [a, b, out]):
            for array in touched:
                _numc_test.touch(array)
            assert calls() == without + len(touched)
            assert calls() == without


# ---- faults ----


def failing_calls():
    """The Nth call of the device fails, for every N until none does: functions that arm it."""
    n, calls, before = 0, 0, 0

    def arm():
        nonlocal before
        before = _numc_test.device_calls()
        _numc_test.fail_device_call(n, False)

    while calls >= n:
        n += 1
        yield arm
        calls = _numc_test.device_calls() - before
        _numc_test.fail_device_call(0, False)


@pytest.mark.usefixtures("fake")
class TestFaults:
    @pytest.mark.parametrize("memory", MEMORIES)
    @pytest.mark.parametrize("warm", [False, True])
    def test_forced_raises(self, memory, warm):
        messages = []
        with nc.config(memory=memory, threads=2):
            a = random_operand((700, 900), "f")
            expected, out = np.add(a, a), np.empty_like(a)
        for arm in failing_calls():
            with nc.config(device="cuda", threads=2):
                if warm:
                    nc.add(a, a, out=out)
                arm()
                try:
                    assert (nc.add(a, a, out=out) == expected).all() and on_device()
                except RuntimeError as error:
                    messages.append(str(error))
        assert all("device 'cuda:0' failed, the result is not" in said for said in messages)
        assert len(messages) >= (4 if memory == "system" else 2)

    def test_unasked_falls_back(self):
        a, out = managed(LARGE), managed(LARGE)
        nc.add(a, a, out=out)
        fallen = 0
        for arm in failing_calls():
            nc.memory.prefetch(a, "cpu")
            arm()
            assert (nc.add(a, a, out=out) == 2).all()
            if not on_device():
                assert "failed" in nc.last_call()["reason"]
                fallen += 1
        assert fallen >= 3  # a move, the start of the kernel, its end

    def test_in_place_is_not_computed_twice(self):
        a = managed(LARGE)
        nc.add(a, 1, out=a)
        messages, fallen = [], 0
        for arm in failing_calls():
            nc.memory.prefetch(a, "cpu")
            a[...] = 1
            arm()
            try:
                nc.add(a, 1, out=a)
                assert (a == 2).all()
                fallen += not on_device()
            except RuntimeError as error:
                messages.append(str(error))
        assert all("the result is not complete" in said for said in messages)
        assert len(messages) >= 2
        assert fallen >= 1

    def test_a_lost_device(self):
        a, out = managed(LARGE), managed(LARGE)
        nc.add(a, a, out=out)
        _numc_test.fail_device_call(1, True)
        with pytest.warns(RuntimeWarning, match="is lost"), pytest.raises(RuntimeError):
            nc.add(a, a, out=out)
        b = np.ones(1000)
        assert (nc.add(b, b) == 2).all()
        with pytest.raises(RuntimeError, match="cannot be used"):
            nc.config(device="cuda")
        del a, out
        _numc_test.use_fake_device(1 << 28)  # what the lost one gave is left

    def test_no_memory_of_the_device_is_needed(self):
        assert _numc_test.use_fake_device(1) == 0
        a = random_operand((700, 900), "d")
        with nc.config(device="cuda"):
            assert (nc.multiply(a, a) == np.multiply(a, a)).all() and on_device()


FORK = """
import json, os, _numc_test, numpy as np, numc_ufuncs as nc
_numc_test.use_fake_device(1 << 28)
a = np.ones(100000)
with nc.config(device="cuda"): nc.add(a, a)
reader, writer = os.pipe()
if os.fork() == 0:
    right = bool((nc.add(a, a) == 2).all())
    os.write(writer, json.dumps(right).encode())
    os._exit(0)
os.wait()
print(os.read(reader, 100).decode())
"""


def test_a_forked_child_computes_on_the_processor():
    assert run(FORK) is True


def test_small_and_ordinary_calls_start_nothing():
    code = (
        "import json, numpy as np, numc_ufuncs as nc\n"
        "a = np.ones(1000)\n"
        "nc.add(a, a)\n"
        "maps = open('/proc/self/maps').read()\n"
        "print(json.dumps(['cuda' in maps, nc.last_call()]))"
    )
    assert run(code) == [False, None]


EXAMPLES = Path(__file__).parent.parent / "examples" / "gpu"


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("name", ["add_three_ways", "alternating"])
def test_examples(name, capsys):
    nc.set_config(device=None)
    example = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    example["main"](100_000)
    said = capsys.readouterr().out
    if name == "alternating":
        assert "the hottest point is 0." in said
    else:
        assert said.count(" ms") == 4
        assert said.count("one element 5") == 3
