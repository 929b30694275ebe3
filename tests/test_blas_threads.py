"""While several threads of ours call BLAS, it has none of its own; and has them back afterwards."""

import ctypes
import threading
from pathlib import Path

import _numc_test
import numpy as np
import pytest

import numc_ufuncs as nc

LIBRARIES = {
    "openblas64_": "scipy_openblas_{}_num_threads64_",
    "openblasp": "openblas_{}_num_threads",
    "mkl_rt": "MKL_{}_Threads",
    "blis": "bli_thread_{}_num_threads",
    "flexiblas": "flexiblas_{}_num_threads",
}
FOLDER = Path(_numc_test.__file__).parent
LOOP = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 4)
ALIVE = []  # what ufuncs only point to


def gufunc_that_calls(function):
    """A ``(n)->()`` of float64 that calls ``function(items)`` in each call of its loop."""

    @LOOP
    def loop(args, dimensions, steps, data):
        function(ctypes.c_ssize_t.from_address(dimensions).value)

    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    api = pointer_of(np._core._multiarray_umath._UFUNC_API, None)
    make_type = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p),
        *(ctypes.c_int,) * 4,
        *(ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p),
    )
    slot = 31  # PyUFunc_FromFuncAndDataAndSignature
    address = ctypes.c_void_p.from_address(api + slot * ctypes.sizeof(ctypes.c_void_p)).value
    functions, types = (LOOP * 1)(loop), bytes([np.dtype(float).num] * 2)
    ALIVE.append((loop, functions, types))
    ends = (1, 1, 1, -1, b"calls", None, 0, b"(n)->()")
    return make_type(address)(ctypes.addressof(functions), None, types, *ends)


@pytest.fixture(params=LIBRARIES)
def blas(request):
    """How a library is asked for its threads, and told their number."""
    library = ctypes.CDLL(str(FOLDER / f"libnumc_fake_{request.param}.so"))
    names = LIBRARIES[request.param]
    get, set_ = ("Get_Max", "Set_Num") if request.param == "mkl_rt" else ("get", "set")
    getattr(library, names.format(set_))(5)
    yield getattr(library, names.format(get)), getattr(library, names.format(set_))
    getattr(library, names.format(set_))(5)


@pytest.mark.usefixtures("threads_always")
def test_threads_of_ours_are_the_only_ones(blas, regions):
    get, _ = blas
    seen = []
    nc.parallel(gufunc_that_calls(lambda items: seen.append(get())))(np.ones((100, 3)))
    assert regions() == 1
    assert seen[0] == 5  # one or two items are timed before threads are used
    assert len(seen) > 3 and set(seen[2:]) == {1}
    assert get() == 5


@pytest.mark.parametrize(
    ("length", "of_first"), [(100, 5), (511, 1), (65_535, 1), (65_536, 5)], ids=str
)
@pytest.mark.parametrize("threads", [1, 2])
def test_items_of_middle_size_are_timed_with_one_thread(blas, threads, length, of_first):
    get, _ = blas
    seen = []
    with nc.config(threads=threads):
        nc.parallel(gufunc_that_calls(lambda items: seen.append(get())))(np.ones((3, length)))
    assert seen[0] == of_first
    assert get() == 5


@pytest.mark.usefixtures("threads_always")
def test_a_number_that_is_set_meanwhile_stays(blas):
    get, set_ = blas
    nc.parallel(gufunc_that_calls(lambda items: set_(3)))(np.ones((100, 3)))
    assert get() == 3


@pytest.mark.usefixtures("threads_always")
def test_the_last_of_several_calls_gives_them_back(blas):
    get, _ = blas
    both_are_inside, first_is_done = threading.Barrier(2), threading.Event()
    seen = []

    def call(is_first):
        calls = []

        def loop(items):
            calls.append(items)
            if len(calls) == 3:  # one or two are timed before threads are used
                both_are_inside.wait()
                if not is_first:
                    first_is_done.wait()
                    seen.append(get())

        nc.parallel(gufunc_that_calls(loop))(np.ones((100, 3)))
        if is_first:
            first_is_done.set()

    threads = [threading.Thread(target=call, args=(first,)) for first in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1]
    assert get() == 5


# OpenBLAS has as many threads as three of ours from three times as many multiplications on.
@pytest.mark.usefixtures("threads_always")
@pytest.mark.parametrize(
    ("left", "right", "dtype", "is_held"),
    [
        ((9, 70, 70), (9, 70, 70), "f", True),
        ((9, 100, 100), (9, 100, 100), "d", True),
        ((9, 101, 100), (9, 100, 100), "d", False),
        ((2, 70, 70), (2, 70, 70), "d", False),
        ((9, 60, 60), (9, 60, 60), "d", False),  # on one thread in any case
        ((9, 32, 33), (9, 33, 32), "F", True),
        ((9, 46, 46), (9, 46, 46), "D", True),
        ((9, 47, 47), (9, 47, 47), "D", False),
        ((9, 32, 32), (9, 32, 32), "D", False),
    ],
    ids=str,
)
def test_a_stack_of_products_has_either_threads_of_ours_or_those_of_blas(
    left, right, dtype, is_held
):
    least = ctypes.CDLL(str(FOLDER / "libnumc_fake_openblasp.so")).numc_fake_least_threads
    rng = np.random.default_rng(0)
    a, b = (rng.random(shape).astype(dtype) for shape in (left, right))
    least()
    result = nc.matmul(a, b)
    assert least() == (1 if is_held else 5)
    assert least() == 5
    np.testing.assert_allclose(result, np.matmul(a, b), rtol=1e-5)
