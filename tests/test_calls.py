"""The short way of a call: who takes it, who must not, and that nobody can tell the difference."""

import contextlib
import itertools
import pickle
import re
import warnings

import numpy as np
import pytest
from checks import assert_references_stay, assert_same, same_bits

import numc_ufuncs as nc

DTYPES = "?bBhHiIlLefdgFDG"
KERNEL_DTYPES = "bBhHiIlLfd"


@pytest.fixture
def short_calls():
    """A function: how many calls took the short way since the last call of it, by kind."""
    for ufunc in nc._ufuncs.own.values():
        ufunc(np.ones((1, 1)), np.ones((1, 1)))  # adopts the loops that imports have registered
    seen = nc._core.short_calls()

    def since():
        nonlocal seen
        before, seen = seen, nc._core.short_calls()
        return tuple(b - a for a, b in zip(before, seen, strict=True))

    return since


def numbers(rng, shape, dtype):
    if np.dtype(dtype).kind in "fc":
        return (rng.standard_normal(shape) * 4).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


# ---- what takes it ----

ONE_LOOP = {
    "C": lambda a: (a, a[::-1].copy()),
    "F": lambda a: (a.T, a[::-1].copy().T),
    "scalar": lambda a: (a, a[2, 3]),
    "scalar first": lambda a: (a[2, 3], a),
    "0-d array": lambda a: (a, np.array(a[1, 1])),
    "strided": lambda a: (a.ravel()[::3], a.ravel()[::-3]),
    "size 1": lambda a: (a[:1, 0], a[1:2, 1]),
    "one row": lambda a: (a[:1], a[:1]),
}


@pytest.mark.parametrize("layout", ONE_LOOP)
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_loop(dtype, layout, short_calls):
    x, y = ONE_LOOP[layout](numbers(np.random.default_rng(1), (33, 45), dtype))
    assert_same(nc.add(x, y), np.add(x, y))
    assert_same(nc.less(x, y), np.less(x, y))
    assert short_calls() == (2, 0, 0, 0, 0)


AXES = {
    "row": lambda a: (a, a[3]),
    "column": lambda a: (a[:, :1], a),
    "both": lambda a: (a[:, :1], a[:1]),
    "rows": lambda a: (a[::2], a[1::2]),
    "columns": lambda a: (a[:, ::2], a[:, 1::2]),
    "turned": lambda a: (a[::-1, ::-1], a[:, ::-1]),
    "across": lambda a: (a, np.asfortranarray(a[::-1])),
    "across both": lambda a: (a[:, :38].T, a[:, 2:].T.copy()),
    "short rows": lambda a: (a.reshape(-1, 3), a[0, :3]),
    "short rows, column": lambda a: (a.reshape(-1, 3), a.reshape(-1, 3)[:, :1]),
    "3 axes": lambda a: (a.reshape(6, 10, 40).transpose(2, 0, 1), a[:10].T.reshape(40, 1, 10)),
    "new axis": lambda a: (a.reshape(60, 1, 40), a[:7].reshape(7, 40)),
}


@pytest.mark.parametrize("layout", AXES)
@pytest.mark.parametrize("dtype", KERNEL_DTYPES)
@pytest.mark.parametrize("threads", ["one thread", "three threads"])
def test_axes(dtype, layout, threads, short_calls, request):
    if threads == "three threads":
        request.getfixturevalue("threads_always")
    x, y = AXES[layout](numbers(np.random.default_rng(2), (60, 40), dtype))
    for name in ("add", "subtract", "divide" if dtype in "fd" else "multiply"):
        ours, theirs = getattr(nc, name), getattr(np, name)
        assert_same(ours(x, y), theirs(x, y))
    assert short_calls()[1] == 3 or not has_kernel("multiply", dtype)


def random_view(rng, shape, dtype):
    """An array that has that shape, or gets it when it is broadcast, its axes in any order."""
    kept = [1 if rng.random() < 0.2 else n for n in shape][int(rng.integers(2)) :]
    order = rng.permutation(len(kept))
    steps = rng.choice([1, 1, 2, -1], len(kept))
    whole = numbers(rng, [kept[i] * abs(steps[i]) for i in order], dtype)
    return whole.transpose(np.argsort(order))[tuple(slice(None, None, step) for step in steps)]


