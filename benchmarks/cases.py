"""The named cases of compare.py: operands, targets, and how results are compared."""

from dataclasses import dataclass, field

import layouts
import numpy as np
from measuring import Call

# A target holds for as many threads, or more: NumPy's time / ours.
SHORT = {1: 2.0}
ROWS = {1: 1.7, 2: 3.2, 16: 12.0}
OUTER = {1: 4.0, 2: 8.0}
SLICES = {1: 2.2, 2: 3.5}
MIXED = {1: 1.2, 2: 2.0, 16: 8.0}
HALF = {1: 25.0, 2: 45.0}
SUM = {1: 1.6, 2: 2.2}
WIDENED_SUM = {1: 1.5, 2: 1.8, 16: 8.0}
MAXIMUM = {2: 1.7, 16: 6.0}
RUNNING_COLUMNS = {1: 4.0, 2: 5.0, 16: 8.0}
RUNNING_ROWS = {2: 1.5, 16: 6.0}
METHOD_OUTER = {1: 1.7, 2: 2.5}
HALF_SUM = {1: 20.0, 2: 20.0}
AXIS_SUM = {1: 1.2, 2: 1.8, 16: 8.0}
FRESH = {2: 1.7, 16: 5.0}
REPEATED = {1: 2.0}
CONVERTED = {1: 1.8, 2: 2.5, 16: 12.0}
CONVERTED_FRESH = {1: 1.4, 2: 1.8, 16: 6.0}
SEGMENTS = {1: 1.2, 2: 1.7, 16: 7.0}
MASKED_SUM = {1: 1.5, 2: 2.0, 16: 8.0}
MASKED = {1: 1.5, 2: 2.0, 16: 8.0}
CONVERTED_PAIRS = ("fd", "id", "ld", "il", "fi", "bi", "ef", "?d")
READ_SHARE = 0.85  # of the bandwidth of reading, by sums of one axis on 16 threads

QUICK_SIDE = 64  # the longest side of operands that only show that all works


