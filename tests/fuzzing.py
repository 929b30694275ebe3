"""Cases for test_fuzz.py: a compact description, and the operands, layouts and calls made of it.

Everything random beyond the description comes from one Generator seeded by it, so that a case runs
the same way twice: once with NumPy's ufunc, once with ours, each on memory of its own.
"""

from typing import NamedTuple

import numpy as np

import numc_ufuncs
from numc_ufuncs import _core
from numc_ufuncs._ufuncs import own

OWN = tuple(name for name, ufunc in own.items() if ufunc.signature is None)
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")

FLOATS = tuple("efdgFDG")
NUMBERS = tuple("?bBhHiIlLqQ") + FLOATS
TIMES = ("m8[s]", "m8[ms]", "m8", "M8[D]", "M8[us]")
OTHERS = ("O", "U3", "S2")

LAYOUTS = (
    "C", "strided", "reversed", "broadcast", "transposed", "unaligned", "record", "swapped",
    "flipped", "padded", "F", "repeated", "zero-d", "numpy scalar", "python scalar",
)  # fmt: skip
ARRAY_LAYOUTS = ("C", "strided", "reversed", "F", "unaligned", "record", "swapped", "padded")
SIZES = ("tiny", "medium", "large", "large")
OUTS = (
    "none", "fresh", "fresh", "in place", "in place", "shifted", "shifted", "turned",
    "other dtype", "aliased dtype", "wrong shape",
)  # fmt: skip
WHERES = ("none", "random", "runs", "row", "False")
ERRORS = ("warn", "ignore", "raise")

PYTHON_SCALARS = (
    3,
    -1,
    True,
    False,
    300,
    2**40,
    2**63,
    -(10**30),
    2.5,
    -0.0,
    float("inf"),
    float("nan"),
    1e300,
    2 - 3j,
)

# NumPy 2.5 crashes where the cast to another unit overflows: it raises without the GIL.
TIMES_OVERFLOW = np.lib.NumpyVersion(np.__version__) < "2.5.0.dev0"

GUARD_BYTES = 4096  # around every operand: room for shifted outputs, and a trap for stray writes


class Case(NamedTuple):
    ufunc: str
    method: str
    dtypes: tuple
    layouts: tuple
    size: str
    out: str
    where: str
    errors: str
    seed: int
    policy: str = "forced"
    memory: str = ""  # of our operands, and results, on a device; as it is if empty


class Policy(NamedTuple):
    """How many threads a call may use; and struct policy."""

    threads: int
    threshold: int
    awaits_workers: bool
    small_blocks: bool


POLICIES = {
    "forced": Policy(3, 1, True, True),
    "late": Policy(3, 1, False, True),  # workers come late or never, and steal chunks
    "early": Policy(16, 500, False, False),  # before it pays, in large blocks
    "production": Policy(3, 0, False, False),  # and whether threads pay has to be learnt
}


def with_policy(case, policy):
    """The case under a policy; in production, arrays must be longer for threads to come."""
    if (
        policy == "production"
        and getattr(case, "size", "") == "large"
        and not set(OTHERS) & set(case.dtypes)
    ):
        case = case._replace(size="long")
    return case._replace(policy=policy)


def own_case(choose, seed):
    method = choose(
        ("call", "call", "call", "call", "call", "reduce", "accumulate", "reduceat", "outer", "at")
    )
    first = choose(NUMBERS * 4 + TIMES + OTHERS)
    second = choose((first, first, first, choose(NUMBERS), choose(NUMBERS + TIMES + OTHERS)))
    return Case(
        choose(OWN),
        method,
        (first, second),
        (choose(LAYOUTS), choose(LAYOUTS)),
        choose(SIZES),
        choose(("none", "none", "none") + OUTS),
        choose(("none",) * 4 + WHERES),
        choose(("warn", "warn") + ERRORS),
        seed,
    )