@pytest.mark.parametrize("order", "KCFA")
@pytest.mark.parametrize("pair", ["dd", "lf", "Bh"])
def test_axes_in_numpys_order(order, pair, short_calls):
    """New outputs are laid out as NumPy's; operands that do not fit get its error."""
    rng = np.random.default_rng(ord(order))
    computed = 0
    for _ in range(300 if order == "K" else 40):
        shape = rng.integers(1, 5, rng.integers(1, 6))
        if order != "K":  # of few elements, NumPy is as fast with other keywords
            shape[rng.integers(len(shape))] *= 4000
        x, y = (random_view(rng, shape, dtype) for dtype in pair)
        keywords = {} if order == "K" else {"order": order}
        assert_same(nc.add(x, y, **keywords), np.add(x, y, **keywords))
        computed += short_calls()[1]
        out = np.empty(shape, "d").transpose(rng.permutation(len(shape)))[..., ::-1]
        try:
            expected = np.add(x, y, out=out, **keywords).copy()
        except ValueError as error:
            with pytest.raises(ValueError, match=re.escape(str(error))):
                nc.add(x, y, out=out, **keywords)
        else:
            assert same_bits(nc.add(x, y, out=out, **keywords), expected)
    assert computed > 10


@pytest.mark.parametrize("extents", [(2**40, 2**40), (2**31, 2**31), (2**59, 2)])
def test_outputs_that_no_memory_holds(extents):
    for dtype in "db":
        x = np.broadcast_to(np.ones(1, dtype), (extents[0], 1))
        y = np.broadcast_to(np.ones(1, dtype), (1, extents[1]))
        with pytest.raises((ValueError, MemoryError)) as theirs:
            np.add(x, y)
        with pytest.raises(theirs.type, match=re.escape(str(theirs.value))):
            nc.add(x, y)


def has_kernel(name, dtype):
    a = np.ones((2, 2), dtype)
    before = nc._core.short_calls()[1]
    getattr(nc, name)(a, a[0])
    return nc._core.short_calls()[1] > before


@pytest.mark.parametrize("shape", [(129, 257), (64, 1000), (3, 70, 65)])
@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_operands_across_the_output(shape, itemsize, threads_always, regions):
    rng = np.random.default_rng(3)
    bits = np.dtype(f"u{itemsize}")
    a = rng.integers(0, np.iinfo(bits).max, shape, dtype=bits)
    for axes in itertools.permutations(range(len(shape))):
        b = a.transpose(axes).copy().transpose(np.argsort(axes))
        assert_same(nc.add(a, b), np.add(a, b))
        out = np.empty(shape[::-1], bits).T
        assert nc.subtract(b, a, out=out) is out
        np.testing.assert_array_equal(out, np.subtract(b, a))
    assert regions() > 0


@pytest.mark.parametrize("dtypes", ["HH", "dd", "ff", "Hd", "bi", "ii"])
@pytest.mark.parametrize("name", ["multiply", "divide"])
def test_rows_that_repeat(name, dtypes):
    """An operand does not vary within a row, or in several of them."""
    rng = np.random.default_rng(9)
    ours, theirs = getattr(nc, name), getattr(np, name)
    for shape in ((13, 22), (3, 1, 40), (70, 5)):
        a, b = (numbers(rng, shape, dtype) + 1 for dtype in dtypes)
        for axis in range(len(shape)):
            repeated = np.broadcast_to(np.take(a, [0], axis), shape)
            for left, right in ((repeated, b), (a, repeated), (repeated, repeated)):
                assert_same(ours.outer(left, right), theirs.outer(left, right))


@pytest.mark.parametrize("name", ["exp", "hypot", "maximum", "less", "power", "logical_and"])
def test_loops_of_numpy_get_numpys_steps(name, threads_always, short_calls, regions):
    ours, theirs = getattr(nc, name), getattr(np, name)
    rng = np.random.default_rng(4)
    a = rng.random((150, 211)) * 2
    others = (a[7], a[:, 5:6], np.asfortranarray(a), a[::-1, ::-1])
    for view in (np.s_[:, ::-2], np.s_[::-1, ::-1], np.s_[:, 1:]):
        for other in others:
            args = (a[view], np.broadcast_to(other, a.shape)[view])[: theirs.nin]
            assert_same(ours(*args), theirs(*args))
    assert short_calls()[2] > 0 and regions() > 0


