"""Random calls of every element-wise ufunc, of matmul, and of linear algebra: ours must do what
NumPy's does.

Compared are results bit by bit (any NaN equals any NaN; a product of float matrices may differ
from NumPy's where its error is no worse), dtypes, strides, all memory that a call could reach,
warnings and exceptions. NUMC_FUZZ_CASES=100000 sets the number of cases, and --hypothesis-seed
varies them.
"""

import functools
import os
import warnings
from collections import Counter
from fractions import Fraction

import _numc_test
import linalg_cases
import numpy as np
import pytest
from fuzzing import (
    POLICIES,
    Call,
    Case,
    View,
    accumulate_case,
    copy_of,
    device_case,
    few_case,
    make_call,
    matmul_case,
    mixed_case,
    own_case,
    pair_of,
    parallel_case,
    plain_case,
    ranged_case,
    reduce_case,
    regions,
    with_policy,
)
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import numc_ufuncs
from numc_ufuncs import _core

CASES = int(os.environ.get("NUMC_FUZZ_CASES", "0"))
SHARES = {
    "own": 0.2,
    "mixed": 0.1,
    "few": 0.1,
    "parallel": 0.25,
    "plain": 0.15,
    "ranged": 0.05,
    "device": 0.05,
    "reduce": 0.1,
    "accumulate": 0.05,
    "matmul": 0.1,
    "linalg": 0.1,
}
DEFAULT_CASES = 15000

cases_run = 0
regions_run = Counter()  # by policy
DRAWN_POLICIES = ("forced",) * 4 + ("early",) * 2 + ("late", "production")
reductions_run = [0, 0]  # of arrays above the loop, and in loops
accumulated = [0, 0]  # cases that accumulate, and those arrays of them
on_devices = Counter()  # cases, by where they were computed


# ---- one call ----


class Outcome:
    """What a call did: its results, its memory, what it said."""

    def __init__(self, ufunc, call, errors):
        self.memory = copy_of(call.memory)
        self.outs = tuple(self._own(out) for out in call.outs)
        keywords = {name: self._own(value) for name, value in call.keywords.items()}
        if self.outs:
            keywords["out"] = self.outs
        args = [self._own(arg) for arg in call.args]
        function = ufunc if call.method == "call" else getattr(ufunc, call.method)
        self.error = None
        self.results = ()
        with warnings.catch_warnings(record=True) as caught, np.errstate(**errors):
            warnings.simplefilter("always")
            try:
                results = function(*args, **keywords)
                self.results = results if isinstance(results, tuple) else (results,)
            except Exception as error:
                self.error = type(error), self._named(str(error), call, ufunc)
                if self._is_missing_loop(error):
                    self.error = TypeError, "no loop"
        self.warnings = [(w.category, self._named(str(w.message), call, ufunc)) for w in caught]

    @staticmethod
    def _is_missing_loop(error):
        # Which of the two NumPy raises depends on the calls before.
        return isinstance(error, np._core._exceptions._UFuncNoLoopError) or (
            isinstance(error, TypeError) and str(error).startswith("No loop matching")
        )

    @staticmethod
    def _named(text, call, ufunc):
        # NumPy says "encountered in add" where at() has an indexed loop, else "encountered in at".
        # Of signaling NaNs that it casts: "in cast" if the operand is broadcast, else "in add".
        dtypes = {arg.dtype for arg in call.args if isinstance(arg, View)}
        said = "at" if call.method == "at" else None
        if call.method == "call" and len(dtypes) > 1 and ufunc.signature is None:
            said = "cast"
        return text.replace(f"encountered in {said}", f"encountered in {ufunc.__name__}")

    def _own(self, operand):
        return operand.on(self.memory) if isinstance(operand, View) else operand


# ---- comparison ----


def _same_parts(a, b):
    numbers = (a == b) & (np.signbit(a) == np.signbit(b))
    return numbers | (np.isnan(a) & np.isnan(b))


