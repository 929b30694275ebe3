"""Running results along any axis on all cores: NumPy's bits, strides, errors and warnings."""

import itertools
import warnings

import _numc_test
import numpy as np
import pytest
from checks import in_thread_of_small_stack, same_bits

import numc_ufuncs as nc

INTEGERS = "?bBhHiIlLqQ"
NUMBERS = INTEGERS + "efdgFDG"
NAMES = (
    *("add", "multiply", "subtract", "divide", "maximum", "minimum", "fmax", "fmin"),
    *("logical_or", "logical_and", "logical_xor", "bitwise_and", "bitwise_xor", "gcd"),
    *("floor_divide", "remainder", "power", "arctan2", "hypot", "logaddexp", "copysign"),
)

pytestmark = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.2.0",
    reason="this NumPy's ufuncs have no attributes to shadow by",
)


AWAITS_WORKERS = 2


@pytest.fixture(
    params=[(0, False, False), (500, False, False), (1, True, True), (500, True, False)],
    ids=["production", "late workers", "small blocks", "all workers, large blocks"],
)
def policy(request):
    """Its number. From AWAITS_WORKERS on, each region takes long where the machine is busy."""
    before = _numc_test.set_policy(*request.param)
    nc.set_config(threads=3)
    yield request.param_index
    nc.set_config(threads=None)
    _numc_test.set_policy(*before)


@pytest.fixture
def arrays():
    """How many arrays were accumulated past NumPy's method since."""
    seen = nc._core.reductions()[0]
    return lambda: nc._core.reductions()[0] - seen


def numbers(rng, shape, dtype):
    """Of all bits, or small ones: zeros of both signs, and what overflows or is not a number."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < rng.choice([0.001, 0.5, 0.999])
    if dtype.kind in "iu":
        if rng.random() < 0.5:
            bits = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
            return bits.view(dtype)[..., 0]
        return rng.integers(0, 4, shape).astype(dtype)

    def parts():
        x = rng.normal(size=shape) * rng.choice([1e-3, 1, 1e3])
        if rng.random() < 0.5:
            x = np.round(x) * rng.choice([-0.0, 1.0], shape)
        if rng.random() < 0.2:
            x[rng.random(shape) < 0.001] = rng.choice([np.nan, np.inf, -np.inf])
        return x

    with np.errstate(all="ignore"):
        x = parts().astype(dtype)
        return x + 1j * parts().astype(dtype) if dtype.kind == "c" else x


def random_array(rng, dtype, most=40_000):
    ndim = int(rng.integers(1, 5))
    shape = np.exp(rng.dirichlet(np.ones(ndim)) * np.log(rng.uniform(most / 40, most)))
    shape = tuple(int(n) for n in np.maximum(shape, 1))
    x = numbers(rng, shape, dtype).transpose(rng.permutation(ndim))
    if rng.random() < 0.3:
        x = np.repeat(x, 2, axis=-1)
        x = x[tuple(slice(None, None, int(step)) for step in rng.choice([1, 2, -1], ndim))]
    if rng.random() < 0.1:
        axis = int(rng.integers(ndim))
        x = np.broadcast_to(np.take(x, [0], axis), x.shape)
    return x


def random_out(rng, x, expected):
    """An output, or the operand; of NumPy's dtype or another; and a copy of it for NumPy."""
    style = rng.integers(6)
    if style == 0 and 0 not in x.strides:
        ours = x.copy(order="K")
        return ours, ours, ours.copy(order="K")
    dtype = expected.dtype if style < 5 else np.dtype(str(rng.choice(list(NUMBERS))))
    order = rng.permutation(x.ndim)
    shape = [x.shape[i] * int(rng.integers(1, 3)) for i in order]
    whole = np.zeros(shape, dtype).transpose(np.argsort(order))
    ours = whole[tuple(slice(n) for n in x.shape)]
    if rng.random() < 0.3:
        ours = ours[::-1]
    return x, ours, np.zeros(x.shape, dtype)


