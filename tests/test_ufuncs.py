"""Our ufuncs are NumPy's, seen from outside."""

import copy
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import numc_ufuncs as nc
from numc_ufuncs._ufuncs import OWN

NUMPY_UFUNCS = sorted(n for n in dir(np) if type(getattr(np, n)) is np.ufunc)


def pair(name):
    """Our ufunc, and NumPy's."""
    if not hasattr(np, name):
        pytest.skip(f"NumPy {np.__version__} has no {name}")
    return getattr(nc, name), getattr(np, name)


@pytest.mark.parametrize("name", tuple(OWN))
def test_is_a_ufunc_like_numpys(name):
    ours, theirs = pair(name)
    assert type(ours) is np.ufunc
    assert ours is not theirs
    for attribute in ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature"):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    assert ours.__name__ == theirs.__name__
    assert ours.__doc__.splitlines()[0] == theirs.__doc__.splitlines()[0]
    assert "cores" in ours.__doc__ and f"nc.{name}(" in ours.__doc__
    for section in ("Parameters", "Returns", "Raises", "Notes"):
        assert (section in ours.__doc__) == (section in theirs.__doc__), section


@pytest.mark.parametrize("name", [n for n in NUMPY_UFUNCS if n not in OWN])
def test_every_numpy_ufunc_is_at_hand(name):
    ours, theirs = pair(name)
    assert type(ours) is np.ufunc
    assert ours is nc.parallel(theirs)
    assert ours.types == theirs.types
    assert name in dir(nc)
    if theirs.__name__ not in OWN:
        signature, summary, note, *rest = ours.__doc__.split("\n\n")
        assert [signature, summary, *rest] == theirs.__doc__.rstrip().split("\n\n")
        assert f"`numpy.{theirs.__name__}`" in note and "cores" in note


def test_the_stub_lists_every_ufunc():
    """With the type of NumPy's: what it does not list is an error to type checkers."""
    stub = Path(nc.__file__).with_suffix(".pyi").read_text()
    assert set(NUMPY_UFUNCS) <= set(re.findall(r"^    (\w+) as \1,$", stub, re.MULTILINE))


@pytest.mark.parametrize("name", NUMPY_UFUNCS)
def test_pickles_by_name(name):
    ours = getattr(nc, name)
    assert pickle.loads(pickle.dumps(ours)) is ours
    assert copy.deepcopy(ours) is ours


def test_unpickles_in_a_new_process():
    pickled = pickle.dumps([nc.add, nc.exp, nc.matmul])
    code = (
        "import pickle, sys; a, e, m = pickle.loads(sys.stdin.buffer.read());"
        "import numc_ufuncs as nc; assert a is nc.add and e is nc.exp and m is nc.matmul"
    )
    subprocess.run([sys.executable, "-c", code], input=pickled, check=True)


def test_module_is_ours_where_numpy_has_the_attribute():
    if np.lib.NumpyVersion(np.__version__) >= "2.2.0":
        assert nc.add.__module__ == nc.exp.__module__ == "numc_ufuncs"
        assert nc.add.__qualname__ == "add" and nc.exp.__qualname__ == "exp"
    assert not hasattr(nc, "array") and not hasattr(nc, "no_such_name")


