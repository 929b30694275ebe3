"""Calls with inputs of several dtypes, and with masks: converted and gathered piece by piece."""

import itertools
import warnings

import numpy as np
import pytest
from checks import in_thread_of_small_stack, same_bits

import numc_ufuncs as nc
from numc_ufuncs import _core

PAIRS = "fd id ld il fi bi ef ed ?d Hf hf Id LB ?l qi Ll Hb".split()
SHAPE = 300, 70


def numbers(dtype, shape, seed=0):
    values = np.random.default_rng(seed).integers(-99, 99, shape)
    return (values > 0) if dtype == "?" else values.astype(dtype)


def layouts(x, y):
    """Pairs of operands whose common shape has more elements than NumPy's buffer."""
    yield "contiguous", x, y
    yield "columns", np.asfortranarray(x), np.asfortranarray(y)
    yield "mixed order", x, np.asfortranarray(y)
    yield "strided", np.repeat(x, 2, 1)[:, ::2], y
    yield "reversed", x[::-1, ::-1], y[::-1, ::-1]
    yield "a row", x, y[:1]
    yield "a column", x[:, :1], y
    yield "a scalar", x, y[0, 0]
    yield "0-d", x, y[0, 0, ...]
    yield "short rows", x.reshape(-1, 3), y[0, :3]
    yield (
        "three axes",
        x.reshape(10, 30, 70).transpose(1, 0, 2),
        y.reshape(10, 30, 70)[:1, :, :].transpose(1, 0, 2),
    )


def short_layouts(x, y):
    """The same of a few elements in each row, in one of two axes or in all of them."""
    for shape in (-1, 2), (-1, 3, 5), (2, -1, 3), (50, 3, 2, -1):
        a, b = x.reshape(shape), y.reshape(shape)
        axis = shape.index(-1)
        yield f"{shape}", a, b
        yield f"{shape}, other order", a, np.asfortranarray(b)
        yield f"{shape}, apart", a, np.repeat(b, 2, 0)[::2]
        yield f"{shape}, gaps", np.repeat(a, 3, -1)[..., ::3], b
        yield f"{shape}, reversed", a[..., ::-1], b[::-1]
        for repeated in range(len(shape)):
            if repeated != axis:
                yield f"{shape}, axis {repeated} repeated", a, b.take([0], repeated)


def over_axes():
    return _core.short_calls()[1]


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", ["add", "less", "maximum", "divide"])
def test_layouts(name, pair):
    ours, theirs = getattr(nc, name), getattr(np, name)
    for layout, x, y in layouts(numbers(pair[0], SHAPE), numbers(pair[1], SHAPE, 1)):
        for a, b in ((x, y), (y, x)):
            with np.errstate(all="ignore"):
                expected, result = theirs(a, b), ours(a, b)
                out = np.empty_like(expected)
                assert ours(a, b, out=out) is out
            assert same_bits(result, expected) and same_bits(out, expected), layout
            assert result.dtype == expected.dtype and result.strides == expected.strides


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("pair", ["fd", "?d", "bi", "ed", "HH", "bb"])
def test_short_rows(pair):
    operands = numbers(pair[0], SHAPE), numbers(pair[1], SHAPE, 1)
    for name in "add", "divide":
        for layout, x, y in short_layouts(*operands):
            with np.errstate(all="ignore"):
                expected, result = getattr(np, name)(x, y), getattr(nc, name)(x, y)
            assert same_bits(result, expected), (name, layout)
            assert result.strides == expected.strides, (name, layout)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("pair", ["dd", "hl", "Ih", "?d", "bb", "FF"])
@pytest.mark.parametrize("shape", [(37, 200, 13), (7, 40, 9, 25), (4, 999, 3), (2001, 3, 2)])
def test_short_rows_of_planes_that_lie_apart(shape, pair):
    x, y = np.asfortranarray(numbers(pair[0], shape)), numbers(pair[1], shape, 1)
    mask = np.random.default_rng(2).random(shape) < 0.6
    operands = [(x, y), (x[::-1], y), (x[:, ::-1], y[::-1]), (x[..., ::-1], y[..., :1])]
    operands += [(x, y[:1]), (x[:, :1], y), (x[..., :1], y), (x, x.copy("C")), (x, y[0, 0, 0, ...])]
    for name in "add", "not_equal", "multiply", "logical_xor":
        ours, theirs = getattr(nc, name), getattr(np, name)
        for a, b in operands:
            expected, out = theirs(a, b), np.zeros_like(theirs(a, b), order="C")
            for one, other in ((a, b), (b, a)):
                assert same_bits(ours(one, other, out=out), expected)
            for where in (mask, np.asfortranarray(mask), mask[:1]):
                expected, out = np.ones((2, *shape), expected.dtype)
                theirs(a, b, out=expected, where=where)
                assert same_bits(ours(a, b, out=out, where=where), expected)


