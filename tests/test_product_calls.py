"""The short way of products and stacks: the same loop, and NumPy's results, memory and errors."""

import itertools
import warnings

import numpy as np
import pytest
from checks import assert_references_stay, assert_same

import numc_ufuncs as nc

DTYPES = "?bBhHiIlLqQefdgFDG"
SHAPES = {
    "matmul": [((5, 7), (7, 3)), ((1, 7), (7, 3)), ((5, 1), (1, 3)), ((5, 7), (7, 1)),
               ((7,), (7, 3)), ((5, 7), (7,)), ((7,), (7,)), ((1,), (1,)), ((1, 1), (1, 1)),
               ((33, 65), (65, 40)), ((2, 5, 7), (2, 7, 3)), ((5, 7), (4, 7, 3)),
               ((3, 1, 5, 7), (2, 7, 3)), ((1, 1, 5, 7), (7, 3)), ((7,), (2, 3, 7, 4)),
               ((2, 3, 4, 7), (7,)), ((20, 3, 2, 2), (20, 1, 2, 2))],
    "vecdot": [((7,), (7,)), ((1,), (1,)), ((300,), (300,)), ((3, 7), (3, 7)), ((20, 3, 7), (7,)),
               ((4, 1, 5), (6, 5)), ((2, 3, 4, 40), (3, 1, 40)), ((1, 7), (7,))],
    "matvec": [((5, 7), (7,)), ((1, 7), (7,)), ((40, 65), (65,)), ((3, 5, 7), (7,)),
               ((5, 7), (2, 3, 7)), ((3, 5, 7), (2, 1, 7))],
    "vecmat": [((7,), (7, 3)), ((7,), (7, 1)), ((65,), (65, 40)), ((2, 3, 7), (7, 4)),
               ((7,), (3, 7, 4)), ((2, 1, 7), (3, 7, 4))],
}  # fmt: skip
LAYOUTS = {
    "C": lambda a: a.copy(),
    "F": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "reversed": lambda a: a[::-1].copy()[::-1],
}
CASES = [(name, *shapes) for name in SHAPES for shapes in SHAPES[name]]


def products():
    return nc._core.short_calls()[4]


def numbers(rng, shape, dtype):
    values = rng.integers(0, 2 if dtype == "?" else 9, shape)
    if dtype in "FDG":
        values = values + 1j * rng.integers(0, 9, shape)
    return values.astype(dtype)