# Promotion: our resolver is NumPy's, so that no pair of operands may differ.
OPERANDS = [
    *(np.ones(3, dtype) for dtype in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?O"),
    *(np.ones((), dtype) for dtype in "bBiqefdF?"),
    *(np.dtype(dtype).type(1) for dtype in "bBlQefdD?"),
    *(1, -1, 300, 10**20, 10**100, 1.5, 1j, True, [1, 2, 3], None, "a"),
    np.array([1, 2, 3], "m8[s]"),
    np.array([1, 2, 3], "m8[ms]"),
    np.array([1, 2, 3], "M8[D]"),
    np.timedelta64(5, "m"),
    np.datetime64("2001-02-03"),
    np.array(["a", "b", "c"]),
    np.array([b"a", b"b", b"c"]),
    np.array([(1, 2.0)] * 3, "i4,f8"),
    np.ones(3, ">i2"),
    np.ones(3, ">f8"),
]


def outcome(function, *args, **kwargs):
    """What a call gives: a result with its dtype, or an exception with its text."""
    try:
        with np.errstate(all="ignore"):
            result = function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    return type(result), getattr(result, "dtype", None), repr(result)


@pytest.mark.parametrize("name", OWN)
def test_promotion_of_every_pair(name):
    ours, theirs = pair(name)
    different = [
        (a, b, outcome(ours, a, b), outcome(theirs, a, b))
        for a in OPERANDS
        for b in OPERANDS
        if outcome(ours, a, b) != outcome(theirs, a, b)
    ]
    assert not different


@pytest.mark.parametrize(
    "name", ["less", "equal", "logical_and", "maximum", "power", "floor_divide"]
)
def test_promotion_of_every_pair_in_parallel(name):
    test_promotion_of_every_pair(name)


@pytest.mark.parametrize("name", OWN)
def test_dtype_and_signature_arguments(name):
    ours, theirs = pair(name)
    a = np.arange(9, dtype="i2").reshape(3, 3)
    for options in (
        {"dtype": "f4"},
        {"dtype": "i1"},
        {"dtype": "i1", "casting": "unsafe"},
        {"signature": "dd->d"},
        {"signature": (None, None, "g")},
        {"order": "F"},
        {"subok": False},
        {"where": a > 3},
        {"no_such_option": 1},
        {"out": np.empty((3, 3), "f4")},
        {"out": np.empty((2, 2))},
        {"out": (np.empty((3, 3)),)},
        {"out": [1]},
    ):
        if "where" in options:
            options = {**options, "out": np.zeros((3, 3))}
        assert outcome(ours, a, a, **options) == outcome(theirs, a, a, **options), options


def test_strings_go_to_numpy():
    a = np.array(["a", "bc"])
    assert nc.add(a, a).tolist() == ["aa", "bcbc"]
    assert nc.less(a, a[::-1]).tolist() == np.less(a, a[::-1]).tolist()
    strings = np.array(["a", "bc"], np.dtypes.StringDType())
    assert nc.add(strings, "x").tolist() == ["ax", "bcx"]
    assert nc.multiply(strings, 2).tolist() == ["aa", "bcbc"]


USER_DTYPE = """
import numpy as np
{imports}
import numc_ufuncs as nc
a = np.array([r(1, 2), r(1, 3), r(5, 7)])
def same(ours, theirs):
    assert np.asarray(ours).dtype == np.asarray(theirs).dtype == a.dtype, (ours, theirs)
    assert np.all(ours == theirs), (ours, theirs)
for name in ("add", "subtract", "multiply", "divide"):
    ours, theirs = getattr(nc, name), getattr(np, name)
    same(ours(a, a), theirs(a, a))
    same(ours(a, 1), theirs(a, 1))
    same(ours.reduce(a), theirs.reduce(a))
    same(ours.outer(a, a), theirs.outer(a, a))
    same(ours(a, a, out=a.copy()), theirs(a, a))
same(nc.negative(a), np.negative(a))
assert nc.less(a, a[::-1]).tolist() == np.less(a, a[::-1]).tolist()
"""


@pytest.mark.parametrize(
    "imports",
    [
        "from numpy._core._rational_tests import rational as r",
        "import numc_ufuncs as nc; nc.negative, nc.less\n"
        "from numpy._core._rational_tests import rational as r",
    ],
    ids=["before", "after"],
)
def test_user_dtypes(imports):
    """NumPy's rational registers its loops when it is imported: before our ufuncs, or after."""
    code = USER_DTYPE.format(imports=imports)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_first_call_after_loops_were_registered():
    code = (
        "import numpy as np, numc_ufuncs as nc\n"
        "x = np.ones(5); nc.multiply(x, x); before = nc._core.short_calls()\n"
        "import numpy._core._rational_tests\n"
        "nc.multiply(x, x); after = nc._core.short_calls()\n"
        "assert after[0] == before[0] + 1, (before, after)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class TestSubclassesAndOverrides:
    def test_array_ufunc_gets_our_ufunc(self):
        class Recorder:
            def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
                return ufunc, method, kwargs

        recorder = Recorder()
        assert nc.add(np.ones(3), recorder) == (nc.add, "__call__", {})
        assert nc.add.reduce(recorder) == (nc.add, "reduce", {})
        assert nc.exp(recorder, dtype="f4") == (nc.exp, "__call__", {"dtype": "f4"})

    def test_masked_array(self):
        a = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])
        result, expected = nc.add(a, 1), np.add(a, 1)
        assert type(result) is type(expected)
        assert result.tolist() == expected.tolist()

    def test_matrix(self):
        with pytest.warns(PendingDeprecationWarning):
            a = np.matrix([[1, 2], [3, 4]])
        assert type(nc.matmul(a, a)) is np.matrix
        assert type(nc.add(a, a)) is np.matrix


def test_import_does_not_compute():
    """Nothing but what a program needs: no threads, no SciPy, no matplotlib."""
    code = (
        "import sys, numc_ufuncs, os;"
        "assert not {'scipy', 'matplotlib'} & set(sys.modules);"
        "import numc_ufuncs as nc; assert nc._core.regions() == 0"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