def same_elements(a, b):
    """Element-wise: the same bits, or NaN on both sides."""
    if a.dtype.kind == "f":
        return _same_parts(a, b)
    if a.dtype.kind == "c":
        return _same_parts(a.real, b.real) & _same_parts(a.imag, b.imag)
    if a.dtype.kind == "O":
        pairs = zip(a.ravel(), b.ravel(), strict=True)
        return np.array(
            [type(x) is type(y) and repr(x) == repr(y) for x, y in pairs], bool
        ).reshape(a.shape)
    if a.dtype.kind in "mM":
        a, b = a.view("i8"), b.view("i8")
    return a == b


def assert_same_array(ours, theirs, mask=True):
    assert ours.dtype == theirs.dtype and ours.dtype.byteorder == theirs.dtype.byteorder
    assert ours.shape == theirs.shape
    same = same_elements(ours, theirs) | ~np.asarray(mask)
    if not same.all():
        where = tuple(int(i) for i in np.argwhere(~same)[0]) if same.ndim else ()
        count = int((~same).sum())
        raise AssertionError(
            f"{count} elements differ, first at {where}: {ours[where]!r} != {theirs[where]!r}"
        )


def _filter_bytes(base, outs):
    """The base without the elements of `outs`, which are compared as numbers."""
    for out in outs:
        view = out.on([base] * (out.base + 1))
        view[...] = np.zeros((), view.dtype)
    return base


def assert_same_memory(call, ours, theirs):
    for index, (a, b) in enumerate(zip(ours.memory, theirs.memory, strict=True)):
        if a.dtype == object:
            assert_same_array(a, b)
            continue
        if a.tobytes() == b.tobytes():
            continue
        written = [
            v for v in (*call.outs, *call.args[:1]) if isinstance(v, View) and v.base == index
        ]
        if call.method != "at":
            written = [v for v in written if any(v is out for out in call.outs)]
        # How far a loop gets before it raises is left open; flags raise after it.
        stopped = theirs.error is not None and theirs.error[0] is not FloatingPointError
        for view in () if stopped else written:
            assert_same_array(view.on(ours.memory), view.on(theirs.memory))
        # Apart from them, not one byte may differ.
        a, b = _filter_bytes(a.copy(), written), _filter_bytes(b.copy(), written)
        assert a.tobytes() == b.tobytes(), f"memory {index} differs outside the outputs"


# ---- products of matrices, whose order is free ----


def _exact(value):
    return (
        Fraction(int(value)) if value.dtype.kind in "biu" else Fraction(*value.as_integer_ratio())
    )


def _exactly(array):
    result = np.empty(array.shape, object)
    result.ravel()[:] = [_exact(x) for x in array.ravel()]
    return result


def assert_no_worse(ours, theirs, exact, magnitude, dtype):
    """Per element: as near to the exact value as NumPy's, or within the bound of sums in pairs."""
    largest = min(_exact(np.finfo(d).max) for d in (dtype, ours.dtype))
    eps = max(Fraction(float(np.finfo(d).eps)) for d in (dtype, ours.dtype))
    tiniest = _exact(np.finfo(ours.dtype).smallest_subnormal)
    for a, b, x, size in zip(
        ours.ravel(), theirs.ravel(), exact.ravel(), magnitude.ravel(), strict=True
    ):
        if bool(same_elements(np.asarray(a), np.asarray(b))):
            continue
        if size > largest / 4 and not (np.isfinite(a) and np.isfinite(b)):
            continue  # it depends on the order whether a partial result overflows
        assert np.isfinite(a) and np.isfinite(b), f"{a!r} != {b!r}"
        allowed = max(abs(_exact(b) - x), size * eps * 4 + tiniest)
        assert abs(_exact(a) - x) <= allowed, f"{a!r} is worse than {b!r}: exact is {float(x)!r}"


def assert_matmul_no_worse(call, ours, theirs, memory):
    if ours.dtype.kind == "c":  # an output for products of real numbers
        assert same_elements(ours.imag, theirs.imag).all()
        ours, theirs = ours.real, theirs.real
    a, b = (arg.on(memory).astype(ours.dtype) for arg in call.args)
    keywords = {"axes": call.keywords["axes"]} if "axes" in call.keywords else {}
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        # Special values reach only the elements that they are multiplied into. A partial sum that
        # overflows may meet one, or not.
        sizes = (np.abs(np.where(np.isfinite(x), x, 0)).astype("g") for x in (a, b))
        overflows = np.matmul(*sizes, **keywords) > np.finfo(ours.dtype).max / 4
        assert (overflows | (np.isnan(ours) == np.isnan(theirs))).all()
        return
    a, b = _exactly(a), _exactly(b)
    exact = np.asarray(np.matmul(a, b, **keywords), object)
    magnitude = np.asarray(np.matmul(np.abs(a), np.abs(b), **keywords), object)
    # An output may be wider than what the loop computes in.
    computed = np.result_type(*(arg.dtype for arg in call.args))
    dtype = computed if computed.kind == "f" else ours.dtype
    assert_no_worse(ours, theirs, exact, magnitude, dtype)