@dataclass
class Case:
    """One row of the table: what is called, on which operands."""

    op: str
    layout: str
    dtype: str
    shape: tuple
    output: str = "out="  # or "new"
    targets: dict = field(default_factory=dict)
    axis: int | tuple | None = None
    read_share: float | None = None
    widened: str | None = None  # dtype= of a reduction
    other: str | None = None  # dtype of b
    true: float | None = None  # share of a mask that is true
    segment: int | None = None  # elements that reduceat reduces at a time

    def __post_init__(self):
        self.dtype = np.dtype(self.dtype)

    @property
    def name(self):
        output = f", {self.output}" if "." not in self.op else ""
        widened = f" in {np.dtype(self.widened)}" if self.widened else ""
        other = f", {np.dtype(self.other)}" if self.other else ""
        where = "" if self.true is None else f", where={self.true:.0%}"
        by = "" if self.segment is None else f" by {self.segment}"
        return f"{self.op} {self.dtype}{other}{widened} {self.layout}{by}{output}{where}"

    @property
    def has_peers(self):
        return self.op in ("add", "multiply", "add.reduce", "add.at") and not (
            self.widened or self.other or self.true
        )

    @property
    def size(self):
        return "x".join(f"{side:,}" for side in self.shape)

    def target(self, threads):
        """The ratio to reach, None if none was set."""
        at_most = [key for key in self.targets if key <= threads]
        return self.targets[max(at_most)] if at_most else None

    def operands(self):
        """Arrays by the name that they have in calls."""
        if self.op == "add.at":
            return _scattered(*self.shape)
        if self.op.endswith((".reduce", ".accumulate")):
            left_out = 3 if "cropped" in self.layout else 0  # of each row
            whole = (*self.shape[:-1], self.shape[-1] + left_out)
            names = {"a": _to_reduce(whole, self.dtype)[..., left_out:]}
            if self.true is not None:
                names["mask"] = np.random.default_rng(3).random(self.shape) < self.true
            return names
        if self.op.endswith(".reduceat"):
            indices = np.arange(0, self.shape[self.axis], self.segment)
            return {"a": _to_reduce(self.shape, self.dtype), "indices": indices}
        if self.op.endswith(".outer"):
            rows, columns = self.shape
            return {
                "a": layouts.values((rows,), self.dtype, 1),
                "b": layouts.values((columns,), self.dtype, 2),
            }
        rows, columns = self.shape if len(self.shape) == 2 else (self.shape[0], 1)
        a, b = layouts.LAYOUTS[self.layout](rows, columns, self.dtype)
        names = {"a": a, "b": b if self.other is None else b.astype(self.other)}
        if self.output == "out=":
            names["out"] = layouts.empty_out(a, b, np.result_type(*names.values()))
        if self.true is not None:
            names["mask"] = np.random.default_rng(3).random(a.shape) < self.true
        return names

    def call(self, library, names):
        """The call of a library with NumPy's interface."""
        op, _, method = self.op.partition(".")
        ufunc = getattr(library, op)
        out = ", out=out" if "out" in names else ""
        if method == "at":
            return Call("f(target, indices, values)", {**names, "f": ufunc.at})
        if method in ("reduce", "accumulate"):
            axis = "" if self.axis is None else f", axis={self.axis}"
            dtype = f", dtype={self.widened!r}" if self.widened else ""
            where = ", where=mask" if "mask" in names else ""
            return Call(f"f(a{axis}{dtype}{where})", {**names, "f": getattr(ufunc, method)})
        if method == "reduceat":
            return Call(f"f(a, indices, {self.axis})", {**names, "f": ufunc.reduceat})
        if method == "outer":
            return Call("f(a, b)", {**names, "f": ufunc.outer})
        where = ", where=mask" if "mask" in names else ""
        return Call(f"f(a, b{out}{where})", {**names, "f": ufunc})

    def result(self, call, names):
        """What a call computes, in an array of its own."""
        written = next((name for name in ("target", "out") if name in names), None)
        if written is None:
            return np.array(call())
        names[written].fill(0)
        call()
        return names[written].copy()

    def same(self, expected, result):
        """Whether our result is NumPy's."""
        return expected.dtype == result.dtype and np.array_equal(expected, result)

    def near(self, expected, result):
        """Whether a peer's result is right at all: some add up in order, in low precision."""
        tolerance = float(np.finfo(self.dtype).eps) ** 0.5
        return np.allclose(expected, result, rtol=tolerance, atol=0)


def _to_reduce(shape, dtype):
    if np.dtype(dtype).kind == "b":
        return np.zeros(shape, bool)  # nothing ends the search
    if np.dtype(dtype).kind in "iu":
        return layouts.values(shape, dtype, 1)
    # Small enough that the sum of 3e7 fits float16, but no subnormal numbers.
    return layouts.values(shape, dtype, 1) * np.dtype(dtype).type(2.0**-12)