def plain_case(choose, seed):
    """Calls with little that is unusual, which are those that the short way takes."""
    name = choose(OWN * 30 + tuple(NUMPY_UFUNCS))
    dtypes = (choose(NUMBERS),) * 2
    if name not in OWN:
        dtypes = tuple(choose(tuple(NUMPY_UFUNCS[name].types)).partition("->")[0])
    layouts = ("C", "C", "C", "F", "transposed", "flipped", "strided", "repeated", "broadcast")
    return Case(
        name,
        "call",
        tuple({"m": TIMES[1], "M": TIMES[4]}.get(d, d) for d in dtypes),
        tuple(choose(layouts * 3 + LAYOUTS) for _ in dtypes),
        choose(SIZES),
        choose(("none",) * 24 + ("fresh",) * 8 + OUTS),
        choose(("none",) * 40 + WHERES),
        choose(("warn", "warn") + ERRORS),
        seed,
    )


def device_case(choose, seed):
    """Plain calls of what devices compute, in all kinds of memory."""
    case = plain_case(choose, seed)
    dtype = choose(tuple("?bHiLefdFD") * 3 + NUMBERS)
    return case._replace(
        ufunc=choose(("add", "subtract", "multiply", "divide")),
        dtypes=(dtype, dtype),
        layouts=tuple((*case.layouts, *case.layouts)[:2]),
        memory=choose(("system", "pinned", "managed")),
    )


def ranged_case(choose, seed):
    """Calls of NumPy's loops with operands that go different ways, larger than NumPy's buffer."""
    name = choose(tuple(name for name in NUMPY_UFUNCS if name not in OWN))
    dtypes = tuple(choose(tuple(NUMPY_UFUNCS[name].types)).partition("->")[0])
    layouts = ("C", "F", "transposed", "flipped", "strided", "repeated", "broadcast", "zero-d")
    return Case(
        name,
        "call",
        tuple({"m": TIMES[1], "M": TIMES[4]}.get(d, d) for d in dtypes),
        tuple(choose(layouts) for _ in dtypes),
        "huge",
        choose(("none", "none", "none", "fresh")),
        "none",
        choose(ERRORS),
        seed,
    )


def mixed_case(choose, seed):
    """Calls with inputs of several dtypes, larger than NumPy's buffer: elements are converted."""
    name = choose(OWN * 4 + tuple(NUMPY_UFUNCS))
    inputs = NUMPY_UFUNCS[name].nin if name in NUMPY_UFUNCS else 2
    layouts = ("C",) * 20 + ("F", "transposed", "flipped", "strided", "repeated", "broadcast") * 2
    return Case(
        name,
        "call",
        tuple(choose(NUMBERS) for _ in range(inputs)),
        tuple(choose(layouts + LAYOUTS) for _ in range(inputs)),
        "huge",
        choose(("none",) * 4 + ("fresh",) * 4 + ("other dtype",) * 2 + OUTS),
        choose(("none",) * 8 + WHERES),
        choose(("warn", "warn") + ERRORS),
        seed,
    )


def few_case(choose, seed):
    """The same of few elements, which NumPy casts as a whole in one axis, else in its buffer."""
    name = choose(tuple(NUMPY_UFUNCS))
    inputs = NUMPY_UFUNCS[name].nin
    layouts = ("C", "reversed", "strided", "F", "transposed", "flipped") * 5 + LAYOUTS
    return Case(
        name,
        "call",
        tuple(choose(NUMBERS) for _ in range(inputs)),
        tuple(choose(layouts) for _ in range(inputs)),
        choose(("tiny", "medium")),
        choose(("none",) * 12 + ("fresh",) * 12 + OUTS),
        choose(("none",) * 20 + WHERES),
        choose(("warn", "warn") + ERRORS),
        seed,
    )


def reduce_case(choose, seed):
    """Sums and products of whole arrays, the plain calls that our own `reduce` takes among them."""
    dtype = choose(NUMBERS)
    return Case(
        choose(("add", "add", "multiply")),
        "reduce",
        (dtype, dtype),
        (choose(("C", "F", "transposed", "flipped", "strided") * 5 + LAYOUTS), "C"),
        choose(SIZES),
        choose(("none",) * 16 + ("fresh",) * 8 + OUTS),
        choose(("none",) * 40 + WHERES),
        choose(("warn", "warn") + ERRORS),
        seed,
    )


