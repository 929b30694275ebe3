"""NumPy's own ufuncs, led to ours: the objects stay, what computes them changes."""

import asyncio
import contextvars
import pickle
import subprocess
import sys
import threading

import _numc_test
import numpy as np
import pytest
from checks import in_threads

import numc_ufuncs as nc

pytestmark = pytest.mark.thread_unsafe  # of the whole process

CORE = nc._core


@pytest.fixture
def patch():
    nc.patch_numpy()
    yield
    nc.restore_numpy()


def ours(function):
    """How many calls inside of it the clones computed, or reduced."""
    before = sum(CORE.short_calls()) + sum(CORE.reductions()) + sum(CORE.matmuls())
    function()
    return sum(CORE.short_calls()) + sum(CORE.reductions()) + sum(CORE.matmuls()) - before


A = np.linspace(0.5, 2, 3001)
B = np.linspace(0.5, 2, 1_000_000)
M = np.arange(64.0).reshape(8, 8)

# What unchanged programs write, each led to a clone.
WRITTEN = {
    "call": lambda: np.multiply(A, A),
    "operator": lambda: A * 3,
    "in place": lambda: A.copy().__iadd__(1),
    "comparison": lambda: A < 1,
    "method of an array": lambda: A.sum(),
    "function": lambda: np.sum(A),
    "mean": lambda: np.mean(A),
    "maximum": lambda: B.max(),
    "any": lambda: np.any(B > 3),
    "reduce": lambda: np.add.reduce(A),
    "reduceat": lambda: np.add.reduceat(np.ones(200_000, int), [0, 100_000]),
    "accumulate": lambda: np.cumsum(np.ones((4, 300_000)), axis=1),
    "outer": lambda: np.multiply.outer(A, A),
    "np.outer": lambda: np.outer(A, A),
    "matrix product": lambda: M @ M,
    "a ufunc without a public name": lambda: np.clip(A, 1, 1.5),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_programs_write_is_led_to_ours_and_back(name):
    expected = WRITTEN[name]()
    assert ours(WRITTEN[name]) == 0
    nc.patch_numpy()
    try:
        with nc.config(threads=2):  # whatever the machine has: for one, some are NumPy's
            assert ours(WRITTEN[name]) > 0
        np.testing.assert_array_equal(WRITTEN[name](), expected)
    finally:
        nc.restore_numpy()
    assert ours(WRITTEN[name]) == 0


def test_references_taken_before_are_led_too():
    plus, total, method = np.add, np.add.reduce, A.sum
    with nc.patched():
        assert ours(lambda: plus(A, A)) > 0
        assert ours(lambda: total(A)) > 0
        assert ours(method) > 0


def test_the_objects_stay(patch):
    assert type(np.add) is np.ufunc and isinstance(np.add, np.ufunc)
    assert np.add is np._core.umath.add
    assert pickle.loads(pickle.dumps(np.add)) is np.add
    assert getattr(np.add, "__module__", "numpy") == "numpy"  # from NumPy 2.2 on
    assert "reduce" not in getattr(np.add, "__dict__", {})
    assert np.add.reduce.__self__ is np.add


class Seen:
    """Notes the ufuncs that ask it."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return ufunc, method


@pytest.mark.parametrize("large", [A, np.ones(100_000)], ids=["small", "large"])
def test_overrides_see_numpys_ufunc(patch, large):
    seen = Seen()
    assert np.add(large, seen) == (np.add, "__call__")
    assert large + seen == (np.add, "__call__")
    assert np.add(large, large, where=True, out=(seen,)) == (np.add, "__call__")
    assert np.matmul(np.ones((3, 3)), seen) == (np.matmul, "__call__")
    assert np.add.reduce(seen) == (np.add, "reduce")
    assert np.add.accumulate(seen) == (np.add, "accumulate")
    assert np.add.reduceat(seen, [0]) == (np.add, "reduceat")
    assert np.add.reduceat(large, seen) == (np.add, "reduceat")
    assert np.add.outer(large, seen) == (np.add, "outer")


class Wrapped(np.ndarray):
    def __array_wrap__(self, array, context=None, return_scalar=False):
        return array, context[0] if context else None


def test_subclasses_see_numpys_ufunc(patch):
    wrapped = np.ones(100_000).view(Wrapped)
    assert np.add(wrapped, 1)[1] is np.add


@pytest.mark.parametrize("n", [3, 100_000])
def test_errors_name_numpys_ufunc(patch, n):
    integers = np.ones(n, int)
    for function in (
        lambda: np.add(integers, 0.5, out=integers),
        lambda: np.add(integers[1:], 0.5, out=integers[:-1]),
        lambda: np.add.reduce(integers, out=np.empty((), bool), casting="no"),
        lambda: np.bitwise_and.reduce(np.ones(n)),
        lambda: np.subtract(np.ones(n, bool), np.ones(n, bool)),
        lambda: np.matmul(np.ones((3, 3)), np.ones((3, 3)), out=np.ones((3, 3), int)),
        lambda: np.add(np.ones(n, "U1"), 1),
    ):
        with pytest.raises(TypeError) as error:
            function()
        named = getattr(error.value, "ufunc", None)
        assert named is None or not any(named is c for c in nc._ufuncs._clones.values())


def test_overlapping_operands(patch):
    a = np.arange(100_000.0)
    expected = a.copy()
    expected[1:] = a[1:] + a[:-1]
    np.add(a[1:], a[:-1], out=a[1:])
    np.testing.assert_array_equal(a, expected)


def test_names():
    nc.patch_numpy(["add"])
    try:
        assert nc.is_patched() and nc.is_patched("add") and not nc.is_patched("multiply")
        assert ours(lambda: A + A) > 0 and ours(lambda: A * A) == 0
        nc.patch_numpy(["multiply"])
        assert nc.is_patched("add") and nc.is_patched("multiply")
    finally:
        nc.restore_numpy()
    assert not nc.is_patched() and not nc.is_patched("add")


@pytest.mark.parametrize(
    ("names", "error", "text"),
    [
        ("add", TypeError, "names must be a list of names, or None: got 'add'"),
        (3, TypeError, "names must be .*: got 3"),
        (["add", "nosuch"], ValueError, "each of names must be .*: got 'nosuch'"),
        (["sum"], ValueError, "got 'sum'"),
        ([["add"]], ValueError, r"got \['add'\]"),
    ],
)
def test_bad_names(names, error, text):
    for function in (nc.patch_numpy, nc.patched):
        with pytest.raises(error, match=text):
            function(names)
    assert not nc.is_patched()
    with pytest.raises(ValueError, match=r"name must be .*: got 'nosuch'"):
        nc.is_patched("nosuch")


def test_twice_is_once():
    nc.patch_numpy()
    nc.patch_numpy()
    nc.restore_numpy()
    assert not nc.is_patched()
    nc.restore_numpy()


def test_blocks_nest_and_end_with_an_exception():
    with nc.patched(["add"]):
        with nc.patched(["multiply"]):
            assert nc.is_patched("add") and nc.is_patched("multiply")
        assert not nc.is_patched("multiply")
        with nc.config(threads=2):
            assert nc.is_patched("add")
        with pytest.raises(ZeroDivisionError), nc.patched():
            raise ZeroDivisionError
        nc.restore_numpy()
        assert nc.is_patched("add")
    assert not nc.is_patched()


def test_a_block_is_of_its_thread_and_task():
    found = []
    with nc.patched():
        thread = threading.Thread(target=lambda: found.append(nc.is_patched()))
        thread.start()
        thread.join()
        found.append(contextvars.copy_context().run(nc.is_patched))
    inherits = getattr(sys.flags, "thread_inherit_context", 0)  # free-threaded Python
    assert found == [bool(inherits), True]

    async def task(on, turn):
        with nc.patched() if on else nc.config(threads=2):
            await turn.wait()
            return nc.is_patched()

    async def both():
        turn = asyncio.Event()
        tasks = [asyncio.create_task(task(on, turn)) for on in (True, False)]
        await asyncio.sleep(0)
        turn.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(both()) == [True, False]


def test_threads_that_patch_restore_and_compute(regions):
    """Whatever is patched at the moment, results are right."""
    big = np.arange(20_000.0)
    before = _numc_test.set_parallel_threshold(1)
    failures = []

    def compute(seed):
        for i in range(200):
            if i % 7 == seed % 7:
                (nc.patch_numpy if i % 2 else nc.restore_numpy)()
            if (big + 1).sum() != big.sum() + len(big) or np.cumsum(big)[-1] != big.sum():
                failures.append(i)

    in_threads(16, compute)
    nc.restore_numpy()
    _numc_test.set_parallel_threshold(before)
    assert not failures


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_importing_changes_nothing_of_numpy():
    code = (
        "import numpy as np, numc_ufuncs as nc; "
        "a = np.ones(9); print(nc.is_patched(), nc._core.short_calls()[0]); a + a; "
        "print(nc._core.short_calls()[0])"
    )
    assert run(code) == ["False", "0", "0"]


def test_names_imported_before_are_led():
    code = (
        "from numpy import *; import numc_ufuncs as nc; nc.patch_numpy(); "
        "a = ones(9); b = nc._core.short_calls()[0]; add(a, a); a + a; "
        "print(nc._core.short_calls()[0] - b)"
    )
    assert run(code) == ["2"]


def test_imported_again():
    code = (
        "import sys, numpy as np, numc_ufuncs as nc; nc.patch_numpy(); "
        "[sys.modules.pop(m) for m in list(sys.modules) if m.startswith('numc_ufuncs')]; "
        "import numc_ufuncs as again; again.patch_numpy(); print((np.ones(9) + 1).sum()); "
        "again.restore_numpy(); print(again.is_patched(), (np.ones(9) + 1).sum())"
    )
    assert run(code) == ["18.0", "False", "18.0"]