def test_dtype_of_each_call():
    """What NumPy answered for one `dtype=` is kept, and is not taken for the answer for another."""
    x, y = numbers("i", SHAPE), numbers("h", SHAPE, 1)
    dtypes = "d", "f", np.float32, float, np.dtype("f"), np.dtype(">f8"), "l", "float64", "e"
    for name, inputs in (("add", (x, y)), ("add", (y, x)), ("sqrt", (y * y,)), ("add", (y, y))):
        for dtype in (*dtypes, *dtypes[::-1]):
            results = []
            for of in np, nc:
                try:
                    with np.errstate(all="ignore"):
                        results.append(getattr(of, name)(*inputs, dtype=dtype))
                except TypeError as error:
                    results.append(np.array(str(error)))
            assert results[0].dtype == results[1].dtype, (name, dtype)
            assert same_bits(*results) or str(results[0]) == str(results[1]), (name, dtype)


@pytest.mark.parametrize("threads", [1, 2])
def test_calls_are_ours(threads):
    x = np.arange(30_000)
    cases = (
        lambda of: of.add(x.astype("f"), x.astype("d")),
        lambda of: of.multiply(x, 0.5),
        lambda of: of.multiply(0.5, x),
        lambda of: of.subtract(x, np.float64(0.5)),
        lambda of: of.add(x.astype("i2"), np.array(3, "i4")),
        lambda of: of.add(x > 5, 3),
        lambda of: of.add(x, False),
        lambda of: of.multiply(x.astype("f"), True),
        lambda of: of.add(x.astype("f"), np.True_),
        lambda of: of.add(x.astype("i2"), np.int8(3)),
        lambda of: of.subtract(x.astype("i1"), x.astype("d").reshape(3, -1)[:, None, :1]),
        lambda of: of.sqrt(x.astype("i")),
        lambda of: of.add(x.reshape(100, 300) * 0.5, x.astype("f")[:600:2]),
        lambda of: of.arctan2(x, x.astype("f")),
    )
    for number, case in enumerate(cases):
        before = sum(_core.short_calls())
        with nc.config(threads=threads):
            assert same_bits(case(nc), case(np)), number
        assert sum(_core.short_calls()) == before + 1, number


def test_each_rule_of_casting_has_its_loop():
    """The latest one is kept."""
    x, out = np.arange(30_000.0), np.zeros(30_000, "i")
    for keywords in ({"out": out}, {"dtype": "i"}, {"dtype": "d"}, {}):
        for casting in ("unsafe", "same_kind", "safe", "unsafe", "equiv", "unsafe", "no"):
            results = []
            for of in (np, nc):
                try:
                    results.append(of.add(x, x, casting=casting, **keywords).copy())
                except TypeError as error:
                    results.append(str(error))
            assert np.array_equal(*results), (casting, keywords)


def test_python_bools():
    x = np.arange(30_000) % 3 == 0
    for value in (False, True):
        for name in ("logical_or", "logical_and", "add", "multiply", "equal", "less"):
            assert same_bits(getattr(nc, name)(x, value), getattr(np, name)(x, value))
            assert same_bits(getattr(nc, name)(value, x), getattr(np, name)(value, x))


def ranged():
    return _core.short_calls()[2]


def test_what_is_left_to_numpy():
    x = np.arange(30_000)
    before = over_axes(), ranged()
    for case in (
        lambda of: of.add(x[:512], 0.5, casting="safe"),
        lambda of: of.add(x[:5000], 0.5, dtype="D", order="F"),
        lambda of: of.hypot(x[:100, None] * 0.5, x[:50]),
        lambda of: of.multiply(x * 1.0, x[:1] / 3, dtype="f"),  # NumPy casts it as a whole
        lambda of: of.add(x, x, casting="no"),
        lambda of: of.add(x.astype("D"), x, casting="unsafe", dtype="d"),
    ):
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always")
            result = case(nc)
        with warnings.catch_warnings(record=True) as theirs:
            warnings.simplefilter("always")
            assert same_bits(result, case(np))
        assert [str(w.message) for w in ours] == [str(w.message) for w in theirs]
    assert (over_axes(), ranged()) == before
    for number in (300, -1, 2**70):
        with pytest.raises(OverflowError):
            nc.add(x.astype("u1"), number)


@pytest.mark.parametrize("name", ["add", "less", "maximum", "divide", "logical_and"])
@pytest.mark.parametrize("n", [1, 2, 17, 100, 513, 1000, 4099, 8192])
def test_calls_that_fit_the_buffer_of_numpy(n, name):
    ours, theirs = getattr(nc, name), getattr(np, name)
    for pair in PAIRS:
        a, b = numbers(pair[0], n), numbers(pair[1], n, 1)
        before = over_axes()
        with np.errstate(all="ignore"):
            assert same_bits(ours(a, b), theirs(a, b)), pair
            assert same_bits(ours(b, a), theirs(b, a)), pair
        assert name != "add" or over_axes() == before + 2, pair


def short_operands(n):
    """Of two dtypes, with the layouts' names."""
    for pair in PAIRS:
        a, b = numbers(pair[0], n), numbers(pair[1], n, 1)
        yield "lines", a, b
        yield "lines", a[:, None], b.reshape(-1, 1)
        yield "lines", a, b[-1]
        yield "lines", np.repeat(a, 2)[::2], b
        yield "reversed", a[::-1], b
        yield "reversed", a[::-1], b[::-1]
        yield "matrices", np.repeat(a, 3).reshape(n, 3).T, np.repeat(b, 3).reshape(3, n)
        yield "matrices", a[:, None], b[:2]
        yield "in one", np.repeat(a, 3).reshape(n, 3)[:, 1], b[..., None][:, 0]