def accumulate_case(choose, seed):
    """Running results of all that takes two operands, the plain calls that our own way takes among
    them."""
    folded = tuple(
        u for u in NUMPY_UFUNCS if NUMPY_UFUNCS[u].nin == 2 and NUMPY_UFUNCS[u].nout == 1
    )
    dtype = choose(NUMBERS)
    return Case(
        choose(("add", "add", "multiply", "maximum") * 8 + folded),
        "accumulate",
        (dtype, dtype),
        (choose(("C", "F", "transposed", "flipped", "strided") * 5 + LAYOUTS), "C"),
        choose(SIZES),
        choose(("none",) * 12 + ("fresh",) * 6 + ("in place",) * 3 + OUTS),
        "none",
        choose(("warn", "warn") + ERRORS),
        seed,
    )


def numpy_ufuncs():
    """Every element-wise ufunc in NumPy's namespace, by its own name."""
    found = {np._core.umath.clip.__name__: np._core.umath.clip}
    for name in sorted(dir(np)):
        ufunc = getattr(np, name)
        if type(ufunc) is np.ufunc and ufunc.signature is None and ufunc.ntypes > 0:
            found.setdefault(ufunc.__name__, ufunc)
    return found


NUMPY_UFUNCS = numpy_ufuncs()


def parallel_case(choose, seed):
    name = choose(tuple(NUMPY_UFUNCS))
    ufunc = NUMPY_UFUNCS[name]
    if choose((True, True, True, True, False)):
        dtypes = tuple(choose(tuple(ufunc.types)).partition("->")[0])
        dtypes = tuple({"m": choose(TIMES[:3]), "M": choose(TIMES[3:])}.get(d, d) for d in dtypes)
    else:
        dtypes = tuple(choose(NUMBERS + TIMES + OTHERS) for _ in range(ufunc.nin))
    folds = ufunc.nin == 2 and ufunc.nout == 1
    return Case(
        name,
        choose(("call",) * 10 + ("reduce", "accumulate") * folds),
        dtypes,
        tuple(choose(LAYOUTS) for _ in range(ufunc.nin)),
        choose(SIZES),
        choose(("none", "none", "none") + OUTS),
        choose(("none",) * 4 + WHERES),
        choose(("warn", "warn") + ERRORS),
        seed,
    )


def matmul_case(choose, seed):
    first = choose(NUMBERS + ("O",))
    return Case(
        "matmul",
        choose(("call", "call", "axes")),
        (first, choose((first, first, first, choose(NUMBERS + TIMES[:1] + ("O",))))),
        (choose(ARRAY_LAYOUTS), choose(ARRAY_LAYOUTS + ("own transpose",))),
        choose(SIZES),
        choose(("none", "none") + OUTS),
        choose(("none",) * 30 + ("random",)),
        choose(("warn", "warn") + ERRORS),
        seed,
    )


# ---- values ----

_FLOAT_OF = {"F": "f", "D": "d", "G": "g"}
_FLOAT_SPECIALS = {
    code: np.array(
        [
            np.inf,
            -np.inf,
            np.nan,
            -0.0,
            0.0,
            1.0,
            -1.0,
            i.max,
            i.min,
            i.smallest_subnormal,
            i.tiny,
            i.eps,
        ],
        dtype=code,
    )
    for code, i in ((c, np.finfo(c)) for c in "efdg")
}
_OBJECTS = (0, 1, -7, 3, 2**65, 1.5, -0.25, float("inf"), True, 12345678901234567890, 1e-300)


def _floats(rng, code, n):
    style = rng.integers(6)
    if style == 0 and code in "efd":  # every exponent, subnormals, NaNs with payloads
        size = np.dtype(code).itemsize
        return np.frombuffer(rng.bytes(n * size), code).copy()
    values = rng.standard_normal(n)
    values *= (1.0, 4.0, 100.0, 1e-4)[rng.integers(4)]
    with np.errstate(all="ignore"):
        values = values.astype(code)
    specials = _FLOAT_SPECIALS[code]
    if style <= 2 and n:  # a single special value: it is up to one thread to report it
        values[rng.integers(n)] = specials[rng.integers(len(specials))]
    elif style == 3:
        chosen = rng.random(n) < 0.2
        values[chosen] = specials[rng.integers(len(specials), size=n)[chosen]]
    return values


