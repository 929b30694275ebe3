"""parallel(): any ufunc on all cores, with the bits, errors and warnings of the serial one."""

import ctypes
import gc
import signal
import warnings

import numpy as np
import pytest
import scipy.special

import numc_ufuncs as nc

SIZES = [1, 63, 64, 65, 127, 128, 129, 500, 501, 1000, 8191, 100_003]


def test_is_cached_and_keeps_its_ufunc():
    made = np.frompyfunc(lambda a: a + 1, 1, 1)
    ours = nc.parallel(made)
    assert nc.parallel(made) is ours
    assert nc.parallel(ours) is ours
    del made
    gc.collect()
    assert ours(np.array([1, 2], object)).tolist() == [2, 3]


def test_own_ufuncs():
    assert nc.parallel(nc.add) is nc.add
    assert nc.parallel(np.add) is nc.add
    assert nc.parallel(np.true_divide) is nc.divide


def test_generalized_ufuncs():
    theirs = np.linalg._umath_linalg.det
    ours = nc.parallel(theirs)
    assert nc.parallel(ours) is ours is nc.parallel(theirs)
    assert (ours.signature, ours.types) == (theirs.signature, theirs.types)
    assert nc.parallel(np.matmul) is nc.matmul


def test_ufuncs_without_results():
    """frompyfunc makes ufuncs without outputs: their loops have no output operand to read."""
    calls = []
    for inputs in (0, 1):
        ours = nc.parallel(np.frompyfunc(lambda *args: calls.append(args), inputs, 0))
        assert ours.nout == 0


def ufunc_of(loop):
    """A ufunc of float64 whose inner loop calls ``loop(input, output, n, steps, data)``.

    It has no data, which NumPy's C API allows.
    """
    loop_type = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 4)

    @loop_type
    def call(args, dimensions, steps, data):
        args, steps = (ctypes.cast(p, ctypes.POINTER(ctypes.c_ssize_t)) for p in (args, steps))
        loop(args[0], args[1], ctypes.c_ssize_t.from_address(dimensions).value, steps[:2], data)

    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    api = pointer_of(np._core._multiarray_umath._UFUNC_API, None)
    make_type = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
        *(ctypes.c_int,) * 4,
        *(ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int),
    )
    make = make_type(ctypes.c_void_p.from_address(api + ctypes.sizeof(ctypes.c_void_p)).value)
    functions = (loop_type * 1)(call)
    types = bytes([np.dtype(float).num] * 2)
    ALIVE.append((call, functions, types))
    return make(ctypes.addressof(functions), None, types, 1, 1, 1, -1, b"of_loop", None, 0)


ALIVE = []  # what ufuncs only point to


def test_a_ufunc_without_data_for_its_loops():
    def negate(source, target, n, steps, data):
        assert not data
        for k in range(n):
            value = ctypes.c_double.from_address(source + k * steps[0]).value
            ctypes.c_double.from_address(target + k * steps[1]).value = -value

    assert nc.parallel(ufunc_of(negate))(np.arange(3.0)).tolist() == [0.0, -1.0, -2.0]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (3,)])