@pytest.mark.parametrize("name", ["add", "less", "maximum", "hypot", "logical_and", "floor_divide"])
@pytest.mark.parametrize("n", [1, 2, 5, 33])
def test_short_calls_of_two_dtypes(n, name):
    """Loops of NumPy whose results are not exact get lines, contiguous or converted."""
    ours, theirs = getattr(nc, name), getattr(np, name)
    for layout, a, b in short_operands(n):
        before = sum(_core.short_calls())
        with np.errstate(all="ignore"):
            result, expected = ours(a, b), theirs(a, b)
            assert same_bits(result, expected), (layout, a.dtype, b.dtype)
            assert result.strides == expected.strides, (layout, a.dtype, b.dtype)
            if name == "add":
                assert sum(_core.short_calls()) == before + 1, (layout, a.dtype, b.dtype)
            if a.shape == expected.shape and np.can_cast(expected, a.dtype, "same_kind"):
                in_place, as_numpys = a.copy(), a.copy()
                assert ours(in_place, b, out=in_place) is in_place
                theirs(as_numpys, b, out=as_numpys)
                assert same_bits(in_place, as_numpys), (layout, a.dtype, b.dtype)


@pytest.mark.parametrize("name", ["exp", "log2", "sin", "sqrt", "hypot", "arctan2", "power"])
@pytest.mark.parametrize("shape", [(17,), (4, 6), (16, 16), (3, 5, 7), (1, 9, 2), (2, 3, 4, 5)])
def test_few_elements_that_lie_apart(name, shape):
    """Those that are cast become one line, as in the buffers that NumPy hands to its loops."""
    ours, theirs = getattr(nc, name), getattr(np, name)
    for pair in ("Hh", "ih", "id", "li", "?b", "Hf"):
        a, b = (np.abs(numbers(dtype, shape, i)) for i, dtype in enumerate(pair))
        wide = np.repeat(a, 3, -1)
        layouts = a, wide[..., 1::3], wide[..., : shape[-1]], np.asfortranarray(a), a[::-1], a.T
        for x in layouts + (np.broadcast_to(a[:1], shape), a[..., ::-1].swapaxes(0, -1)):
            inputs = (x, b.reshape(x.shape), 2.5)[: theirs.nin]
            for operands in (inputs, inputs[::-1], (x, x.copy())[: theirs.nin]):
                before = over_axes()
                with np.errstate(all="ignore"):
                    result, expected = ours(*operands), theirs(*operands)
                assert same_bits(result, expected), (pair, x.strides)
                assert result.strides == expected.strides, (pair, x.strides)
                if x is layouts[2] and theirs.nin == 1 and len(shape) < 4 and pair[0] != "?":
                    assert over_axes() > before


@pytest.mark.parametrize("name", ["multiply", "divide", "power", "equal", "maximum", "fmin"])
@pytest.mark.parametrize("pair", ["hF", "lD", "fD", "Id", "Hf"])
@pytest.mark.parametrize("policy", [None, "threads_always"])
def test_few_elements_of_one_line(name, pair, policy, request):
    """Inputs that are not cast lie as they do for NumPy: its loops round products of complex ones
    otherwise, and take another one of two zeros or NaNs, where elements lie apart."""
    if policy is not None:
        request.getfixturevalue(policy)
    rng = np.random.default_rng(ord(pair[0]))
    ours, theirs = getattr(nc, name), getattr(np, name)
    for n in 2, 7, 32, 101, 256, 500:
        a = rng.integers(0, 3, n).astype(pair[0])
        parts = rng.choice([0.0, -0.0, 1.25, -0.3, np.nan, -np.nan], (2, 5 * n))
        parts[:, rng.random(5 * n) < 0.5] += rng.normal()
        b = (parts[0] + 1j * parts[1] if pair[1] in "FD" else parts[0]).astype(pair[1])
        for step in (2, 5, -1, -3):
            x, y = a, b[::step][:n]
            for inputs in ((x, y), (y, x), (x[::-1], y), (x[:, None], y[:, None])):
                before = sum(_core.short_calls())
                with np.errstate(all="ignore"):
                    result, expected = ours(*inputs), theirs(*inputs)
                assert same_bits(result, expected), (n, step)
                assert result.strides == expected.strides, (n, step)
                assert policy is not None or sum(_core.short_calls()) == before + 1, (n, step)


@pytest.mark.parametrize(
    "name", ["add", "divide", "power", "negative", "sqrt", "ldexp", "less", "fmod"]
)
@pytest.mark.parametrize("kind", list("?hILefdF"))
def test_dtype_of_short_calls(name, kind):
    """What the latest call asked for is kept: others ask for something else."""
    rng = np.random.default_rng(ord(kind))
    ours, theirs = getattr(nc, name), getattr(np, name)
    x = (rng.integers(0, 50, (6, 40)) > rng.integers(0, 50)).astype(kind)
    before = sum(_core.short_calls())
    for asked in (*"dfDeld", np.float64, np.dtype("F"), float, None, ">f8", "no such dtype", str):
        for a in (x, x[::-1, ::2], x.T, x[0], x[:1, :1]):
            inputs = (a, 3) if theirs.nin == 2 and a is x else (a,) * theirs.nin
            results = []
            for f in (ours, theirs):
                try:
                    with np.errstate(all="ignore"):
                        results.append(f(*inputs, dtype=asked))
                except TypeError as error:
                    results.append(str(error))
            assert type(results[0]) is type(results[1]), (asked, results)
            if isinstance(results[0], str):
                assert results[0] == results[1]
            else:
                assert same_bits(*results), (asked, a.strides)
                assert results[0].strides == results[1].strides, (asked, a.strides)
    if name in ("add", "negative") and kind != "?":
        assert sum(_core.short_calls()) > before + 10