def _integers(rng, code, n):
    limits = np.iinfo(code)
    style = rng.integers(4)
    if style == 0:
        return np.frombuffer(rng.bytes(n * np.dtype(code).itemsize), code).copy()
    values = rng.integers(-9 if limits.min else 0, 10, size=n).astype(code)
    if style == 1:
        values = np.abs(values)  # an exponent that power() accepts
    if style == 2 and n:
        chosen = rng.random(n) < 0.1
        values[chosen] = rng.choice(np.array([limits.min, limits.max, 0], code), size=n)[chosen]
    return values


def random_values(rng, dtype, n):
    """`n` values of a dtype in native byte order, special ones among them in part of the cases."""
    code = dtype.char
    if code == "?":
        return rng.random(n) < (0.5, 0.05, 0.95)[rng.integers(3)]
    if code in _FLOAT_SPECIALS:
        return _floats(rng, code, n)
    if code in _FLOAT_OF:
        values = np.empty(n, dtype)
        values.real = _floats(rng, _FLOAT_OF[code], n)
        values.imag = _floats(rng, _FLOAT_OF[code], n)
        return values
    if code in "mM":
        values = rng.integers(-100000, 100000, size=n)
        if rng.integers(2):
            values[rng.random(n) < 0.1] = np.iinfo(np.int64).min  # NaT
        extreme = n and rng.integers(4) == 0
        if extreme and (TIMES_OVERFLOW or np.datetime_data(dtype)[0] == "generic"):
            values[rng.integers(n)] = np.iinfo(np.int64).max - rng.integers(3)
        return values.view(dtype)
    if code == "O":
        values = np.empty(n, dtype)
        values[:] = [_OBJECTS[i] for i in rng.integers(len(_OBJECTS), size=n)]
        if n and rng.integers(8) == 0:
            values[rng.integers(n)] = None
        return values
    if code in "US":
        return rng.choice(np.array(["", "a", "b", "ab", "12"], dtype), size=n)
    return _integers(rng, code, n)


# ---- memory ----