@pytest.mark.parametrize(("name", "a_shape", "b_shape"), CASES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_results(dtype, name, a_shape, b_shape):
    ours, theirs = getattr(nc, name), getattr(np, name, None)
    rng = np.random.default_rng(3)
    for a_layout, b_layout in itertools.product(LAYOUTS.values(), repeat=2):
        a = a_layout(numbers(rng, a_shape, dtype))
        b = b_layout(numbers(rng, b_shape, dtype))
        before = products()
        result = ours(a, b)
        assert products() == before + 1
        if theirs is not None:
            assert_same(result, theirs(a, b))  # whole numbers: every order of adding is exact
        out = np.full_like(result, 1)
        if out.ndim > 0:
            suits = out.flags.c_contiguous or out.flags.f_contiguous
            assert ours(a, b, out=out) is out and ours(a, b, out) is out
            assert_same(out, result)
            assert products() == before + (3 if suits else 1)


@pytest.mark.parametrize("dtype", "efdgFDG")
def test_the_loop_gets_what_numpy_hands_it(dtype):
    # With axes= it goes NumPy's way to the same loop: any other steps would change these bits.
    axes = [(-2, -1)] * 3
    rng = np.random.default_rng(4)
    for m, k, n in ((3, 3, 3), (4, 4, 4), (1, 50, 7), (7, 50, 1), (16, 16, 16), (70, 33, 65)):
        for a_layout, b_layout in itertools.product(LAYOUTS.values(), repeat=2):
            a = a_layout(rng.standard_normal((m, k)).astype(dtype))
            b = b_layout(rng.standard_normal((k, n)).astype(dtype))
            assert_same(nc.matmul(a, b), nc.matmul(a, b, axes=axes))
            stacks = np.stack([a, a + 1]), np.stack([b, b - 1])
            assert_same(nc.matmul(*stacks), nc.matmul(*stacks, axes=axes))


@pytest.mark.parametrize("dtype", "ldF")
def test_stacks_in_any_order(dtype):
    shapes = {"matmul": ((2, 3), (3, 4)), "vecdot": ((3,), (3,)), "matvec": ((2, 3), (3,))}
    for name, cores in shapes.items():
        if not hasattr(np, name):
            continue
        for seed in range(300):
            rng = np.random.default_rng(seed)
            stack = rng.choice([1, 2, 3, 17], 3, p=[0.2, 0.3, 0.4, 0.1])
            operands = []
            for core in cores:
                own = np.where(rng.random(3) < 0.2, 1, stack)[rng.integers(3) * rng.integers(2) :]
                order = rng.permutation(own.size)
                x = numbers(rng, (*own[order], *core), dtype)
                x = x.transpose(*np.argsort(order), *range(own.size, x.ndim))
                x = x[:: rng.choice([1, -1])] if own.size else x
                operands.append(x)
            before = products()
            result = getattr(nc, name)(*operands)
            assert products() == before + 1
            expected = getattr(np, name)(*operands)
            assert_same(result, expected)
            for order in "CF":
                out = np.full(expected.shape, 1, dtype, order)
                before = products()
                assert getattr(nc, name)(*operands, out=out) is out
                assert products() == before + 1
                np.testing.assert_array_equal(out, expected)


@pytest.mark.skipif(not hasattr(np, "vecdot"), reason="this NumPy has no vecdot")
@pytest.mark.parametrize("dtype", "HlF")
def test_dots_across_the_stack(dtype):
    """Whose vectors lie apart, and side by side with those of another axis."""
    rng = np.random.default_rng(8)
    for shape in ((7, 60, 9), (60, 7, 33), (5, 3, 40, 7)):
        a = np.asfortranarray(numbers(rng, shape, dtype))
        for axis in range(len(shape) - 1):
            b = np.broadcast_to(np.take(a, [1], axis), shape)
            for operands in ((a, b), (b, a)):
                assert_same(nc.vecdot(*operands), np.vecdot(*operands))


def test_outputs_in_fortran_order():
    a, b = (np.random.default_rng(5).integers(0, 99, (20, 20)) for _ in range(2))
    out = np.zeros((20, 20), int, order="F")
    before = products()
    assert nc.matmul(a, b, out=out) is out
    assert products() == before + 1
    np.testing.assert_array_equal(out, a @ b)


def left_to_numpy():
    a = np.arange(12.0).reshape(3, 4)
    square = np.arange(16.0).reshape(4, 4)
    yield "stacks that differ", lambda f: f(np.ones((2, 3, 4)), np.ones((3, 4, 2)))
    yield "empty stack", lambda f: f(np.ones((0, 3, 4)), square)
    yield "too many axes", lambda f: f(a[(None,) * 9], square)
    yield "empty", lambda f: f(a[:0], square)
    yield "nothing to add", lambda f: f(a[:, :0], square[:0])
    yield "0-d", lambda f: f(a, 3.0)
    yield "mismatch", lambda f: f(a, a)
    yield "mixed", lambda f: f(a, square.astype("f"))
    yield "list", lambda f: f(a, square.tolist())
    yield "subclass", lambda f: f(a.view(np.matrix), square)
    yield "masked", lambda f: f(np.ma.array(a, mask=a > 3), square)
    yield "swapped", lambda f: f(a.astype(">d"), square)
    yield "objects", lambda f: f(a.astype(object), square)
    yield "axes", lambda f: f(a, square, axes=[(0, 1), (1, 0), (0, 1)])
    yield "dtype", lambda f: f(a, square, dtype="f")
    yield "out of another dtype", lambda f: f(a, square, out=np.zeros((3, 4), "D"))
    yield "out too small", lambda f: f(a, square, out=np.zeros((3, 3)))
    yield "out with one more axis", lambda f: f(a, square, out=np.zeros((2, 3, 4)))
    yield "out with steps", lambda f: f(a, square, out=np.zeros((3, 8))[:, ::2])
    yield "out not writeable", lambda f: f(a, square, out=np.broadcast_to(0.0, (3, 4)))


@pytest.mark.parametrize("case", [pytest.param(c[1], id=c[0]) for c in left_to_numpy()])
def test_the_unusual_is_numpys(case):
    def outcome(function):
        try:
            return np.asarray(case(function)).tolist(), type(case(function))
        except (ValueError, TypeError) as error:
            return str(error)

    before = products()
    assert outcome(nc.matmul) == outcome(np.matmul)
    assert products() == before


@pytest.mark.parametrize("shift", [0, 1, 5, 24, 25])
def test_outputs_that_overlap(shift):
    results = []
    for matmul in (np.matmul, nc.matmul):
        memory = np.arange(60.0)
        a = memory[:25].reshape(5, 5)
        matmul(a, a, out=memory[shift : shift + 25].reshape(5, 5))
        results.append(memory)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("mode", ["warn", "raise", "call", "ignore"])
@pytest.mark.parametrize("dtype", "ef")
def test_floating_point_errors(dtype, mode):
    def run(matmul):
        told = []
        a = np.full((4, 4), np.finfo(dtype).max, dtype)
        with (
            np.errstate(all=mode, call=lambda *error: told.append(error)),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            try:
                told.append(matmul(a, a).tolist())
            except FloatingPointError as error:
                told.append(str(error))
        return told, [str(w.message) for w in caught]

    before = products()
    assert run(nc.matmul) == run(np.matmul)
    assert products() == before + 1


def test_references():
    a = np.random.default_rng(9).random((30, 30))
    v, out, dtype = a[0].copy(), np.empty((30, 30)), a.dtype

    def calls():
        for x, y in itertools.product((a, v), repeat=2):
            nc.matmul(x, y)
        nc.matmul(a, a, out=out)
        with pytest.raises(ValueError):
            nc.matmul(a, v[:3])
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            nc.matmul(a * 1e300, a * 1e300, out=out)

    assert_references_stay(calls, (a, v, out, dtype, nc.matmul))