def test_calls_that_were_left_to_numpy():
    """They are left to it at once, others of the same shape are not."""
    x, y = np.ones((4, 12)), np.ones((4, 6), "i")
    for columns, is_ours in ((slice(6), False), (slice(0, None, 2), True)):
        for _ in range(3):
            before = sum(_core.short_calls())
            assert same_bits(nc.fmin(x[:, columns], y), np.fmin(x[:, columns], y))
            assert sum(_core.short_calls()) == before + is_ours


@pytest.mark.parametrize("name", ["signbit", "isnan", "isinf", "isfinite"])
@pytest.mark.parametrize("dtype", "hHiI")
def test_loops_that_leave_out_elements(name, dtype):
    """NumPy's loop, of an output that lies apart, which NumPy makes none of here."""
    rows = numbers(dtype, (3, 2, 16, 12))[:, ::-1]
    for x in (rows[..., 0:6:3], np.asfortranarray(rows[..., :2]), rows[..., 1::5].swapaxes(2, 3)):
        expected = getattr(np, name)(x)
        for garbage in (False, True):
            np.full(x.shape, garbage)  # what the next new array of this size holds
            assert same_bits(getattr(nc, name)(x), expected), x.strides


def test_scalars_of_two_dtypes_are_numpys():
    """A result without axes is a scalar."""
    before, out = over_axes(), np.zeros(3)
    for a, b in ((1, np.float32(2)), (np.array(1), np.array(2.5)), (2.5, np.array(True))):
        assert same_bits(nc.add(a, b), np.add(a, b))
        assert type(nc.add(a, b)) is type(np.add(a, b))
        assert nc.add(a, b, out=out) is out
        assert np.array_equal(out, [a + b] * 3)
    assert over_axes() == before


@pytest.mark.parametrize("n", [1, 5, 512, 513, 2048, 2049, 8192, 8193])
def test_signaling_nans_are_reported_as_by_numpy(n):
    """NumPy casts arrays of one axis that fit its buffer first, and says "in cast"."""
    signaling = np.full(n, 0x7FA00000, "u4").view("f")
    quiet, half = np.full(n, np.nan, "f"), np.full(n, 0x7D00, "u2").view("e")
    ones = np.ones(n)
    matrices = [np.ones((3, n)), np.ones((n, 3)).T]
    calls = [(a, b) for a in (signaling, quiet, half) for b in (ones, *matrices)]
    calls += [(a[:1], b) for a, b in calls] + [(a[0, ...], ones) for a, _ in calls]
    calls += [(np.repeat(signaling, 2)[::2], ones), (signaling[::-1], ones)]
    calls += [(np.repeat(signaling, 2).view("F"), ones)]
    rows = signaling, quiet
    calls += [(np.ones((40, n)) + 0j, np.repeat(row, 4).view("F")[::2]) for row in rows]
    calls += [(np.ones((40, n)), np.repeat(row, 2)[::2]) for row in rows]
    calls += [(signaling.reshape(-1, 1), ones[:, None])]
    for name in "add", "less", "multiply", "copysign", "hypot":
        for number, operands in enumerate(calls):
            if name in ("copysign", "hypot") and any(map(np.iscomplexobj, operands)):
                continue
            said = []
            for of in nc, np:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    getattr(of, name)(*operands)
                said.append([str(w.message) for w in caught])
            assert said[0] == said[1], (name, number)


@pytest.mark.usefixtures("threads_always")
def test_keywords():
    x, y = np.arange(30_000.0).reshape(100, 300), np.arange(30_000).reshape(100, 300)
    m = x % 7 < 3
    before = sum(_core.short_calls()[1:3])
    cases = (
        lambda of: of.add(x, y, dtype="f"),
        lambda of: of.add(x, y.T[:1].T, order="F"),
        lambda of: of.exp(x.astype("f") / 1e5, dtype="d"),
        lambda of: of.multiply(y, 2, dtype="g", out=np.ones((100, 300), "g")),
        lambda of: of.multiply(y.astype("i"), y, out=np.ones((300, 100), "i").T),
        lambda of: of.subtract(x, y, signature="dd->d", casting="unsafe"),
        lambda of: of.add(x.astype("f"), x, out=x.astype("f")),
        lambda of: of.multiply(x, 2j),
        lambda of: of.multiply(x.astype("F"), y),
        lambda of: of.divmod(x, y + 1),
        lambda of: of.divmod(x[:, ::2], 7, out=(None, np.ones((100, 150)))),
        lambda of: of.frexp(y[::-1, ::2], out=(None, np.ones((100, 150), "l"))),
        lambda of: of.ldexp(x.T, y[:, :1].T % 5),
        lambda of: of.hypot(x[:, ::2], y[:, 1::2], where=m[:, ::2], out=np.ones((100, 150))),
        lambda of: of.modf(x, where=m, out=(np.ones(x.shape), np.ones(x.shape))),
        lambda of: of.add(x.astype(">d"), 0.5),
        lambda of: of.add(x.view("V8").astype("V9")[:, :].view(np.uint8)[:, :2400].view("d"), x),
    )
    for number, case in enumerate(cases):
        theirs, ours = case(np), case(nc)
        both = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
        for a, b in both:
            np.testing.assert_array_equal(a, b, str(number), strict=True)
            assert a.strides == b.strides, number
    assert sum(_core.short_calls()[1:3]) == before + len(cases)