@pytest.mark.parametrize("in_place", [False, True])
def test_outputs_across_for_loops_of_numpy(in_place, threads_always, short_calls):
    # Such an output is buffered: each thread's buffer is written back once, to where it belongs.
    rng = np.random.default_rng(6)
    for rows in range(2048, 8192, 617):
        a, b = (np.asfortranarray(x) for x in rng.random((2, rows, 5)))
        out = a if in_place else np.empty_like(a)
        expected = np.asfortranarray(np.hypot(*map(np.ascontiguousarray, (a, b))))
        assert_same(nc.hypot(a, np.ascontiguousarray(b), out=out), expected)
    assert short_calls()[2] > 0


@pytest.mark.parametrize("dtype", "bfDG")
def test_large_new_outputs(dtype, threads_always):
    # Their pages are made by the thread that writes them.
    n = (18 << 20) // np.dtype(dtype).itemsize + 77
    a = np.arange(n, dtype="b").astype(dtype)
    for name in ("add", "maximum"):
        for x in (a, a[: n // 90 * 90].reshape(90, -1).T):
            assert_same(getattr(nc, name)(x, x), getattr(np, name)(x, x))


def test_loops_of_numpy_get_its_outputs_forwards():
    # Backwards, this loop has other bits.
    a = np.random.default_rng(7).random(3001, "f") * 99
    ours, theirs = a.copy(), a.copy()
    np.log10(theirs[::-1], out=theirs[::-1])
    nc.log10(ours[::-1], out=ours[::-1])
    assert_same(ours, theirs)
    np.log10(a[::-1], out=theirs[::-1])
    nc.log10(a[::-1], out=ours[::-1])
    assert_same(ours, theirs)


@pytest.mark.parametrize("how", ["positional", "keyword", "tuple"])
@pytest.mark.parametrize("layout", ["C", "row", "across"])
def test_out(how, layout, short_calls):
    a = np.random.default_rng(5).random((20, 30))
    b = {"C": a + 1, "row": a[0], "across": np.asfortranarray(a)}[layout]
    out = np.full(a.shape, np.nan)
    args, keywords = {
        "positional": ((a, b, out), {}),
        "keyword": ((a, b), {"out": out}),
        "tuple": ((a, b), {"out": (out,)}),
    }[how]
    assert nc.multiply(*args, **keywords) is out
    np.testing.assert_array_equal(out, a * b)
    assert sum(short_calls()) == 1


@pytest.mark.parametrize("out", [None, ...])
def test_no_output_by_keyword(out, short_calls):
    a = np.ones((20, 30))
    try:
        expected = np.multiply(a, 3, out=out)
    except TypeError:  # ... before NumPy 2.3
        with pytest.raises(TypeError, match="ArrayType"):
            nc.multiply(a, 3, out=out)
        return
    assert_same(nc.multiply(a, 3, out=out), expected)
    assert sum(short_calls()) == 1
    for operands in ((a[0], a[0]), (a[0], a[0].astype(int))):
        assert_same(nc.vecdot(*operands, out=out), np.vecdot(*operands, out=out))


@pytest.mark.parametrize("n", [3, 100_000])
@pytest.mark.parametrize("name", ["maximum", "minimum", "add"])
def test_an_output_that_is_no_keyword(name, n):
    """NumPy 2.4 warns of it where it may be taken for a third operand."""
    a = np.arange(float(n))

    def warned(function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function(a, a[::-1], np.empty(n))
            function(a, a[::-1], np.empty(n, "f"))
        return [str(warning.message) for warning in caught]

    expected = warned(getattr(np, name))
    assert warned(getattr(nc, name)) == expected
    with nc.patched():
        assert warned(getattr(np, name)) == expected


def test_in_place(short_calls):
    a = np.random.default_rng(6).random((20, 30))
    expected = a + a[0].copy()
    row = a[0].copy()
    assert nc.add(a, row, out=a) is a
    np.testing.assert_array_equal(a, expected)
    nc.add(a, a, a)
    np.testing.assert_array_equal(a, expected * 2)
    assert sum(short_calls()) == 2


def test_unpickled_arrays_take_it(short_calls):
    a = pickle.loads(pickle.dumps(np.arange(5.0)))
    assert_same(nc.add(a, a), np.add(a, a))
    assert short_calls()[0] == 1


INTEGERS_IN = {
    **ONE_LOOP,
    "F, strided": lambda a: (a.T[::2], a.T[1::2]),
    "row": lambda a: (a, a[0]),
    "outer, axes of one": lambda a: (a[:, :1], a[:1]),
    "C, F": lambda a: (a[:, :34], a[:, :34].T),
    "F, axes of one": lambda a: (np.asfortranarray(a.reshape(1, 34, 1, 44)),) * 2,
    "turned, axes of one": lambda a: (a.reshape(34, 1, 44).T, a.reshape(34, 1, 44).T),
}


@pytest.mark.parametrize("layout", INTEGERS_IN)
@pytest.mark.parametrize("dtype", "?bBhHiIlLqQ")
def test_integers_become_floats(dtype, layout, short_calls):
    x, y = INTEGERS_IN[layout](numbers(np.random.default_rng(11), (34, 44), dtype))
    with np.errstate(all="ignore"):
        theirs = np.divide(x, y)
        short_calls()
        assert_same(nc.divide(x, y), theirs)
        out = np.zeros_like(theirs)
        assert nc.divide(x, y, out=out) is out
        assert sum(short_calls()) == 2
    np.testing.assert_array_equal(out, theirs)


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("dtype", "?bHiLq")
def test_integers_become_floats_on_threads(dtype, regions):
    x = numbers(np.random.default_rng(12), (130, 170), dtype)
    with np.errstate(all="ignore"):
        for args in ((x, x[:, ::-1]), (x, x[0]), (x[:, :1], x[:1]), (x.T, x.T), (x, 3)):
            assert_same(nc.divide(*args), np.divide(*args))
    assert regions() > 0
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        nc.divide(x | 1, x & 0)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1])
def test_integers_are_rounded_to_floats_as_numpys(value):
    a = np.array([value, 1, 3])
    for args in ((a, a[::-1]), (a, a[0]), (a[0], a), (a, np.uint64(7)), (a, 7)):
        assert_same(nc.divide(*args), np.divide(*args))


@pytest.mark.parametrize("dtype", "qQ")
def test_integers_of_any_length_are_rounded_to_floats_as_numpys(dtype):
    rng = np.random.default_rng(13)
    bits, one = np.iinfo(dtype), np.ones(1, dtype)[0]
    a = rng.integers(bits.min, bits.max, 9999, dtype, endpoint=True)
    a >>= rng.integers(0, 64, a.size).astype(dtype)
    # Halves between two floats, and their neighbours.
    a[::3] = a[::3] // 2048 * 2048 + rng.integers(1023, 1026, a[::3].size).astype(dtype)
    for x in (a, a[::2], a[::-1]):
        for args in ((x, x[0]), (x, one * 3), (one * 5, x | 1)):
            assert_same(nc.divide(*args), np.divide(*args))


@pytest.mark.parametrize("dtype", "?bBhHiIlL")
def test_quotients_of_any_length_and_alignment(dtype):
    x = numbers(np.random.default_rng(14), (600,), dtype)
    y, out = x[::-1].copy() | np.ones(1, dtype), np.zeros(1200)
    with np.errstate(all="raise"):
        for n in (*range(1, 70), 127, 128, 135, 203):
            for a, b in ((x[3:], y[1:]), (x[::2], y), (x, y[::-2]), (x[0], y), (x, y[5])):
                a, b = (z[:n] if z.ndim else z for z in (a, b))
                theirs = np.divide(a, b)
                for ours in (out[n % 8 :][:n], out[::2][:n]):
                    out[:] = 7
                    np.testing.assert_array_equal(nc.divide(a, b, out=ours), theirs)
                    assert np.count_nonzero(out != 7) <= n


@pytest.mark.parametrize("mode", ["ignore", "raise"])
def test_integers_into_memory_of_their_own(mode):
    results = []
    for divide in (np.divide, nc.divide):
        memory = np.arange(40)
        with np.errstate(all=mode), contextlib.suppress(FloatingPointError):
            divide(memory[20:], memory[:20], out=memory[5:25].view("d"))
        results.append(memory)
    np.testing.assert_array_equal(*results)


# ---- Python's numbers ----

NUMBERS = [
    0, 1, -1, 127, 128, 255, 256, -129, 2**31 - 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64,
    10**100, True, 0.0, -0.0, 1.5, 1e-40, 1e-50, 3.4e38, 3.5e38, 1e300, float("inf"), float("nan"),
    1j, 65504.0, 65520.0,
]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS, ids=str)
@pytest.mark.parametrize("dtype", "?bBhiIlLefdgF")
def test_numbers_of_python(dtype, number):
    a = np.array([3, 100, 0], dtype)
    for f, g in ((nc.add, np.add), (nc.multiply, np.multiply), (nc.less, np.less)):
        for args in ((a, number), (number, a)):
            assert outcome(f, *args) == outcome(g, *args)
    for args in ((a, number), (number, a)):
        assert outcome(nc.divide, *args) == outcome(np.divide, *args)