class View(NamedTuple):
    """An array within the memory number `base`."""

    base: int
    dtype: np.dtype
    shape: tuple
    strides: tuple
    offset: int

    def on(self, memory):
        base = memory[self.base]
        if base.dtype == object:
            view = np.lib.stride_tricks.as_strided(
                base[self.offset // 8 :], self.shape, self.strides
            )
            return view
        return np.ndarray(self.shape, self.dtype, base, self.offset, self.strides)


def _aligned_bytes(n):
    """Uninitialised bytes from a multiple of 64: both sides of a comparison are aligned alike."""
    whole = np.empty(n + 64, np.uint8)
    start = -whole.ctypes.data % 64
    return whole[start : start + n]


def copy_of(memory):
    copies = []
    for base in memory:
        copy = np.empty_like(base) if base.dtype == object else _aligned_bytes(base.size)
        copy[:] = base
        copies.append(copy)
    return copies


def place(rng, memory, dtype, shape, layout):
    """Add an array with random values to `memory`; return the view of it."""
    ndim = len(shape)
    kept = list(shape)
    if layout == "repeated":
        kept = [1 if rng.integers(2) else length for length in shape]
    is_object = dtype.char == "O"
    item = dtype.itemsize
    step = item * int(rng.integers(2, 4)) if layout == "strided" else item
    step += layout == "record" and not is_object
    axes = list(range(ndim))[::-1]
    if layout == "F":
        axes.reverse()
    elif layout == "transposed":
        axes = rng.permutation(ndim).tolist()
    strides, offset = [0] * ndim, GUARD_BYTES
    offset += layout == "unaligned" and not is_object
    for axis in axes:
        strides[axis] = step
        step *= max(kept[axis], 1) + (layout == "padded")
        turn = layout == "reversed" or (layout == "flipped" and rng.integers(2))
        if turn and kept[axis]:
            offset += (kept[axis] - 1) * strides[axis]
            strides[axis] = -strides[axis]
    total = max(step, item) + 2 * GUARD_BYTES + 8
    if is_object:
        base = np.full(total // 8, 5, object)
    else:
        base = _aligned_bytes(total)
        base.fill(0xA5)
    memory.append(base)
    stored = dtype.newbyteorder() if layout == "swapped" else dtype
    view = View(len(memory) - 1, stored, tuple(kept), tuple(strides), offset)
    values = random_values(rng, dtype, int(np.prod(kept, dtype=int)))
    view.on(memory)[...] = values.reshape(kept)
    if layout == "repeated":
        strides = tuple(s if k == n else 0 for s, k, n in zip(strides, kept, shape, strict=True))
        view = view._replace(shape=tuple(shape), strides=strides)
    return view


def random_shape(rng, size):
    if size == "tiny":
        return tuple(rng.integers(0, 5, size=rng.integers(0, 4)).tolist())
    ndim = (1, 1, 1, 2, 3)[rng.integers(5)]
    if size == "medium":
        return tuple(rng.integers(1, (0, 192, 14, 6)[ndim], size=ndim).tolist())
    past_numpys_buffer = size == "huge" or rng.integers(40) == 0
    least, most = (128, 160) if past_numpys_buffer else (3, 50)
    blocks = rng.integers(1000, 2000) if size == "long" else rng.integers(least, most)
    n = int(64 * blocks + (0, 1, -1, rng.integers(64))[rng.integers(4)])
    rows = int(rng.integers(2, 9))
    if ndim == 1:
        return (n,)
    rest = max(n // rows, 65)
    return (
        ((rows, rest), (rest, rows))[rng.integers(2)]
        if ndim == 2
        else (2, rows // 2 + 1, rest // 2 + 1)
    )


def _operand(rng, memory, dtype, shape, layout):
    """A View, or a scalar."""
    if layout == "python scalar":
        return PYTHON_SCALARS[rng.integers(len(PYTHON_SCALARS))]
    if layout == "numpy scalar":
        return random_values(rng, dtype, 1)[0]
    if layout == "zero-d":
        return place(rng, memory, dtype, (), "C")
    if layout == "broadcast":
        drop = int(rng.integers(len(shape) + 1))
        shape = [1 if rng.integers(3) == 0 else length for length in shape[drop:]]
        layout = "C"
    return place(rng, memory, dtype, tuple(shape), layout)


def _shape_of(operand):
    return operand.shape if isinstance(operand, View) else ()


def _dtype_of(operand):
    if isinstance(operand, View):
        return operand.dtype
    return type(operand) if type(operand) in (int, float, complex) else np.asarray(operand).dtype


class Call(NamedTuple):
    """What to call: operands and keywords may be Views, which each side replaces by its arrays."""

    memory: list
    method: str
    args: list
    keywords: dict
    outs: tuple = ()  # Views or None


def _natural_dtypes(ufunc, operands):
    try:
        dtypes = ufunc.resolve_dtypes((*map(_dtype_of, operands), *(None,) * ufunc.nout))
        return list(dtypes[ufunc.nin :])
    except TypeError:
        return [np.dtype("d")] * ufunc.nout


def _one_out(rng, memory, mode, natural, shape, views):
    if natural.char in "SU":
        natural = np.dtype(natural.char + "6")
    elif natural.char == "T":
        return None
    view = views[rng.integers(len(views))] if views else None
    if mode == "fresh" or view is None or (mode != "in place" and view.dtype.char == "O"):
        return place(rng, memory, natural, shape, ARRAY_LAYOUTS[rng.integers(len(ARRAY_LAYOUTS))])
    if mode == "in place":
        return view
    if mode == "other dtype":
        other = np.dtype(NUMBERS[rng.integers(len(NUMBERS))])
        return place(rng, memory, other, shape, ARRAY_LAYOUTS[rng.integers(len(ARRAY_LAYOUTS))])
    if mode == "wrong shape":
        return place(rng, memory, natural, (*shape[:-1], 3), "C")
    if mode == "turned":
        offset = view.offset + sum(
            s * (n - 1) for s, n in zip(view.strides, view.shape, strict=True) if n
        )
        return view._replace(offset=offset, strides=tuple(-s for s in view.strides))
    least = min((abs(s) for s in view.strides if s), default=view.dtype.itemsize)
    if mode == "aliased dtype" and natural.char not in "OSU" and natural.itemsize <= least:
        # Such as the real parts of what the input is: interleaved with it, or a part of it.
        places = least // natural.itemsize
        offset = view.offset + natural.itemsize * int(rng.integers(places))
        return view._replace(dtype=natural, offset=offset)
    shift = (1, -1, 2, -2, 3, -3, 64, -70)[rng.integers(8)] * least
    if abs(shift) + 64 > GUARD_BYTES:
        shift = least if least < 1024 else 0
    return view._replace(offset=view.offset + shift)


def _outs(rng, memory, case, ufunc, natural, shape, args):
    if case.out == "none":
        return ()
    views = [a for a in args if isinstance(a, View) and (a.shape == shape or rng.integers(10) == 0)]
    outs = [_one_out(rng, memory, case.out, dtype, shape, views) for dtype in natural]
    if len(outs) > 1 and rng.integers(3) == 0:
        outs[rng.integers(len(outs))] = None
    return tuple(outs) if any(out is not None for out in outs) else ()


def _where(rng, memory, mode, shape):
    if mode == "False":
        return False
    layout = ("C", "strided", "reversed")[rng.integers(3)]
    if mode == "row":
        shape = shape[1:]
    view = place(rng, memory, np.dtype("?"), shape, layout)
    mask = view.on(memory)
    if mode == "runs" and mask.size:
        cuts = np.sort(rng.integers(mask.size, size=6))
        mask[...] = (np.searchsorted(cuts, np.arange(mask.size)) % 2 == 1).reshape(shape)
    return view


def _broadcast_shape(shapes):
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return shapes[0]


def _common_keywords(rng, case, natural, keywords):
    if case.out in ("other dtype", "in place", "shifted", "turned") and rng.integers(4):
        keywords["casting"] = "unsafe"
    # Calls that are larger than NumPy's buffer are those that are read for their keywords.
    rare = 4 if case.size == "huge" else 12
    if rng.integers(rare) == 0:
        keywords["order"] = "CFKA"[rng.integers(4)]
    if rng.integers(rare) == 0:
        codes = FLOATS if rng.integers(2) else NUMBERS
        keywords["dtype"] = (
            np.dtype(codes[rng.integers(len(codes))]) if rng.integers(2) else natural[0]
        )
        if rng.integers(4) == 0:
            keywords["casting"] = ("no", "equiv", "safe", "same_kind", "unsafe")[rng.integers(5)]


def _plain_call(rng, case, ufunc):
    memory, shape = [], random_shape(rng, case.size)
    if case.method == "outer":
        shape = random_shape(rng, "tiny" if case.size == "tiny" else "medium")
        shapes = (
            [shape[-1:], shape[:1]]
            if case.size == "tiny"
            else [shape[-1:], (int(rng.integers(1, 40)),)]
        )
    else:
        shapes = [shape] * ufunc.nin
        if rng.integers(50) == 0:
            shapes[-1] = (*shape[:-1], 7)  # cannot be broadcast
    args = [
        _operand(rng, memory, np.dtype(d), s, layout)
        for d, s, layout in zip(case.dtypes, shapes, case.layouts, strict=True)
    ]
    if case.ufunc in COMPARISONS:
        # NumPy, 2.0 to 2.4, crashes in comparisons with a Python integer that the dtype cannot
        # hold, where the loop gets a mask or an output of the caller's.
        args = [3 if type(a) is int else a for a in args]
    if case.method == "outer":
        full = tuple(n for a in args for n in _shape_of(a))
    else:
        full = _broadcast_shape([_shape_of(a) for a in args])
    natural = _natural_dtypes(ufunc, args)
    outs = _outs(rng, memory, case, ufunc, natural, full, args)
    keywords = {}
    if case.where != "none":
        keywords["where"] = _where(rng, memory, case.where, full)
    _common_keywords(rng, case, natural, keywords)
    return Call(memory, case.method, args, keywords, outs)


def _fold(rng, case, ufunc):
    """reduce, accumulate or reduceat."""
    if case.dtypes[0] == "O" and case.ufunc == "multiply":  # a product of thousands of integers
        case = case._replace(size="tiny")
    memory, shape = [], random_shape(rng, case.size)
    layout = case.layouts[0]
    if layout in ("zero-d", "numpy scalar", "python scalar") and rng.integers(4):
        layout = "C"
    operand = _operand(rng, memory, np.dtype(case.dtypes[0]), shape, layout)
    shape = _shape_of(operand)
    if case.method == "accumulate" and 0 in getattr(operand, "strides", ()):
        # Onto an output like that, NumPy's loop would take it for a reduction.
        case = case._replace(out="fresh")
    ndim = len(shape)
    axis = int(rng.integers(-ndim, ndim)) if ndim and rng.integers(20) else 0
    keywords, kept = {"axis": axis}, list(shape)
    args = [operand]
    if case.method == "reduceat":
        length = shape[axis] if ndim else 1
        count = rng.integers(0, 9 if rng.integers(3) else 300)
        indices = rng.integers(0, max(length, 1), size=count)
        if rng.integers(2):
            indices.sort()
        args.append(indices)
        if ndim:
            kept[axis] = len(indices)
    elif case.method == "reduce":
        gone = {axis % ndim} if ndim else set()
        if rng.integers(3) == 0 and (ufunc.identity is not None or rng.integers(4) == 0):
            gone = set(range(ndim))
            if rng.integers(3) == 0:
                gone = {i for i in gone if rng.integers(2)}
            whole = len(gone) == ndim and rng.integers(2)
            keywords["axis"] = (
                None if whole else tuple(i - ndim * int(rng.integers(2)) for i in gone)
            )
        kept = [n for i, n in enumerate(shape) if i not in gone]
        if rng.integers(4) == 0:
            keywords["keepdims"] = True
            kept = [1 if i in gone else n for i, n in enumerate(shape)]
        if rng.integers(3) == 0:
            keywords["initial"] = PYTHON_SCALARS[
                rng.integers(4 if rng.integers(2) else len(PYTHON_SCALARS))
            ]
        if case.where != "none":
            keywords["where"] = _where(rng, memory, case.where, shape)
    if rng.integers(5) == 0:
        keywords["dtype"] = np.dtype(NUMBERS[rng.integers(len(NUMBERS))])
    if _dtype_of(operand) == np.dtype(object):
        # NumPy (seen in 2.4) loses references where a masked reduction casts from objects.
        keywords.pop("dtype", None)
        keywords.pop("where", None)
    try:
        natural = [ufunc.resolve_dtypes((np.dtype(_dtype_of(operand)),) * 2 + (None,))[2]]
    except TypeError:
        natural = [np.dtype("d")]
    widens = case.method == "reduce" and case.ufunc in ("add", "multiply")
    if widens and _dtype_of(operand) in [np.dtype(code) for code in "?bBhHiI"]:
        natural = [ufunc.reduce(np.zeros(1, _dtype_of(operand))).dtype]
    outs = _outs(rng, memory, case, ufunc, natural, tuple(kept), [operand])
    return Call(memory, case.method, args, keywords, outs)


def _at(rng, case, ufunc):
    memory = []
    if case.dtypes[1] in ("U3", "S2"):  # NumPy crashes when at() casts from strings
        case = case._replace(dtypes=case.dtypes[:1] * 2)
    shape = random_shape(rng, case.size) or (4,)
    target = place(rng, memory, np.dtype(case.dtypes[0]), shape, case.layouts[0])
    style = rng.integers(5)
    if style == 0:
        indices, picked = slice(None, None, int(rng.integers(1, 4))), None
    elif style == 1:
        indices = rng.random(shape[0]) < 0.5
        picked = (int(indices.sum()), *shape[1:])
    elif style == 2:
        picked = (int(rng.integers(0, 200)),)
        indices = tuple(rng.integers(-n, max(n, 1), size=picked) for n in shape)
    else:
        picked = (int(rng.integers(0, 300)), *shape[1:])
        indices = rng.integers(
            -shape[0] - (style == 4 and rng.integers(5) == 0), max(shape[0], 1), size=picked[0]
        )
    layout = case.layouts[1] if picked is not None else "zero-d"
    operand = _operand(rng, memory, np.dtype(case.dtypes[1]), picked or (), layout)
    return Call(memory, "at", [target, indices, operand], {})


def _matmul(rng, case, ufunc):
    memory = []
    if "O" in case.dtypes:
        case = case._replace(dtypes=("O", "O"), errors="ignore")
    most = {"tiny": 4, "medium": 18, "large": 41, "long": 41}[case.size]
    if "O" in case.dtypes:
        most = 5
    elif case.size == "long" and set(case.dtypes) <= set("?bBhHiIlLqQ"):
        most = 120
    m, k, p = rng.integers(most > 4, most, size=3).tolist()
    if case.out in ("in place", "shifted", "turned") and rng.integers(3):
        k = p = m
    wrong = int(rng.integers(40) == 0)
    batches = ((), (), (1,), (3,), (2, 3), (3, 1), (0,), (1, 1, 2))
    core = ((m, k), (k + wrong, p))
    shapes = [batches[rng.integers(len(batches))] + s for s in core]
    if case.method == "call":
        if rng.integers(8) == 0:
            shapes[0] = shapes[0][-1:]
        if rng.integers(8) == 0:
            shapes[1] = shapes[1][-2:-1]
    keywords = {}
    first = place(rng, memory, np.dtype(case.dtypes[0]), shapes[0], case.layouts[0])
    if case.layouts[1] == "own transpose":
        order = (
            (*range(len(shapes[0]) - 2), len(shapes[0]) - 1, len(shapes[0]) - 2)
            if len(shapes[0]) > 1
            else (0,)
        )
        second = first._replace(
            shape=tuple(first.shape[i] for i in order),
            strides=tuple(first.strides[i] for i in order),
        )
    else:
        second = place(rng, memory, np.dtype(case.dtypes[1]), shapes[1], case.layouts[1])
    full = _matmul_shape(first.shape, second.shape)
    if case.method == "axes":
        axes = []
        for ndim in (len(first.shape), len(second.shape), len(full)):
            chosen = rng.permutation(ndim)[:2] if rng.integers(4) == 0 else (ndim - 2, ndim - 1)
            axes.append(tuple(int(a) - (ndim if rng.integers(2) else 0) for a in chosen))
        keywords["axes"] = axes
    natural = _natural_dtypes(ufunc, [first, second])
    outs = _outs(rng, memory, case, ufunc, natural, full, [first, second])
    if "O" in case.dtypes:
        # NumPy's matmul of objects leaves dangling references when it fails: let it not fail.
        outs = ()
        for base in memory:
            if base.dtype == object:
                base[:] = [x if type(x) in (int, float) and abs(x) < 2**66 else 7 for x in base]
    if case.where != "none":
        keywords["where"] = _where(rng, memory, case.where, full)
    _common_keywords(rng, case, natural, keywords)
    return Call(memory, "call", [first, second], keywords, outs)


def _matmul_shape(a, b):
    rows = a[-2:-1] if len(a) > 1 else ()
    columns = b[-1:] if len(b) > 1 else ()
    return _broadcast_shape([a[:-2], b[:-2]]) + rows + columns


def make_call(case, ufunc):
    rng = np.random.default_rng(case.seed)
    if "O" in case.dtypes:
        # Python's integers would fill the memory, or Python's gcd of floats never end.
        if case.ufunc in ("power", "left_shift", "gcd", "lcm"):
            case = case._replace(dtypes=tuple("q" if d == "O" else d for d in case.dtypes))
        elif case.out not in ("none", "fresh"):  # NumPy crashes where objects overlap their output
            case = case._replace(out="fresh")
    units = {d for d in case.dtypes if d in TIMES}
    if len(units) > 1 and not TIMES_OVERFLOW and case.out not in ("none", "fresh"):
        case = case._replace(out="fresh")  # what overlaps is cast to another unit more than once
    if case.ufunc == "multiply" and {"U3", "S2"} & set(case.dtypes):
        case = case._replace(out="none")  # NumPy 2.0 repeats strings past the end of their output
    if case.ufunc == "matmul":
        return _matmul(rng, case, ufunc)
    if case.method in ("reduce", "accumulate", "reduceat"):
        return _fold(rng, case, ufunc)
    return _at(rng, case, ufunc) if case.method == "at" else _plain_call(rng, case, ufunc)


def pair_of(case):
    """NumPy's ufunc, and ours."""
    if case.ufunc == "matmul":
        return np.matmul, numc_ufuncs.matmul
    return NUMPY_UFUNCS[case.ufunc], numc_ufuncs.parallel(NUMPY_UFUNCS[case.ufunc])


def regions():
    return _core.regions()