def test_many_inputs():
    x = np.arange(30_000.0)
    special = pytest.importorskip("scipy.special")
    a, b, c, z = x % 3 + 1, x % 5 + 2, x % 7 + 3, x / 70_000
    for dtype in "df":
        operands = [v.astype(dtype) for v in (a, b, c)] + [z]
        assert same_bits(nc.parallel(special.hyp2f1)(*operands), special.hyp2f1(*operands))


def test_in_place():
    x, y = np.arange(30_000.0), np.arange(30_000)
    a, b = x.copy(), x.copy()
    before = over_axes()
    nc.add(a, y, out=a)
    assert over_axes() == before + 1
    assert same_bits(a, np.add(b, y, out=b))
    # An input that is converted, and lies where the output does.
    for shift in (0, 8, 80):
        a, b = np.arange(40_000.0), np.arange(40_000.0)
        views = (of[: 30_000 + shift].view("l")[shift:] for of in (a, b))
        nc.add(next(views), a[:30_000], out=a[:30_000])
        np.add(next(views), b[:30_000], out=b[:30_000])
        assert same_bits(a, b)
    a, b = np.arange(30_000, dtype="q"), np.arange(30_000, dtype="q")
    with pytest.raises(FloatingPointError), np.errstate(all="raise"):
        nc.parallel(np.remainder)(a, b > 5, out=a.view("l"))
    assert same_bits(a, b)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize(
    "name", ["hypot", "power", "float_power", "logaddexp", "sqrt", "exp", "cbrt"]
)
def test_loops_of_numpy(name):
    theirs = getattr(np, name)
    ours = nc.parallel(theirs)
    for dtypes in ("fd", "id", "if", "eb", "el", "?d"):
        operands = [numbers(d, 50_001, i) for i, d in enumerate(dtypes)][: theirs.nin]
        with np.errstate(all="ignore"):
            assert same_bits(ours(*operands), theirs(*operands))


def test_exceptions_of_loops():
    x, y = np.full(50_000, 2), np.zeros(50_000, "i")
    y[33_333] = -1
    with pytest.raises(ValueError, match="negative integer powers"):
        nc.parallel(np.power)(x, y)
    by_zero = pytest.raises(FloatingPointError, match="divide by zero encountered in divide")
    with by_zero, np.errstate(all="raise"):
        nc.divide(x, y.astype("f"))


def test_new_loops_change_nothing():
    x = np.arange(20_000)
    with np.errstate(all="ignore"):
        assert same_bits(nc.add(x, 0.5), x + 0.5)
        import numpy._core._rational_tests  # noqa: F401

        assert same_bits(nc.add(x, 0.5), x + 0.5)


def test_small_stacks():
    x, y = np.arange(60_000).reshape(300, 200), np.arange(60_000.0).reshape(200, 300).T
    results = in_thread_of_small_stack(
        lambda: (nc.add(x, y), nc.divide(x, 0.5), nc.less(x, y[0, 0]))
    )
    for a, b in zip(results, (x + y, x / 0.5, x < y[0, 0]), strict=True):
        assert same_bits(a, b)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("pair", "BI Bd fd lh qf hB bH Ql ?i di".split())
@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_inputs_of_logical_operations_become_bools(name, pair):
    ours, theirs = getattr(nc, name), getattr(np, name)
    x, y = ((numbers("l", SHAPE, seed) % 3).astype(d) for seed, d in enumerate(pair))
    if pair[1] in "df":
        y[::3, ::5], y[1::3, ::7] = np.nan, -0.0
    for label, a, b in layouts(x, y):
        assert same_bits(ours(a, b), theirs(a, b)), label
    for b in (y.ravel(), np.broadcast_to(y[0, :1], x.size), y.repeat(3)[::3], y.ravel()[::-1]):
        before, expected = over_axes(), theirs(x.ravel(), b)
        assert same_bits(ours(x.ravel(), b), expected)
        assert over_axes() == before + 1


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("pair", ["lL", "Ll", "qQ", "Lq", "iL", "Lb"])
@pytest.mark.parametrize(
    "name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
)
def test_comparisons_of_both_signs(name, pair, threads, request):
    """For which NumPy has loops of two dtypes."""
    if threads > 1:
        request.getfixturevalue("threads_always")
    ours, theirs = getattr(nc, name), getattr(np, name)
    rng = np.random.default_rng(3)
    for shape in ((1,), (1, 1), (17,), (5, 7), (31, 47), (40, 300)):
        x, y = (
            np.array([np.iinfo(kind).min, np.iinfo(kind).max, 0, 1, 2], kind)[
                rng.integers(5, size=shape)
            ]
            for kind in pair
        )
        before, calls = sum(_core.short_calls()), 0
        strided = np.repeat(y, 2, -1)[..., ::2]
        with nc.config(threads=threads):
            for b in (y, y.copy("F"), strided, y[::-1], y[:1], y.ravel()[0], y[..., -1:]):
                expected, out = theirs(x, b), np.zeros(shape, "?", "F")
                assert same_bits(ours(x, b), expected)
                assert same_bits(ours(x, b, out=out), expected)
                calls += 2
        assert sum(_core.short_calls()) == before + calls, shape
        mask = rng.random(shape) < 0.5
        expected, out = np.zeros((2, *shape), "l")
        theirs(x, y, out=expected, where=mask)
        assert same_bits(ours(x, y, out=out, where=mask), expected)