def may_reorder(name, call, result):
    """Whether another order of additions is as good."""
    return (
        name == "matmul"
        and result.dtype.kind in "fc"
        and all(arg.dtype.kind in "biuf" for arg in call.args)
    )


# ---- a case ----


def uninitialized_mask(call, result):
    """The elements of a result that a call with `where` and no `out` defines."""
    where = call.keywords.get("where", True)
    if call.method not in ("call", "outer") or where is True:
        return True
    where = where.on(call.memory) if isinstance(where, View) else where
    return np.broadcast_to(where, result.shape)


def steps_of(name, call, result):
    """The strides, but for those of single elements where NumPy casts beside a Python number, as
    logical functions do: its iterator then lays out the result."""
    casts = name.startswith("logical") and any(
        type(arg) in (int, float, complex) for arg in call.args
    )
    return [s for s, n in zip(result.strides, result.shape, strict=True) if n > 1 or not casts]


def assert_same_result(name, call, ours, theirs, index):
    a, b = ours.results[index], theirs.results[index]
    assert type(a) is type(b)
    if not isinstance(b, (np.ndarray, np.generic)):
        return assert_same_array(np.array(a, object), np.array(b, object))
    if not b.flags.owndata and ours.outs and ours.outs[min(index, len(ours.outs) - 1)] is not None:
        assert a is ours.outs[index]
    assert steps_of(name, call, a) == steps_of(name, call, b)
    a, b = np.asarray(a), np.asarray(b)
    mask = uninitialized_mask(call, b) if not (ours.outs and ours.outs[index] is not None) else True
    try:
        assert_same_array(a, b, mask)
    except AssertionError:
        if mask is not True or a.dtype != b.dtype or not may_reorder(name, call, b):
            raise
        assert_matmul_no_worse(call, a, b, copy_of(call.memory))
        if ours.outs:
            a[...] = b
        return True
    return False


def has_signaling_nan(call):
    """Whether an operand has NaNs that raise a flag when they are cast."""
    for arg in call.args:
        if isinstance(arg, View) and arg.dtype.char in "efdFD":
            real = arg.on(call.memory).astype(arg.dtype.newbyteorder("="))
            real = np.ascontiguousarray(real).view(arg.dtype.char.lower())
            quiet = 1 << (np.finfo(real.dtype).nmant - 1)
            if (np.isnan(real) & (real.view(f"u{real.itemsize}") & quiet == 0)).any():
                return True
    return False


def is_cast(call):
    return len({getattr(arg, "dtype", None) for arg in call.args}) > 1 or "dtype" in call.keywords


def has_nan(result):
    return np.asarray(result).dtype.kind in "fc" and bool(np.isnan(result).any())


def ignore_overflown(call, ours, theirs):
    """What a product leaves behind when it raises may have overflowed in another order."""
    for out in call.outs:
        if isinstance(out, View) and out.dtype.kind in "fc":
            a, b = out.on(ours.memory), out.on(theirs.memory)
            np.copyto(a, b, where=~(np.isfinite(a) & np.isfinite(b)))


def is_determined(case):
    """Whether NumPy answers alike each time: not always, where memory in common is cast."""
    answers = set()
    for _ in range(300):
        numpys, _ = pair_of(case)
        call = make_call(case, numpys)
        memory = Outcome(numpys, call, {"all": case.errors}).memory
        answers.add(b"".join(x.tobytes() for x in memory if x.dtype != object))
    return len(answers) == 1


def check(case):
    global cases_run
    cases_run += 1
    try:
        compare(case)
    except AssertionError:
        if case.out == "none" or is_determined(case):
            raise


