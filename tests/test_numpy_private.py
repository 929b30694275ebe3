"""Private parts of NumPy that are not as expected: one warning, and NumPy's own results."""

import subprocess
import sys

import _numc_test
import numpy as np
import pytest

import numc_ufuncs as nc

# Makes one private part look otherwise while the package is imported, and puts it right again.
BREAK = """
import ctypes, sys, warnings
import numpy as np

WORD = ctypes.sizeof(ctypes.c_void_p)
HEAD = object.__basicsize__  # of every object; its type is the last word
UFUNC_LOOPS = next(  # where np.add keeps its `_loops`: the last list or dict of its fields
    at for at in range(np.ufunc.__basicsize__ - WORD, 0, -WORD)
    if (word := ctypes.c_size_t.from_address(id(np.add) + at).value) > 4096
    and ctypes.c_size_t.from_address(word + HEAD - WORD).value in (id(list), id(dict))
    and word != id(getattr(np.add, "__dict__", None))
)
OTHER_LOOPS = ()

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
def set_nothing(*args):
    return 0

def definition(descriptor):  # of a method or an attribute: the struct that it points to
    return ctypes.c_size_t.from_address(id(descriptor) + HEAD + 3 * WORD).value

api = ctypes.pythonapi.PyCapsule_GetPointer
api.restype, api.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

def default_handler():  # a struct that begins with its name
    functions = api(np._core._multiarray_umath._ARRAY_API, None)
    get = ctypes.c_void_p.from_address(functions + 305 * WORD).value  # PyDataMem_GetHandler
    return api(ctypes.PYFUNCTYPE(ctypes.py_object)(get)(), b"mem_handler")

PARTS = {
    "fields of ufuncs": lambda: [(id(np.ufunc) + HEAD + 5 * WORD, 0)],  # tp_vectorcall_offset
    "ufunc._loops": lambda: [(id(np.add) + UFUNC_LOOPS, id(OTHER_LOOPS))],
    "methods of ufuncs": lambda: [
        (definition(getattr(np.ufunc, name)) + 2 * WORD, 0x1)  # ml_flags
        for name in ("at", "reduce", "accumulate", "reduceat")
    ],
    "flags of arrays": lambda: [
        (definition(type(np.ones(1).flags)._warn_on_write) + 2 * WORD,
         ctypes.cast(set_nothing, ctypes.c_void_p).value),
    ],
    "memory handler": lambda: [(default_handler(), 0)],
}

words = [(ctypes.c_size_t.from_address(at), value) for at, value in PARTS[sys.argv[1]]()]
before = [word.value for word, _ in words]
for word, value in words:
    word.value = value
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import numc_ufuncs as nc
for (word, _), value in zip(words, before):
    word.value = value

assert getattr(np.add, "__module__", "numpy") == "numpy"  # NumPy 2.0 has none
[warning] = caught
assert warning.category is RuntimeWarning and warning.filename == "<string>", warning
assert sys.argv[1] in str(warning.message) and np.__version__ in str(warning.message), warning
assert sum(part in str(warning.message) for part in PARTS) == 1 + (
    sys.argv[1] == "fields of ufuncs"), warning  # the loops are a field
"""

CHECK = """
try:
    nc.set_config(memory="cached")
except RuntimeError as error:
    assert sys.argv[1] == "memory handler" and "memory='cached' cannot be used" in str(error)
else:
    assert sys.argv[1] != "memory handler"

def same(name, method, *args, **options):
    out = options.pop("out", None)
    def outcome(module):
        given = {"out": out.copy()} if out is not None else {}
        inputs = [a.copy() if type(a) is np.ndarray else a for a in args]
        function = getattr(module, name)
        try:
            result = (getattr(function, method) if method else function)(
                *inputs, **options, **given)
        except Exception as error:
            return type(error), str(error)
        return repr(result), repr(inputs), repr(given)
    assert outcome(nc) == outcome(np), (name, method, outcome(nc), outcome(np))

rng = np.random.default_rng(1)
a, b = rng.normal(size=(2, 300, 400))
i = rng.integers(-9, 9, (300, 400))
words = np.array(["ab", "c"])
variable = np.array(["a", "bc"], np.dtypes.StringDType())
objects = np.array([1, 2.5, 10**30], object)
for name in ("add", "subtract", "multiply", "divide", "maximum", "less", "hypot"):
    same(name, "", a, b)
    same(name, "", a[0], b[0], out=np.empty(400))
    same(name, "", i, 300)
    same(name, "", i.astype("i1"), 300)
    same(name, "", objects, objects)
    same(name, "", words, words)
    same(name, "", variable, variable)
    same(name, "reduce", a, axis=1)
    same(name, "reduce", objects)
    same(name, "accumulate", a)
    same(name, "reduceat", a[0], [0, 7, 100])
    same(name, "outer", a[0, :5], b[0, :5])
    same(name, "at", a[0], [0, 1, 1], b[0, :3])
same("add", "outer", variable, variable)
same("add", "reduce", a, 0, out=np.empty(400))
same("matmul", "", a, b.T)
same("matmul", "", objects[:, None], objects[None])
view = np.broadcast_arrays(np.ones(3), np.ones((1, 3)))[0]  # its first write warns
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    nc.add(np.ones((1, 3)), 1.0, out=view)
assert [w.category for w in caught] == [DeprecationWarning], caught
"""


@pytest.mark.parametrize(
    "part",
    [
        "fields of ufuncs",
        "ufunc._loops",
        "methods of ufuncs",
        "flags of arrays",
        "memory handler",
    ],
)
def test_numpys_own_path_is_taken(part):
    done = subprocess.run(
        [sys.executable, "-c", BREAK + CHECK, part], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize("n", [1, 65, 500, 501, 100_000])
def test_exceptions_are_asked_for_under_the_gil(n):
    _numc_test.know_exceptions(False)
    try:
        for last in (1, -1):
            exponent = np.ones(n, int)
            exponent[-1] = last
            if last > 0:
                assert np.array_equal(nc.power(np.full(n, 2), exponent), np.full(n, 2))
            else:
                with pytest.raises(ValueError, match="negative integer powers"):
                    nc.power(np.full(n, 2), exponent)
    finally:
        _numc_test.know_exceptions(True)


def test_nothing_is_unexpected():
    """Nothing is to be warned of with the NumPy that the tests run with."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import numc_ufuncs"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