@pytest.mark.parametrize("policy", [None, "threads_always"])
@pytest.mark.parametrize("kinds", ["ei", "fi", "fl", "di", "dl", "hi", "fh", "db", "?l"])
def test_ldexp(kinds, policy, request):
    """Its loops have inputs of two dtypes."""
    if policy is not None:
        request.getfixturevalue(policy)
    rng = np.random.default_rng(5)
    for shape in ((1,), (1, 1), (13,), (4, 9), (3, 5, 7), (60, 200)):
        x = rng.uniform(-3, 3, shape).astype(kinds[0])
        y = rng.integers(-8, 8, shape).astype(kinds[1])
        strided = np.repeat(y, 2, -1)[..., ::2]
        before = sum(_core.short_calls())
        for b in (y, y.copy("F"), strided, y[::-1], y[:1], y.ravel()[0], 3):
            expected = np.ldexp(x, b)
            result = nc.ldexp(x, b)
            assert same_bits(result, expected)
            assert same_bits(nc.ldexp(x, b, out=np.zeros_like(expected)), expected)
        assert sum(_core.short_calls()) > before
        with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="ldexp"):
            nc.ldexp(x.astype("d") + 4, np.full(shape, 2000))


# ---- masks ----


def masks(shape):
    rng = np.random.default_rng(7)
    random = rng.random(shape)
    yield "half", random < 0.5
    yield "dense", random < 0.97
    yield "sparse", random < 0.02
    yield "all", random < 2
    yield "none", random > 2
    yield "runs", np.repeat(random.ravel()[::100] < 0.5, 100)[: random.size].reshape(shape)
    yield "columns", np.asfortranarray(random < 0.5)
    for step in (2, 3):
        yield f"each {step}", (rng.random((*shape, step)) < 0.5).reshape(shape[0], -1)[:, ::step]
    yield "reversed", (random < 0.9)[::-1, ::-1]
    yield "a row", random[:1] < 0.5
    yield "a column", random[:, :1] < 0.5
    yield "one", np.array(True)
    yield "other bytes", (random * 4).astype("u1").view("?")


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("pair", "ff dd bb ee FF ll fd id ef gg".split())
@pytest.mark.parametrize("shape", [(300, 71), (37, 261)])
@pytest.mark.parametrize("name", ["add", "divide", "less"])
def test_masks(name, shape, pair):
    ours, theirs = getattr(nc, name), getattr(np, name)
    x, y = numbers(pair[0], shape), numbers(pair[1], shape, 1)
    for label, mask in masks(shape):
        others = np.asfortranarray(x), x.repeat(3, 1)[:, ::3]
        for a, b in (*((x, y) for x in (x, *others)), (x, y[:1]), (x[:, :1], y), (x, y[0, 0])):
            with np.errstate(all="ignore"):
                expected = np.ones_like(theirs(a, b))
                result = expected.copy()
                theirs(a, b, out=expected, where=mask)
                assert ours(a, b, out=result, where=mask) is result
            np.testing.assert_array_equal(result, expected, label)


@pytest.mark.parametrize("threads", [1, 2])
def test_masked_calls_are_ours(threads):
    x = np.arange(30_000.0)
    mask = x % 3 == 0
    cases = (
        lambda of, out: of.add(x, x, out=out, where=mask),
        lambda of, out: of.add(x, x, out, where=mask),
        lambda of, out: of.multiply(x.astype("f"), 0.5 + x, where=mask, out=(out,)),
        lambda of, out: of.sqrt(x, where=mask, out=out),
        lambda of, out: of.add(out, x, out=out, where=mask),
    )
    for number, case in enumerate(cases):
        before = over_axes()
        result, expected = np.ones(30_000), np.ones(30_000)
        with nc.config(threads=threads):
            case(nc, result)
        case(np, expected)
        assert same_bits(result, expected), number
        assert over_axes() == before + 1, number


def test_masked_out_elements_raise_nothing():
    x, y = np.ones(30_000), np.zeros(30_000)
    with np.errstate(all="raise"):
        for share in (2, 30):  # gathered, and in runs
            y[::share] = 4
            out = nc.divide(x, y, out=np.full(30_000, 7.0), where=y != 0)
            assert out[0] == 0.25 and out[1] == 7
            y[:] = 0
        y[::2] = 4
        mask = y != 0
        mask[501] = True
        with pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
            nc.divide(x, y, out=x.copy(), where=mask)