def under(policy, run, memory=None):
    numc_ufuncs.set_config(threads=policy.threads, memory=memory)
    before = _numc_test.set_policy(*policy[1:])
    try:
        return run()
    finally:
        _numc_test.set_policy(*before)
        numc_ufuncs.set_config(threads=None, memory=None)


def compare(case):
    numpys, our = pair_of(case)
    call = make_call(case, numpys)
    errors = {"all": case.errors}
    theirs = Outcome(numpys, call, errors)
    if theirs.error is not None and theirs.error[0] is SystemError:
        return  # NumPy warned of a flag after its loop had raised
    before, regions_before = _core.reductions(), regions()
    memory = case.memory or None
    ours = under(POLICIES[case.policy], lambda: Outcome(our, call, errors), memory)
    regions_run[case.policy] += regions() - regions_before
    for kind, (now, then) in enumerate(zip(_core.reductions(), before, strict=True)):
        reductions_run[kind] += now - then
    flags_differ = False
    if case.ufunc == "matmul" and ours.error is None and not any(map(has_nan, ours.results)):
        # BLAS multiplies infinities by the zeros that it pads small matrices with.
        flags_differ = True
        for outcome in (ours, theirs):
            outcome.warnings = [w for w in outcome.warnings if not w[1].startswith("invalid")]
    if case.ufunc in ("fmax", "fmin") and has_signaling_nan(call):
        return  # NumPy's loop takes them for NaNs one by one, but not in vectors
    if ours.warnings != theirs.warnings and is_cast(call) and has_signaling_nan(call):
        # Some of NumPy's loops clear the flag that the cast of such a NaN has raised.
        for outcome in (ours, theirs):
            outcome.warnings = [w for w in outcome.warnings if not w[1].startswith("invalid")]
    raised = {error and error[0] for error in (ours.error, theirs.error)}
    if flags_differ and FloatingPointError in raised <= {None, FloatingPointError}:
        return  # there is no result to compare
    if case.ufunc == "matmul" and raised == {FloatingPointError}:
        ignore_overflown(call, ours, theirs)
        if ours.error != theirs.error and ours.error[1] == "invalid value encountered in cast":
            return  # of a NaN or an infinity; BLAS raised before
    if any(may_reorder(case.ufunc, call, np.asarray(result)) for result in ours.results):
        # What underflows is a term or the sum of some of them, or neither where they are fused.
        for outcome in (ours, theirs):
            outcome.warnings = [
                w for w in outcome.warnings if w[1] != "underflow encountered in matmul"
            ]
    casts_nan = any(w[1] == "invalid value encountered in cast" for w in ours.warnings)
    if case.ufunc == "matmul" and (casts_nan or any(map(has_nan, ours.results))):
        # BLAS likewise; and with a NaN as the sum, fused multiplication of halves does not tell of
        # infinity times zero.
        for outcome in (ours, theirs):
            outcome.warnings = [
                w for w in outcome.warnings if w[1] != "invalid value encountered in matmul"
            ]
    assert ours.error == theirs.error
    assert len(ours.results) == len(theirs.results)
    with np.errstate(all="ignore"):
        reordered = [
            assert_same_result(case.ufunc, call, ours, theirs, i) for i in range(len(ours.results))
        ]
        assert_same_memory(call, ours, theirs)
    if not any(reordered):
        assert ours.warnings == theirs.warnings


# ---- tests ----


@functools.lru_cache(None)
def _one_of(options):
    return st.sampled_from(options)


def strategy(describe, policies=DRAWN_POLICIES):
    @st.composite
    def cases(draw):
        case = describe(lambda options: draw(_one_of(options)), draw(st.integers(0, 2**32 - 1)))
        return with_policy(case, draw(_one_of(policies)))

    return cases()