def _scattered(n):
    rng = np.random.default_rng(0)
    return {
        "target": np.zeros(max(n // 10, 1)),
        "indices": rng.integers(0, max(n // 10, 1), n),
        "values": rng.random(n),
    }


def _all():
    for n in (1, 8, 100, 1000):
        for output in ("out=", "new"):
            yield Case("add", "contiguous", "d", (n,), output, SHORT)
    yield Case("add", "array, scalar", "d", (10**6,))
    for op, dtype in (("maximum", "b"), ("maximum", "i"), ("logical_and", "?")):
        yield Case(op, "array, scalar", dtype, (10**5,), targets=REPEATED)
    yield Case("add", "(n,m), (m,)", "d", (10000, 100), targets=ROWS)
    yield Case("add", "(n,1), (1,m)", "d", (1000, 1000), targets=OUTER)
    yield Case("add", "a[::2], b[::2]", "d", (500, 1000), targets=SLICES)
    yield Case("add", "a[:, ::2], b[:, ::2]", "d", (1000, 500))
    yield Case("add", "a.T, b.T", "d", (1000, 1000))
    yield Case("add", "C, F order", "d", (1000, 1000), targets=MIXED)
    yield Case("add", "C, F order", "d", (4000, 4000), targets=MIXED)
    for op in ("add", "multiply"):
        yield Case(op, "contiguous", "e", (10**6,), targets=HALF)
    for output, targets in (("out=", {}), ("new", FRESH)):
        yield Case("add", "contiguous", "f", (3 * 10**7,), output, targets)
    for dtype, other in CONVERTED_PAIRS:
        for n in (1000, 8000):
            yield Case("add", "contiguous", dtype, (n,), other=other)
        for n in (10**6, 10**7):
            yield Case("add", "contiguous", dtype, (n,), targets=CONVERTED, other=other)
            yield Case("add", "contiguous", dtype, (n,), "new", CONVERTED_FRESH, other=other)
    for share in (0.5, 0.02, 0.98):
        targets = MASKED if share == 0.5 else {}
        yield Case("add", "contiguous", "d", (10**7,), targets=targets, true=share)
    for dtype in "fde":
        targets = HALF_SUM if dtype == "e" else SUM
        yield Case("add.reduce", "1-D", dtype, (3 * 10**7,), "new", targets, None, READ_SHARE)
    for axis in (0, 1):
        yield Case("add.reduce", f"axis {axis}", "f", (7000, 7000), "new", AXIS_SUM, axis)
    for dtype in "fil":
        yield Case("add.reduce", "1-D", dtype, (10**7,), "new", WIDENED_SUM, widened="d")
    for dtype in "fdi":
        for layout, axis in (("1-D", None), ("axis 0", 0), ("axis 1", 1)):
            shape = (10**6,) if axis is None else (1000, 1000)
            yield Case("maximum.reduce", layout, dtype, shape, "new", MAXIMUM, axis)
    yield Case("logical_or.reduce", "1-D", "?", (10**7,), "new", MAXIMUM)
    for dtype in "dli":
        for axis, targets in ((0, RUNNING_COLUMNS), (1, RUNNING_ROWS)):
            yield Case("add.accumulate", f"axis {axis}", dtype, (3000, 3000), "new", targets, axis)
    yield Case("add.accumulate", "1-D", "i", (10**7,), "new", RUNNING_ROWS)
    for op, dtype in (("add", "d"), ("maximum", "h")):
        yield Case(f"{op}.accumulate", "axis 0, cropped", dtype, (1000, 500, 3), "new", axis=0)
    for dtype, share in (("d", 0.5), ("d", 0.98), ("f", 0.5), ("l", 0.5)):
        targets = MASKED_SUM if share == 0.5 else {}
        yield Case("add.reduce", "1-D", dtype, (10**7,), "new", targets, true=share)
    yield Case("add.reduce", "axes 0, 2", "d", (300, 40, 500), "new", MASKED_SUM, (0, 2), true=0.5)
    for dtype, segment in (("d", 10), ("d", 1000), ("f", 10), ("l", 10)):
        targets = SEGMENTS if dtype == "d" else {}
        yield Case("add.reduceat", "1-D", dtype, (10**7,), "new", targets, axis=0, segment=segment)
    for axis in (0, 1):
        yield Case("add.reduceat", f"axis {axis}", "d", (3000, 3000), "new", axis=axis, segment=10)
    yield Case("multiply.outer", "1-D, 1-D", "d", (1500, 1500), "new", METHOD_OUTER)
    yield Case("add.at", "1-D", "d", (10**6,), "new")


def named_cases(quick, match):
    """Those with `match` in their name; with `quick` on small operands, and without targets."""
    for case in _all():
        if match not in case.name:
            continue
        if quick:
            case.shape = tuple(min(side, QUICK_SIDE) for side in case.shape)
            case.targets, case.read_share = {}, None
        yield case