def outcome(function, *args):
    """Result bytes and dtype, or the error, and what was warned."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            result = function(*args)
            elements = np.nan_to_num(result, nan=7)
            # Six bytes of long doubles are undefined.
            is_long = elements.dtype.char in "gG"
            bits = repr(elements.tolist()) if is_long else elements.tobytes()
            told = result.dtype, result.shape, bits
        except Exception as error:
            told = type(error), str(error)
    return told, [(w.category, str(w.message)) for w in caught]


# ---- what must not take it ----


class Subclass(np.ndarray):
    def __array_finalize__(self, source):
        self.tag = getattr(source, "tag", "new")


class Overrides:
    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return ufunc, method


def unusual():
    a = np.arange(12.0).reshape(3, 4)
    unaligned = np.frombuffer(bytes(8 * 12 + 1), "u1")[1:].view("d")
    records = np.zeros(5, "i4,f8")
    frozen = a.copy()
    frozen.flags.writeable = False
    yield "subclass", (a.view(Subclass), a), {}
    yield "matrix", (a.view(np.matrix), a), {}
    yield "masked", (np.ma.array(a, mask=a > 3), a), {}
    yield "0-d", (np.array(1.0), np.array(2.0)), {}
    yield "scalars", (1.0, np.float64(2)), {}
    yield "lists", ([1.0, 2.0], [3.0, 4.0]), {}
    yield "unaligned", (unaligned, unaligned), {}
    yield "swapped", (a.astype(">f8"), a), {}
    yield "mixed, broadcast", (a * 1j, a[0]), {}
    yield "objects", (a.astype(object), a), {}
    yield "times", (np.arange(3).astype("m8[s]"), np.arange(3).astype("m8[ms]")), {}
    yield "field", (records["f1"], records["f1"]), {}
    yield "empty", (a[:0], a[:0]), {}
    yield "where", (a, a), {"where": a > 3, "out": a.copy()}
    yield "dtype", (a, a), {"dtype": "f"}
    yield "order", (a, a), {"order": "F"}
    yield "out of another dtype", (a, a), {"out": a.astype("F")}
    yield "out larger", (a, a), {"out": np.zeros((2, 3, 4))}
    yield "metadata", (a.astype(np.dtype("d", metadata={"unit": "m"})), a), {}


@pytest.mark.parametrize("case", [pytest.param(c, id=c[0]) for c in unusual()])
def test_the_unusual_is_numpys(case, short_calls):
    name, args, keywords = case
    theirs = np.add(*args, **keywords)
    ours = nc.add(*args, **keywords)
    if name not in ("out larger",):
        assert sum(short_calls()) == 0
    assert type(ours) is type(theirs) and np.asarray(ours).dtype == np.asarray(theirs).dtype
    assert getattr(ours, "shape", None) == getattr(theirs, "shape", None)
    assert np.all(np.asarray(ours) == np.asarray(theirs))
    assert ours.dtype.metadata == theirs.dtype.metadata


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin", "logical_and", "add"])
@pytest.mark.parametrize("kind", list("?bBhHiIl"))
def test_repeated_inputs_are_written_out(name, kind):
    """NumPy's loops have vectors for contiguous inputs only; a part of them is 1 KiB."""
    rng = np.random.default_rng(ord(kind))
    size = np.dtype(kind).itemsize
    ours, theirs = getattr(nc, name), getattr(np, name)
    for n in (3, 31, 32, 33, 1024 // size, 1024 // size + 1, 5000):
        bytes_of_any_value = rng.integers(0, 256, 3 * n * size).astype("u1")
        x = bytes_of_any_value.view(kind)
        for a in (x[:n], x[::3], x[n - 1 :: -1]):
            for one in (a[n // 2], a[n // 3 : n // 3 + 1], np.broadcast_to(a[:1], n)):
                for inputs in ((a, one), (one, a)):
                    expected = theirs(*inputs)
                    assert same_bits(ours(*inputs), expected)
                    out = np.array(a, expected.dtype)
                    assert same_bits(ours(*inputs, out=out), expected)
                    assert same_bits(out, expected)
        a = x[:n].copy()
        theirs(x[:n], x[n // 2], out=x[:n])
        ours(a, a[n // 2], out=a)
        assert same_bits(a, x[:n])


@pytest.mark.parametrize("kinds", ["ff", "dd", "ed", "fd", "id", "Ll"])
@pytest.mark.parametrize("name", ["arctan2", "power"])
def test_repeated_inputs_of_floats_are_written_out(name, kinds):
    ours, theirs = getattr(nc, name), getattr(np, name)
    rng = np.random.default_rng(ord(kinds[0]))
    for n in (5, 31, 32, 33, 129, 1000):
        a, b = (rng.uniform(-50, 50, 2 * n).astype(kind) for kind in kinds)
        if kinds[0] in "efd":
            a[[0, 3, 4]] = 0.5, 2, -1  # exponents that NumPy knows
        if kinds[1] != "l":
            extremes = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], len(b[:: n // 3 + 1]))
            b[:: n // 3 + 1] = extremes
        for x in (b[:n], b[::2], b[n - 1 :: -1]):
            for one in (a[0], a[3:4], np.broadcast_to(a[4:5], n)):
                for inputs in ((one, x), (x, one)):
                    with np.errstate(all="ignore"):
                        assert same_bits(ours(*inputs), theirs(*inputs))


@pytest.mark.parametrize("kinds", ["eh", "el", "fl", "de", "ff", "dd"])
@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_single_exponents(shape, kinds):
    """NumPy's loop computes a power of -1 as a quotient if it gets no step for the exponent."""
    rng = np.random.default_rng(4)
    for x in rng.uniform(1, 50, 60):
        base, exponent = np.array(x, kinds[0]), np.array(-1, kinds[1])
        for a in (base, base.reshape(shape), np.broadcast_to(base, shape)):
            for b in (exponent, exponent.reshape(shape), np.broadcast_to(exponent, shape)):
                expected = np.asarray(np.power(a, b))
                assert same_bits(np.asarray(nc.power(a, b)), expected)
                if expected.ndim > 0:
                    out = np.zeros_like(expected)
                    assert same_bits(nc.power(a, b, out=out), np.power(a, b, out=expected))


@pytest.mark.parametrize("dtype", ["d", float, np.float64, np.dtype("d")])
def test_dtype_that_changes_nothing(dtype, short_calls):
    a = np.arange(12.0).reshape(3, 4)
    for name in "sqrt", "negative", "exp":
        result = getattr(nc, name)(a, dtype=dtype)
        assert result.dtype == a.dtype
        assert np.array_equal(result, getattr(np, name)(a, dtype=dtype))
    assert sum(short_calls()) == 3
    for ufunc, args in (("less", (a, a)), ("isnan", (a,)), ("sqrt", (a.astype("f"),))):
        said = []
        for of in nc, np:
            try:
                said.append(getattr(of, ufunc)(*args, dtype=dtype).dtype)
            except TypeError as error:
                said.append(str(error).replace("numc_ufuncs", "numpy"))
        assert said[0] == said[1], ufunc
    assert sum(short_calls()) == 1  # the last one: float32 is cast


def test_overrides_are_asked(short_calls):
    a = np.arange(3.0)
    assert nc.add(a, Overrides()) == (nc.add, "__call__")
    assert nc.add(a, a, out=Overrides()) == (nc.add, "__call__")
    assert sum(short_calls()) == 0


@pytest.mark.parametrize("shift", [-1, 1, 5])
def test_shifted_overlap(shift, threads_always):
    for shape in ((4000,), (40, 100)):
        a = np.random.default_rng(7).random(shape)
        b = a.copy()
        first, second = (slice(max(shift, 0), min(shift, 0) or None) for shift in (shift, -shift))
        for f, x in ((nc.add, a), (np.add, b)):
            f(x[first], x[second], out=x[second])
            f(x[..., 0:1] if x.ndim > 1 else x[:1], x, out=x)
        np.testing.assert_array_equal(a, b)


def test_a_self_overlapping_output_is_numpys(short_calls):
    base = np.zeros(200)
    out = np.lib.stride_tricks.as_strided(base, (10, 20), (8, 8))
    a = np.random.default_rng(8).random((10, 20))
    expected = base.copy()
    np.add(a, a[0], out=np.lib.stride_tricks.as_strided(expected, (10, 20), (8, 8)))
    nc.add(a, a[0], out=out)
    np.testing.assert_array_equal(base, expected)
    assert sum(short_calls()) == 0


@pytest.mark.parametrize(
    "out", [np.zeros(4), np.zeros((3, 4), "i4"), np.zeros((3, 4))[::-1], [1.0], 5], ids=str
)
def test_bad_outputs_raise_numpys_error(out):
    a = np.ones((3, 4))
    if isinstance(out, np.ndarray) and out.strides[0] < 0:
        out.flags.writeable = False
    assert outcome(lambda x: nc.add(x, x, out=out), a) == outcome(
        lambda x: np.add(x, x, out=out), a
    )
    assert outcome(lambda x: nc.add(x, a[0, :3]), a) == outcome(lambda x: np.add(x, a[0, :3]), a)


def test_the_first_write_to_broadcast_arrays_warns():
    def write(add):
        x = np.broadcast_arrays(np.zeros((3, 4)), np.zeros(4))[1]
        return add(np.ones((3, 4)), 1.0, out=x)

    assert outcome(lambda: write(nc.add)) == outcome(lambda: write(np.add))


# ---- errors ----


@pytest.mark.parametrize("layout", ["C", "row"])
@pytest.mark.parametrize("mode", ["warn", "raise", "call", "ignore"])
def test_floating_point_errors(layout, mode, short_calls):
    def run(divide):
        told = []
        a, b = np.full((7, 9), 1e300), np.full(9 if layout == "row" else (7, 9), 1e-300)
        b[..., 3] = 0
        out = np.zeros((7, 9))
        with (
            np.errstate(all=mode, call=lambda *error: told.append(error)),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            try:
                divide(a, b, out=out)
            except FloatingPointError as error:
                told.append(str(error))
        return told, [str(w.message) for w in caught], out.tolist()

    assert run(nc.divide) == run(np.divide)
    assert sum(short_calls()) == 1


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("add", [(3,), (3,)]),
        ("add", [(100_000,), (100_000,)]),
        ("add", [(3, 3), (3,)]),
        ("exp", [(3,)]),
        ("hypot", [(3, 3), (3,)]),
        ("matmul", [(4, 4), (4, 4)]),
    ],
)
def test_flags_from_before_do_not_count(name, shapes):
    operands = [np.ones(shape) for shape in shapes]
    with np.errstate(all="ignore"):
        np.divide(np.ones(1000), 0.0)
    with np.errstate(all="raise"):
        getattr(nc, name)(*operands)


def test_errors_of_loops_reach_the_caller(short_calls):
    a = np.arange(-3, 30)
    for args in ((a, a), (a[:, None], a)):
        with pytest.raises(ValueError, match="negative integer powers"):
            nc.power(*args)


def test_no_reference_is_lost():
    a = np.random.default_rng(9).random((30, 40))
    b, dtype, number = a[0].copy(), a.dtype, 2.5

    outs = {shape: np.empty(shape) for shape in (a.shape, a.T.shape, b.shape)}

    def calls():
        for x, y in ((a, a), (a, b), (a, number), (a.T, a.T), (b, np.float64(1))):
            nc.add(x, y)
            nc.add(x, y, out=outs[x.shape])
        for bad in ((a, b[:3]), (a, None)):
            with pytest.raises((ValueError, TypeError)):
                nc.add(*bad)
        nc.hypot(a, b)

    assert_references_stay(calls, (a, b, dtype, number, nc.add))


@pytest.mark.parametrize("method", ["reduce", "accumulate", "outer"])
def test_methods_are_unaffected(method):
    a = np.arange(6.0)
    args = (a, a) if method == "outer" else (a,)
    assert_same(getattr(nc.add, method)(*args), getattr(np.add, method)(*args))