def test_a_loop_gets_numpys_steps(shape):
    """With others some loops, such as log of halves, compute other bits."""
    steps = []
    theirs = ufunc_of(lambda source, target, n, of_loop, data: steps.append(of_loop))
    a, b = np.ones(shape), np.ones(shape)
    for ufunc in (theirs, nc.parallel(theirs)):
        ufunc(a, out=a)
        ufunc(a, out=b)
        ufunc(a)
    assert steps[:3] == steps[3:]


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("n", [65, 200, 3001, 100_003])
def test_parts_begin_at_multiples_of_64_elements(n, regions):
    """No two threads write to one line, and a loop's last few elements are where NumPy's are."""
    parts = []
    ours = nc.parallel(ufunc_of(lambda source, target, n, steps, data: parts.append((source, n))))
    a = np.ones(n)
    for _ in range(5):
        ours(a, out=np.empty(n))
        taken = sorted(((source - a.ctypes.data) // 8, count) for source, count in parts)
        assert [begin for begin, _ in taken] == [0, *np.cumsum([c for _, c in taken])[:-1]]
        assert sum(count for _, count in taken) == n and len(taken) > 1
        assert all(begin % 64 == 0 for begin, _ in taken)
        parts.clear()
    assert regions() > 0


def test_reductions_teach_nothing(regions):
    """They come in order, so that their time says nothing about threads."""
    add = nc._core.parallel_clone(np.add, None, "", None)
    large, small = np.ones(1_000_000), np.ones(3000)
    with nc.config(threads=2):
        for _ in range(200):
            add.reduce(large[:100_000])
        regions()
        for _ in range(64):
            add(small, small)
    assert regions() == 0


@pytest.mark.parametrize("wrong", [None, 1, "exp", np.sum, np.exp.reduce, len, np.vectorize(abs)])
def test_refuses_what_is_no_ufunc(wrong):
    with pytest.raises(TypeError, match=r"ufunc must be a numpy\.ufunc: got "):
        nc.parallel(wrong)


class CompiledByNumba:
    """As numba.vectorize returns it: no ufunc, but it holds one."""

    ufunc = np.frompyfunc(abs, 1, 1)


@pytest.mark.parametrize(
    ("wrong", "instead"),
    [
        (np.sum, "use numc_ufuncs.add.reduce"),
        (np.max, "use numc_ufuncs.maximum.reduce"),
        (np.cumprod, "use numc_ufuncs.multiply.accumulate"),
        (np.exp.outer, "use numc_ufuncs.exp.outer"),
        (CompiledByNumba(), "pass its attribute `.ufunc`"),
        (np.vectorize(abs), "of type vectorize"),
    ],
)
def test_says_what_to_use_instead(wrong, instead):
    with pytest.raises(TypeError, match=f"{instead}$"):
        nc.parallel(wrong)


def test_refuses_a_ufunc_without_inner_loops():
    from numpy._core import umath

    without = [u for u in vars(umath).values() if type(u) is np.ufunc and u.ntypes == 0]
    assert without
    for ufunc in without:
        with pytest.raises(TypeError, match="no inner loops in its type table"):
            nc.parallel(ufunc)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("name", ["gamma", "erf", "j0", "expit", "xlogy", "ellipj", "betainc"])
def test_scipy_special(name, regions):
    theirs = getattr(scipy.special, name)
    ours = nc.parallel(theirs)
    rng = np.random.default_rng(7)
    for n in SIZES:
        args = rng.uniform(0.1, 0.9, (theirs.nin, n))
        expected, result = theirs(*args), ours(*args)
        assert np.array_equal(result, expected, equal_nan=True)
    assert regions() == sum(n > 64 for n in SIZES)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("layout", [slice(None), slice(None, None, 2)])
def test_an_interrupt_while_scipy_is_asked(monkeypatch, layout):
    """What a signal's handler raises while a call asks for SciPy's error handling is not lost."""
    gammaln, x = nc.parallel(scipy.special.gammaln), np.ones((300, 200))[:, layout]
    geterr = scipy.special.geterr

    def interrupted():
        signal.raise_signal(signal.SIGINT)
        return geterr()

    monkeypatch.setattr(scipy.special, "geterr", interrupted)
    # Started in the background of a shell, Python ignores SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        gammaln(x)
    signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    assert np.array_equal(gammaln(x), scipy.special.gammaln(x))


def test_objects_stay_serial(regions):
    a = np.arange(1000).astype(object)
    assert (nc.add(a, a) == a + a).all()
    assert nc.parallel(np.frompyfunc(lambda x: x + 1, 1, 1))(a)[-1] == 1000
    assert regions() == 0


def message_of(function, *args):
    with pytest.raises(Exception) as info:
        function(*args)
    return info.type, str(info.value)


@pytest.mark.usefixtures("threads_always")
class TestExceptionsOfWorkers:
    """An error in any one element reaches the caller, whichever thread computed it."""

    @pytest.mark.parametrize("n", [1, 65, 500, 501, 10_000, 1_000_000])
    @pytest.mark.parametrize("where", ["first", "last", "all"])
    def test_negative_integer_power(self, n, where):
        exponent = np.ones(n, int)
        exponent[{"first": 0, "last": -1, "all": slice(None)}[where]] = -1
        base = np.full(n, 2)
        assert message_of(nc.power, base, exponent) == message_of(np.power, base, exponent)
        assert nc.power(base, 1)[-1] == 2  # and the next call is not affected

    @pytest.mark.parametrize("n", [1, 65, 500, 501, 10_000, 1_000_000])
    def test_timedelta_overflow(self, n):
        a = np.full(n, np.timedelta64(2**62, "ns"))
        factor = np.ones(n)
        factor[-1] = np.inf
        with np.errstate(all="ignore"):
            assert nc.multiply(a, factor)[-1:].tolist() == np.multiply(a, factor)[-1:].tolist()
        zero = np.zeros(n, "m8[ns]")
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always")
            nc.floor_divide(a, zero)
        with warnings.catch_warnings(record=True) as theirs:
            warnings.simplefilter("always")
            np.floor_divide(a, zero)
        assert [str(w.message) for w in ours] == [str(w.message) for w in theirs]

    @pytest.mark.parametrize("n", [1, 65, 500, 501, 10_000, 1_000_000])
    @pytest.mark.parametrize("name", ["psi", "ellipk", "chdtr", "_kolmogci"])
    def test_scipy_errstate(self, n, name):
        theirs = getattr(scipy.special, name, None) or getattr(scipy.special._ufuncs, name)
        ours = nc.parallel(theirs)
        bad = {"psi": (-0.0,), "ellipk": (1e300,), "chdtr": (-1.0, 0.5), "_kolmogci": (-1.0,)}[name]
        args = [np.full(n, 0.5) for _ in bad]
        for arg, value in zip(args, bad, strict=True):
            arg[-1] = value
        with scipy.special.errstate(all="raise"):
            assert message_of(ours, *args) == message_of(theirs, *args)
        assert np.array_equal(ours(*args), theirs(*args), equal_nan=True)


def warning_texts(function, *args):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args)
    return [(w.category, str(w.message)) for w in caught]


@pytest.mark.usefixtures("threads_always")
class TestFloatingPointFlagsOfWorkers:
    CASES = (
        ("add", (1e308, 1e308), "overflow"),
        ("multiply", (1e-300, 1e-300), "underflow"),
        ("divide", (1.0, 0.0), "divide"),
        ("subtract", (np.inf, np.inf), "invalid"),
        ("sqrt", (-1.0,), "invalid"),
        ("exp", (1000.0,), "overflow"),
        ("log", (0.0,), "divide"),
    )

    @pytest.mark.parametrize(("name", "bad", "kind"), CASES)
    @pytest.mark.parametrize("n", SIZES)
    @pytest.mark.parametrize("where", ["first", "middle", "last"])
    def test_every_way_of_handling(self, name, bad, kind, n, where):
        ours, theirs = getattr(nc, name), getattr(np, name)
        args = [np.full(n, 2.0) for _ in bad]
        for arg, value in zip(args, bad, strict=True):
            arg[{"first": 0, "middle": n // 2, "last": -1}[where]] = value
        with np.errstate(all="ignore"):
            assert warning_texts(ours, *args) == []
        with np.errstate(all="ignore", **{self.option(kind): "warn"}):
            expected = warning_texts(theirs, *args)
            assert expected
            assert warning_texts(ours, *args) == expected
        with np.errstate(all="ignore", **{self.option(kind): "raise"}):
            assert message_of(ours, *args) == message_of(theirs, *args)
        calls = []
        with np.errstate(all="ignore", **{self.option(kind): "call"}):
            before = np.seterrcall(lambda text, flag: calls.append((text, flag)))
            try:
                ours(*args)
                theirs(*args)
            finally:
                np.seterrcall(before)
        assert len(calls) == 2
        assert calls[0] == calls[1]

    @staticmethod
    def option(kind):
        return {"overflow": "over", "underflow": "under"}.get(kind, kind)

    @pytest.mark.parametrize("n", SIZES)
    def test_flags_that_the_loop_clears_stay_cleared(self, n):
        """Casting a signalling NaN is invalid, but NumPy's fmax clears the flags of its thread."""
        signalling = np.full(n, 0x7FA00000, np.uint32).view(np.float32)
        for _ in range(5):  # which thread computes what varies
            expected = warning_texts(np.fmax, signalling, np.ones(n))
            assert warning_texts(nc.fmax, signalling, np.ones(n)) == expected

    def test_flags_of_an_earlier_call_are_not_reported(self):
        a = np.full(10_000, 1e308)
        with np.errstate(all="ignore"):
            nc.add(a, a)
        assert warning_texts(nc.add, np.ones(10_000), 1.0) == []


@pytest.mark.usefixtures("threads_always")
class TestOverlap:
    """Element k may depend on what element k-1 wrote: then order matters."""

    @pytest.mark.parametrize("n", SIZES[4:])
    @pytest.mark.parametrize("shift", [-2, -1, 1, 2, 64])
    def test_shifted_output(self, n, shift):
        def shifted(function):
            x = np.arange(n + 200, dtype=float)
            y = np.full(n, 0.5)
            function(x[100 : 100 + n], y, out=x[100 + shift : 100 + shift + n])
            return x

        assert np.array_equal(shifted(nc.add), shifted(np.add))

    @pytest.mark.parametrize("name", ["maximum", "hypot", "logaddexp", "subtract"])
    def test_accumulate_and_reduce(self, name):
        # Every step overlaps with the one before: there is no order but NumPy's.
        x = np.random.default_rng(1).normal(size=100_003)
        ours, theirs = getattr(nc, name), getattr(np, name)
        assert np.array_equal(ours.accumulate(x), theirs.accumulate(x))
        assert np.array_equal(ours.reduceat(x, [0, 5, 700]), theirs.reduceat(x, [0, 5, 700]))
        assert ours.reduce(x) == theirs.reduce(x)

    def test_output_that_is_narrower_than_the_step(self):
        base = np.zeros(3000)
        out = np.lib.stride_tricks.as_strided(base, (2000,), (4,))
        expected = np.lib.stride_tricks.as_strided(base.copy(), (2000,), (4,))
        x = np.arange(2000.0)
        np.negative(x, out=expected)
        nc.negative(x, out=out)
        assert np.array_equal(out, expected, equal_nan=True)

    def test_interleaved_operands_use_threads(self, regions):
        z = np.random.default_rng(2).normal(size=20_000).view(complex)
        expected = z.copy()
        np.add(expected.real, 1, out=expected.imag)
        nc.add(z.real, 1, out=z.imag)
        assert np.array_equal(z, expected)
        assert regions() == 1


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("n", SIZES)
def test_several_outputs(n):
    x = np.random.default_rng(n).normal(scale=1e3, size=n)
    for name in ("modf", "frexp"):
        for result, expected in zip(getattr(nc, name)(x), getattr(np, name)(x), strict=True):
            assert np.array_equal(result, expected)
    assert np.array_equal(nc.divmod(x, 7.0), np.divmod(x, 7.0))


def test_large_arrays_learn_to_use_threads(regions):
    """No threshold is forced here: an expensive loop over many elements must end up threaded."""
    x = np.random.default_rng(0).uniform(1, 2, 1_000_000)
    with nc.config(threads=2):
        result = nc.parallel(scipy.special.gammaln)(x)
    assert regions() > 0
    assert np.array_equal(result, scipy.special.gammaln(x))


def test_streaming_stores(regions):
    """Larger than any cache: the kernel that writes past it."""
    n = 60_000_011
    a = np.random.default_rng(0).integers(-100, 100, n, dtype="i1")
    b = a[::-1].copy()
    for dtype in ("i1", "f4"):
        x, y = a.astype(dtype), b.astype(dtype)
        out = np.empty(n + 3, dtype)[3:]
        assert nc.add(x, y, out=out) is out
        assert np.array_equal(out, np.add(x, y))
    assert regions() > 0 or nc.get_config()["threads"] == 1