def test_masks_that_are_left_to_numpy():
    x = np.arange(40_000.0)
    mask = x % 3 == 0
    out = np.zeros(40_000, bool)
    before = over_axes()
    for of in (nc, np):
        # A mask that is the output, an input of which the output is a part, other masks.
        m = mask.copy()
        assert same_bits(of.logical_not(m, out=m, where=m), np.zeros(40_000, bool))
        a = x.copy()
        of.add(a[:-1], 1, out=a[1:], where=mask[1:])
        assert a[3] == 3 and a[4] == 4
        assert of.less(x, 5, out=out, where=[True] * 40_000)[4]
        with pytest.raises(TypeError):
            of.add(x, 1, out=x, where=mask.view("u1"))
        with pytest.raises(ValueError):
            of.add(x, 1, out=x, where=mask[:-1])
    assert over_axes() == before


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("name", ["maximum", "fmin"])
def test_zeros_of_both_signs(name):
    theirs = getattr(np, name)
    rng = np.random.default_rng(5)
    for dtypes in ("ff", "fd", "ef"):
        x, y = (rng.choice(np.array([0.0, -0.0], d), 50_001) for d in dtypes)
        for at in range(4):
            a, b, mask = x[at:], y[at:], rng.random(50_001 - at) < 0.5
            assert same_bits(nc.parallel(theirs)(a, b), theirs(a, b))
            dtype = theirs(a, b).dtype
            result, expected = np.ones((2, a.size), dtype)
            nc.parallel(theirs)(a, b, out=result, where=mask)
            theirs(a, b, out=expected, where=mask)
            assert same_bits(result, expected)


@pytest.mark.parametrize(
    ("name", "dtype", "steps"),
    [
        ("gcd", "l", {2, -1}),
        ("logical_not", "D", {2, -1}),
        ("isnan", "f", {2}),
        ("hypot", "d", {2}),
        ("sin", "F", set()),
        ("cbrt", "e", set()),
    ],
)
@pytest.mark.parametrize("step", [2, -1])
def test_masked_rows_of_numpys_loops(name, dtype, steps, step):
    """Only exact results do not depend on how far elements are apart, nor in which direction."""
    ours, theirs = getattr(nc, name), getattr(np, name)
    operands = [numbers(dtype, (4_000,), seed)[::step] for seed in range(theirs.nin)]
    mask = np.random.default_rng(3).random(operands[0].size) < 0.6
    expected = np.ones_like(theirs(*operands))
    result, before = expected.copy(), over_axes()
    theirs(*operands, out=expected, where=mask)
    assert ours(*operands, out=result, where=mask) is result
    assert same_bits(result, expected)
    assert over_axes() - before == (step in steps)


@pytest.mark.parametrize("policy", ["threads_always", None])
@pytest.mark.parametrize("true", [0.002, 0.03, 0.5])
@pytest.mark.parametrize(("name", "dtype"), [("add", "l"), ("gcd", "l"), ("reciprocal", "d")])
def test_masks_across_short_rows(name, dtype, true, policy, request):
    """Lines of sparse ones are searched, whatever lies along them."""
    if policy is not None:
        request.getfixturevalue(policy)
    ours, theirs = getattr(nc, name), getattr(np, name)
    rng = np.random.default_rng(3)
    for shape in (4, 1500), (2, 300, 3), (20, 400):
        operands = [np.asfortranarray(numbers(dtype, shape, i)) for i in range(theirs.nin)]
        mask = rng.random(shape) < true
        expected = np.ones(shape, dtype, order="F")
        result = expected.copy(order="F")
        with np.errstate(all="ignore"):
            theirs(*operands, out=expected, where=mask)
            ours(*operands, out=result, where=mask)
        assert same_bits(result, expected)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("pair", "ll HI Bb dd ff ?? ed".split())
@pytest.mark.parametrize("name", ["maximum", "less", "logical_xor", "floor_divide", "hypot"])
def test_masked_rows_of_numpys_loops_in_several_axes(name, pair):
    ours, theirs = getattr(nc, name), getattr(np, name)
    shape = 150, 9, 7
    x, y = numbers(pair[0], shape), numbers(pair[1], shape, 1)
    mask = np.random.default_rng(3).random(shape) < 0.6
    for a, b in ((x, y), (np.asfortranarray(x), y), (x, y[:1]), (x[:, :1], y[::-1])):
        for where in (mask, np.asfortranarray(mask), mask[:, ::-1], mask[:, :, :1]):
            with np.errstate(all="ignore"):
                expected = np.ones_like(theirs(a, b))
                result, before = expected.copy(), over_axes()
                theirs(a, b, out=expected, where=where)
                assert ours(a, b, out=result, where=where) is result
            assert same_bits(result, expected)
            assert over_axes() > before or name != "less"


@pytest.mark.parametrize("policy", ["threads_always", None])
@pytest.mark.parametrize("pair", "b? hi Hb Ih".split())
@pytest.mark.parametrize(
    ("name", "is_exact"),
    [("maximum", True), ("less", True), ("bitwise_xor", True), ("hypot", False)],
)
def test_converted_operands_of_numpys_loops_in_several_axes(name, is_exact, pair, policy, request):
    """Loops of inexact results get them forward, but not halves, nor beside what is repeated."""
    if policy is not None:
        request.getfixturevalue(policy)
    ours, theirs = getattr(nc, name), getattr(np, name)
    shape = 150, 9, 7
    x, y = numbers(pair[0], shape), numbers(pair[1], shape, 1)
    for a, b in ((x, y[::-1]), (np.asfortranarray(x), y), (x[::2], y[:75]), (x, y[:, :1])):
        expected = theirs(a, b)
        for out in (None, np.ones_like(expected)):
            before, result = over_axes(), ours(a, b, out=out)
            assert same_bits(result, expected)
            assert result.strides == (expected if out is None else out).strides
            is_forward = expected.dtype != np.float16 and a.shape == b.shape
            assert (over_axes() > before) == (is_exact or is_forward)