def profile(share):
    return settings(
        max_examples=int((CASES or DEFAULT_CASES) * SHARES[share]),
        derandomize=CASES < DEFAULT_CASES,  # the same ones in CI, every time
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


@profile("own")
@given(strategy(own_case))
def test_own_ufuncs(case):
    check(case)


@profile("plain")
@given(strategy(plain_case))
def test_plain_calls(case):
    check(case)


@profile("ranged")
@given(strategy(ranged_case))
def test_calls_beyond_numpys_buffer(case):
    check(case)


@profile("device")
@given(case=strategy(device_case))
def test_calls_on_a_device(device, case):
    assert numc_ufuncs.get_config()["device"] == "cuda"
    check(case)
    on_devices[(numc_ufuncs.last_call() or {"device": "cpu"})["device"]] += 1


@profile("mixed")
@given(strategy(mixed_case))
def test_mixed_dtypes(case):
    check(case)


@profile("few")
@given(strategy(few_case, ("production", "production", "forced")))
def test_few_elements_of_mixed_dtypes(case):
    check(case)


@profile("reduce")
@given(strategy(reduce_case))
def test_reductions(case):
    check(case)


@profile("accumulate")
@given(strategy(accumulate_case))
def test_running_results(case):
    before = reductions_run[0]
    check(case)
    accumulated[0] += 1
    accumulated[1] += reductions_run[0] - before


@profile("parallel")
@given(strategy(parallel_case))
def test_every_ufunc_of_numpy(case):
    check(case)


@profile("matmul")
@given(strategy(matmul_case))
def test_matmul(case):
    check(case)


@profile("linalg")
@given(strategy(linalg_cases.random_case))
def test_linear_algebra(case):
    args, is_regular = linalg_cases.operands_of(case)
    under(POLICIES[case.policy], lambda: linalg_cases.compare(case.call, args, is_regular))


def test_threads_ran(capsys):
    with capsys.disabled():
        one_loop, nested, ranged, whole, products = _core.short_calls()
        print(
            f"\n{cases_run} cases, threaded regions by policy: {dict(regions_run)}; "
            f"short calls: {one_loop} in one loop, {nested} over axes, {ranged} in ranges, "
            f"{whole} as a whole, {products} products"
        )
    if cases_run == 0:
        pytest.skip("no case ran before")
    assert regions_run["forced"] > cases_run / 20
    assert regions_run["late"] > 0 and regions_run["early"] > 0
    assert whole > cases_run / 400 and products > 0
    # Fewer go over axes with SSE2, where fewer loops are ours.
    assert one_loop > cases_run / 20 and nested > cases_run / 400 and ranged > 0


def test_devices_computed():
    if sum(on_devices.values()) == 0:
        pytest.skip("no case ran before")
    assert on_devices["fake"] > sum(on_devices.values()) / 4


def test_reductions_ran(capsys):
    arrays, loops = reductions_run
    with capsys.disabled():
        print(f"\n{arrays} arrays reduced by our methods, {loops} calls of loops by our kernels")
    if cases_run == 0:
        pytest.skip("no case ran before")
    assert loops > cases_run / 100
    if np.lib.NumpyVersion(np.__version__) >= "2.2.0":
        assert arrays > cases_run / 120
        assert accumulated[1] >= accumulated[0] / 10


def test_a_product_of_infinity_and_zero_that_is_cast():
    for errors in ("raise", "warn"):
        compare(
            Case(
                *("matmul", "axes", ("e", "i"), ("C", "strided"), "large", "in place", "none"),
                *(errors, 1068),
            )
        )


# ---- the comparison itself ----


def test_another_order_of_a_dot_product_is_accepted():
    a, b = np.random.default_rng(2).standard_normal((2, 20, 20)).astype("f")
    memory = [a.view(np.uint8).ravel(), b.view(np.uint8).ravel()]
    views = [View(i, a.dtype, a.shape, a.strides, 0) for i in range(2)]
    call = Call(memory, "call", views, {})
    theirs = a @ b
    ours = (a[:, 10:] @ b[10:]) + (a[:, :10] @ b[:10])
    assert_matmul_no_worse(call, ours, theirs, memory)
    with pytest.raises(AssertionError, match="worse"):
        assert_matmul_no_worse(call, ours + np.float32(1e-2), theirs, memory)


def test_differences_are_seen():
    a = np.array([1.0, np.nan, 0.0])
    assert_same_array(a, np.negative(np.negative(a)))
    for other in ([1.0, np.nan, -0.0], [1.0, 2.0, 0.0], [np.nan, np.nan, 0.0]):
        with pytest.raises(AssertionError, match="1 elements differ"):
            assert_same_array(np.array(other), a)