def outcome(function, *args, **keywords):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*args, **keywords)
        except Exception as error:
            result = type(error), str(error)
    return result, [(warning.category, str(warning.message)) for warning in caught]


def same_elements(a, b):
    """Bit by bit, but that any NaN equals any NaN."""
    if a.dtype.char != b.dtype.char or a.shape != b.shape:
        return False
    if a.dtype.kind == "c":
        return same_elements(a.real, b.real) and same_elements(a.imag, b.imag)
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    return np.array_equal(a, b, equal_nan=True) and bool(
        ((np.signbit(a) == np.signbit(b)) | np.isnan(a)).all()
    )


def check(name, x, **keywords):
    (ours, told), (theirs, expected) = (
        outcome(getattr(package, name).accumulate, x, **keywords) for package in (nc, np)
    )
    about = name, x.dtype, x.shape, x.strides, keywords
    assert told == expected, about
    if isinstance(theirs, tuple):
        assert ours == theirs, about
        return None
    assert type(ours) is type(theirs) and ours.strides == theirs.strides, about
    assert same_elements(ours, theirs), about
    return theirs


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("seed", range(8))
def test_random_calls(seed, arrays):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        name = str(rng.choice(NAMES))
        x = random_array(rng, str(rng.choice(list(NUMBERS))))
        keywords = {"axis": int(rng.integers(-x.ndim, x.ndim))}
        if rng.random() < 0.3:
            keywords["dtype"] = str(rng.choice(list(NUMBERS)))
        expected = check(name, x, **keywords)
        if expected is None or rng.random() < 0.5:
            continue
        x, ours, theirs = random_out(rng, x, expected)
        operand = theirs if ours is x else x
        results = [
            outcome(f.accumulate, a, **keywords, out=out)
            for f, a, out in (
                (getattr(nc, name), x, ours),
                (getattr(np, name), operand, theirs),
            )
        ]
        about = name, x.dtype, x.shape, x.strides, keywords, ours.dtype, ours.strides
        assert results[0][1] == results[1][1], about
        if isinstance(results[1][0], tuple):
            assert results[0][0] == results[1][0], about
        else:
            assert results[0][0] is ours, about
            assert same_elements(ours, theirs), about
    assert arrays() > 5


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "logical_or"])
def test_all_pairs_of_dtypes(name, policy, arrays):
    """Converted on the way, where there is a conversion."""
    rng = np.random.default_rng(5)
    pairs = list(itertools.product(NUMBERS, NUMBERS))
    if policy >= AWAITS_WORKERS:
        pairs = rng.permutation(pairs)[: len(pairs) // 4]
    for source, target in pairs:
        x = numbers(rng, (70, 130), source)
        for axis, operand in ((0, x), (1, x), (0, x.T), (0, x.reshape(-1)), (1, x[:, ::-3])):
            check(name, operand, axis=axis, dtype=target)
    assert arrays() > (0 if name == "logical_or" else len(pairs) // 2)


@pytest.mark.parametrize("name", NAMES)
def test_all_dtypes(name, policy):
    """Of zeros of both signs and of what is approximated, NumPy's loops compute rows otherwise."""
    rng = np.random.default_rng((6, policy))  # other numbers for each
    for dtype in NUMBERS:
        for _ in range(2):
            x = numbers(rng, (40, 333), dtype)
            for axis, operand in itertools.product((0, 1), (x, x.T, x[:, ::2])):
                check(name, operand, axis=axis)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize(
    "name",
    ["maximum", "fmin", "logical_or", "logical_and", "bitwise_or", "bitwise_and", "bitwise_xor"],
)
def test_bools_of_any_bytes(name):
    """The first one stays as it is; others become 0 or 1."""
    rng = np.random.default_rng(9)
    for least in (0, 1):  # where all are true, no result is false
        x = rng.integers(least, 4, 3_001, np.uint8)
        for operand in (x, x[::-3], x[:2001]):
            ours, theirs = (
                getattr(f, name).accumulate(operand.view(bool)).view(np.uint8) for f in (nc, np)
            )
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize(
    "shape", [(4_001, 3), (3, 4_001), (1_001, 17), (2, 9, 301), (1, 5_000), (99, 33)]
)
@pytest.mark.parametrize("dtype", "bilfd")
def test_few_lines_and_few_columns(shape, dtype):
    rng = np.random.default_rng(7)
    x = numbers(rng, shape, dtype)
    for name, axis in itertools.product(("add", "multiply", "fmax"), range(len(shape))):
        for operand in (x, np.asfortranarray(x), x[..., ::-1], np.broadcast_to(x[:1], shape)):
            check(name, operand, axis=axis)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize(
    "shape", [(70, 40, 3), (5, 90, 2), (60, 5, 2), (3, 40, 50, 3), (9, 600, 4)]
)
@pytest.mark.parametrize("dtype", "bhlfdF")
def test_rows_of_which_few_are_nearer(shape, dtype):
    """Of cropped arrays, and of such that are not C or Fortran contiguous."""
    rng = np.random.default_rng(8)
    x = numbers(rng, (*shape[:-1], shape[-1] + 2), dtype)[..., 2:]
    for operand in (x, x[::-1], x.swapaxes(0, 1), x[:, ::2]):
        for name, axis in itertools.product(("add", "minimum"), range(len(shape) - 1)):
            check(name, operand, axis=axis)
            check(name, operand, axis=axis, dtype="D" if dtype == "F" else "d")


@pytest.mark.usefixtures("policy")
def test_lengths_around_pieces():
    """A rest of one element is computed together with those before."""
    rng = np.random.default_rng(8)
    lengths = 2, 3, 127, 128, 129, 130, 255, 256, 257, 258, 259, 513, 514, 515, 1025, 1026, 1027
    for length in lengths:  # columns of up to 900 elements are one piece, unless they are converted
        for name in ("maximum", "add", "arctan2"):
            x = rng.normal(size=(length, 40)).astype("f")
            for axis, dtype in itertools.product((0, 1), (None, "d")):
                for operand in (x, x.T, np.ascontiguousarray(x.T)):
                    check(name, operand, axis=axis, dtype=dtype)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", ["add", "multiply"])
def test_one_line_of_floats(name, dtype, arrays):
    """Long enough in production: each result is computed with the one before in a register."""
    rng = np.random.default_rng(10)
    for length in (1_024, 1_025, 5_003):
        x = numbers(rng, (length,), dtype)
        strided = numbers(rng, (3 * length,), dtype)[::3]
        for operand in (x, x[::-1], strided, np.broadcast_to(x[:1], length)):
            check(name, operand, axis=0)
        ours, theirs = x.copy(), x.copy()
        with np.errstate(all="ignore"):
            getattr(nc, name).accumulate(ours, out=ours)
            getattr(np, name).accumulate(theirs, out=theirs)
        assert same_bits(ours, theirs)
    is_ours = dtype in "fd" or name == "add"
    assert (arrays() > 0) == is_ours


@pytest.mark.usefixtures("policy")
def test_overlapping_and_unusual_outputs():
    rng = np.random.default_rng(9)
    for name, axis in itertools.product(("add", "maximum"), (0, 1)):
        ours, theirs = getattr(nc, name).accumulate, getattr(np, name).accumulate
        for cut in (
            lambda x: (x, x),
            lambda x: (x[1:], x[:-1]),
            lambda x: (x[:-1], x[1:]),
            lambda x: (x, x[::-1]),
            lambda x: (x, x.T),
            lambda x: (x[:50], x[50:]),
            lambda x: (x[:, :50], x[:, 50:]),
            lambda x: (x[:, ::2], x[:, 1::2]),
            lambda x: (x, np.zeros((3, 100))),
            lambda x: (x, np.zeros((2, 100, 100))),
            lambda x: (x, np.zeros((100, 100), ">d")),
            lambda x: (x, np.zeros((100, 100), "f")),
            lambda x: (x, np.frombuffer(bytes(80_000)).reshape(100, 100)),
            lambda x: (x, np.zeros(80_001, "b")[1:].view("d").reshape(100, 100)),
            lambda x: (x, np.zeros((100, 100)).view(np.matrix)),
        ):
            x = rng.normal(size=(100, 100))
            y = x.copy()
            (a, out), (b, expected) = cut(x), cut(y)
            result, other = (
                outcome(ours, a, axis, None, out),
                outcome(theirs, b, axis, None, expected),
            )
            assert result[1] == other[1]
            assert isinstance(other[0], tuple) or result[0] is out
            assert not isinstance(other[0], tuple) or result[0] == other[0]
            assert same_bits(x, y) and same_bits(
                np.asarray(out).copy(), np.asarray(expected).copy()
            )


def test_an_output_that_overlaps_itself_is_numpys(arrays):
    x = np.ones((100, 100))
    for shape_of_steps in ((8, 8), (400, 8), (8, 400)):
        out = np.lib.stride_tricks.as_strided(np.zeros(20_000), x.shape, shape_of_steps)
        nc.add.accumulate(x, 0, None, out)
    assert arrays() == 0


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("handling", ["warn", "raise", "call", "ignore"])
def test_errors_are_told_as_numpy_tells_them(handling):
    told = []
    x = np.zeros((300, 301))
    for errors, at in itertools.product(range(4), [(0, 0), (299, 0), (150, 7), (299, 300)]):
        x[...] = 1
        x[at] = (1.7e308, np.inf, 1e-308, 0)[errors]
        x[0, 0] = (1.7e308, -np.inf, 1e-308, 0)[errors]
        name = ("add", "add", "multiply", "divide")[errors]
        with np.errstate(all=handling, call=lambda *args: told.append(args)):
            for axis, operand in itertools.product((0, 1), (x, x.T)):
                check(name, operand, axis=axis)
                check(name, operand, axis=axis, dtype="f")
    assert told[::2] == told[1::2]


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize(("source", "target"), ["fd", "ed", "ef"])
def test_signaling_nans_that_are_cast(source, target):
    for bits, at in itertools.product((0x7F800001, 0x7FC00000), ((0, 0), (70, 5), (99, 99))):
        x = np.ones((100, 100), source)
        kind = x.view("I" if source == "f" else "H")
        kind[at] = bits if source == "f" else bits >> 16 | 1
        for axis, handling in itertools.product((0, 1), ("warn", "raise")):
            with np.errstate(all=handling):
                check("add", x, axis=axis, dtype=target)


@pytest.mark.usefixtures("policy")
def test_exceptions_of_loops():
    x = np.full((200, 201), 2)
    for at in ((1, 1), (199, 200), (100, 100)):
        x[at] = -1
        for axis in (0, 1):
            with pytest.raises(ValueError, match="negative integer powers"):
                nc.power.accumulate(x, axis)
        x[at] = 2


def test_what_is_numpys(arrays):
    x = np.arange(2000.0).reshape(20, 100)
    for keywords in (
        *({"axis": 2}, {"axis": None}, {"axis": (0, 1)}, {"axis": ()}, {"axis": 1.0}),
        *({"keepdims": False}, {"initial": 1}, {"where": True}, {"nope": 1}, {"dtype": ">d"}),
        *({"dtype": "nope"}, {"dtype": "O"}, {"dtype": "m8[s]"}, {"out": 3}),
    ):
        check("add", x, **keywords)
    for operand in (x[:0], x[:, :0], x[:1], x.astype(">d"), x.astype("m8[s]"), np.array(3.0)):
        check("add", operand)
    for more in ((0, None, None, False), (0, None, None, False, 1)):
        assert outcome(nc.add.accumulate, x, *more) == outcome(np.add.accumulate, x, *more)
    objects = nc.add.accumulate(x.astype(object), 1)
    assert objects.tolist() == np.add.accumulate(x, 1).tolist()
    matrix = x.view(np.matrix)
    assert type(nc.add.accumulate(matrix, 1)) is np.matrix
    assert nc.add.accumulate(x.tolist(), 1).tolist() == np.add.accumulate(x, 1).tolist()
    assert arrays() == 0
    nc.add.accumulate(x)
    assert arrays() == 1


def test_threads_share_lines_and_columns(regions):
    before = _numc_test.set_policy(500, True, False)
    try:
        x = np.random.default_rng(1).normal(size=(300, 301))
        with nc.config(threads=3):
            for name, axis in itertools.product(("add", "maximum", "arctan2"), (0, 1)):
                for operand in (x, x.T):
                    regions()
                    check(name, operand, axis=axis)
                    assert regions() == 1
            regions()
            nc.add.accumulate(x[0])  # one line: each sum waits for the one before
            nc.maximum.accumulate(x.reshape(-1))
            assert regions() == 0
            for dtype in "bil":
                check("add", x.astype(dtype).reshape(-1), axis=0)
                assert regions() == 2
    finally:
        _numc_test.set_policy(*before)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("dtype", "?bilefdgFDG")
def test_small_stacks(dtype):
    rng = np.random.default_rng(2)
    x = numbers(rng, (400, 301), dtype)

    def results():
        with np.errstate(all="ignore"):
            for name, axis in itertools.product(("add", "multiply", "logical_or"), (0, 1)):
                accumulate = getattr(nc, name).accumulate
                for operand in (x, x.T, x[::-1, ::2]):
                    yield accumulate(operand, axis)
                if name != "logical_or":
                    yield accumulate(x, axis, "D" if x.dtype.kind == "c" else "d")

    found = in_thread_of_small_stack(results)
    expected = list(results())
    assert len(found) == len(expected)
    assert all(same_elements(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", ["add", "maximum"])
@pytest.mark.parametrize(("dtype", "narrow"), [("d", "f"), ("D", "F"), ("f", "e")])
def test_overflow_of_a_cast_is_reported_as_numpy_does(name, dtype, narrow, threads_always):
    array = np.full((40, 50), np.finfo(dtype).max / 4, dtype)
    for axis in (0, 1):
        expected, found = [], []
        for library, messages in ((np, expected), (nc, found)):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                getattr(library, name).accumulate(array, axis=axis, dtype=narrow)
            messages += [str(warning.message) for warning in caught]
        assert found == expected != []


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("dtype", "bhilqBHILQ")
@pytest.mark.parametrize(
    "name", ["maximum", "minimum", "fmax", "fmin", "bitwise_or", "bitwise_and", "bitwise_xor"]
)
def test_running_results_of_integers(name, dtype):
    rng, limits = np.random.default_rng(ord(dtype)), np.iinfo(dtype)
    for shape in [(3003,), (40, 66), (7, 336), (300, 9)]:
        x = rng.integers(limits.min, limits.max, (*shape[:-1], 2 * shape[-1]), dtype, True)
        rising = np.sort(x)
        falling = rising[..., ::-1].copy()
        bits = rng.integers(0, limits.bits, x.shape).astype(dtype)
        rare = (rng.random(x.shape) < 0.02).astype(dtype) << bits
        for operand in (x, x[..., ::2], x[..., ::-1], rising, falling, rare, ~rare):
            ours = getattr(nc, name).accumulate(operand, axis=-1)
            theirs = getattr(np, name).accumulate(operand, axis=-1)
            assert same_bits(ours, theirs) and ours.strides == theirs.strides
            in_place = operand.copy()
            getattr(nc, name).accumulate(in_place, axis=-1, out=in_place)
            assert same_bits(in_place, theirs)