@pytest.mark.parametrize("policy", ["threads_always", None])
@pytest.mark.parametrize("shape", [(7, 2, 5), (150, 9, 7)])
@pytest.mark.parametrize("dtype", "?Bhi")
@pytest.mark.parametrize("name", ["exp", "tanh", "sqrt", "cbrt", "isnan", "spacing"])
def test_casts_to_loops_of_one_input(name, dtype, shape, policy, request):
    """Which get the same elements however often NumPy casts what is repeated."""
    if policy is not None:
        request.getfixturevalue(policy)
    ours, theirs = getattr(nc, name), getattr(np, name)
    x = numbers(dtype, shape)
    wide = [np.broadcast_to(part, shape) for part in (x[:1], x[:, :1], x[..., :1], x[0, 0, 0])]
    for a in (x[::-1], x.T, x[:, ::-1, ::2], *wide, np.broadcast_to(x, (3, *shape))):
        with np.errstate(all="ignore"):
            expected, result = theirs(a), ours(a)
            assert same_bits(result, expected)
            assert result.strides == expected.strides
            out = np.ones_like(expected, order="F")
            assert same_bits(ours(a, out=out), expected)


def test_masks_on_small_stacks():
    x, mask = np.arange(60_000), np.arange(60_000) % 3 == 0
    out, expected = np.zeros((2, 60_000))
    (result,) = in_thread_of_small_stack(lambda: [nc.multiply(x, 0.5, out=out, where=mask)])
    assert same_bits(result, np.multiply(x, 0.5, out=expected, where=mask))


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize(
    ("name", "pair"),
    [("gcd", "?I"), ("gcd", "bl")]
    + [
        (name, pair)
        for name in ("remainder", "power", "maximum", "copysign", "hypot")
        for pair in ("?I", "bl", "hd")
    ],
)
def test_loops_read_one_input_as_it_lies(name, pair):
    """In one line, while the other one is converted in rows."""
    ours, theirs = getattr(nc, name), getattr(np, name)
    for shape in [(70, 53), (300, 7), (9, 30, 41)]:
        a = abs(numbers(pair[0], shape))[::-1]
        b = abs(numbers(pair[1], (*shape[:-1], 3 * shape[-1])))
        for part in (b[..., ::3], b[..., 1 : 1 + shape[-1]], b[::-1, ..., ::-3]):
            with np.errstate(all="ignore"):
                assert same_bits(ours(a, part), theirs(a, part))
                assert same_bits(ours(part, a), theirs(part, a))


@pytest.mark.parametrize("name", ["exp", "log2", "cbrt", "arctan2", "hypot", "power"])
@pytest.mark.parametrize("pair", ["ef", "qd", "Hf", "fd", "bd"])
@pytest.mark.parametrize("n", [1, 7, 40, 9001])
def test_lines_that_run_backwards(name, pair, n):
    """Some of NumPy's loops compute them otherwise. Its iterator turns them if all operands run
    backwards, as they are after inputs were cast as a whole."""
    ours, theirs = getattr(nc, name), getattr(np, name)
    rng = np.random.default_rng(n)
    a, b = (rng.integers(1, 50, 3 * n).astype(dtype) for dtype in pair)
    for steps in itertools.product((1, -1, -3), repeat=3):
        x, y = a[:: steps[0]][:n], b[:: steps[1]][:n]
        for inputs in ((x, y), (y, x), (x, y[:1]))[: theirs.nin + 1]:
            operands = inputs[: theirs.nin]
            with np.errstate(all="ignore"):
                expected = theirs(*operands)
                assert same_bits(ours(*operands), expected), steps
                for dtype in {expected.dtype.char, "D"}:
                    outs = [np.zeros(3 * n, dtype)[:: steps[2]][:n] for _ in range(2)]
                    theirs(*operands, out=outs[0])
                    ours(*operands, out=outs[1])
                    assert same_bits(*outs), (steps, dtype)


@pytest.mark.parametrize("shape", [(1,), (1, 1), (1, 1, 1)])
@pytest.mark.parametrize("pair", ["fb", "bf", "eb", "fh", "dB"])
def test_single_elements(shape, pair):
    """NumPy's iterator has no steps for them: its loops then compute some of them otherwise."""
    rng = np.random.default_rng(len(shape))
    bases, exponents = rng.random((300, 1)) * 3, rng.integers(2, 9, (300, 1))
    for base, exponent in zip(bases.astype(pair[0]), exponents.astype(pair[1]), strict=True):
        x, y = base.reshape(shape), exponent.reshape(shape)
        result, expected = nc.power(x, y), np.power(x, y)
        assert same_bits(result, expected), (base, exponent)
        for keywords in {"out": result}, {"order": "F"}, {"out": result, "where": y > 0}:
            expected = np.power(x, y, **keywords).copy()
            assert same_bits(nc.power(x, y, **keywords), expected), (base, exponent, keywords)
