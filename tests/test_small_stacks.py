"""Element-wise calls of every layout and dtype, and products, in threads of 64 KiB of stack."""

import os
import subprocess
import sys

import numpy as np
import pytest
from checks import STACK_BYTES, in_thread_of_small_stack
from test_calls import AXES, ONE_LOOP, numbers

import numc_ufuncs as nc

DTYPES = "?bBhHiIlLefdgFDG"

pytestmark = pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer makes frames larger"
)


LARGE = ["row", "column", "both", "rows", "columns", "turned", "across", "short rows"]


def operands(dtype):
    """Of all layouts: tiny ones, and such as are cut into tiles or ranges of NumPy's iterator."""
    rng = np.random.default_rng(5)
    small, large = numbers(rng, (60, 40), dtype), numbers(rng, (600, 420), dtype)
    for layout in (*ONE_LOOP.values(), *AXES.values()):
        yield layout(small)
    for layout in (*ONE_LOOP.values(), *(AXES[name] for name in LARGE)):
        yield layout(large)


def results(ufuncs, dtype):
    found = []
    with np.errstate(all="ignore"):
        for x, y in operands(dtype):
            for ufunc in ufuncs:
                found.append(ufunc(x, y))
                found.append(ufunc(x, y, out=np.empty_like(found[-1], order="F")))
    return found


@pytest.mark.parametrize("always", [False, True], ids=["as usual", "threads always"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_small_stacks(dtype, always, request):
    if always:
        request.getfixturevalue("threads_always")
    names = ["add", "multiply", "divide", "maximum", "equal", "logical_and"]
    ours = in_thread_of_small_stack(lambda: results([getattr(nc, n) for n in names], dtype))
    theirs = results([getattr(np, n) for n in names], dtype)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("extension")
def test_small_stacks_of_all_threads():
    """Those of the main thread and of workers."""
    code = (
        "import _numc_test, numpy as np, numc_ufuncs as nc\n"
        "_numc_test.set_parallel_threshold(1); nc.set_config(threads=3)\n"
        "for dtype in 'befdDl':\n"
        "    c = np.ones((600, 900), dtype)\n"
        "    for other in (np.asfortranarray(c), c[:, :1], c[::-1, ::-1]):\n"
        "        for ufunc in (nc.add, nc.divide, nc.maximum): ufunc(c, other)\n"
        "print(nc._core.regions() > 0)"
    )
    command = ["sh", "-c", 'ulimit -s 192; exec "$@"', "sh", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"


# The first call of the process also reads the control group's quota. What BLAS would compute is
# computed on the device only: how much stack a BLAS takes is not up to us.
PRODUCTS = f"""
import threading, _numc_test, numpy as np, numc_ufuncs as nc
_numc_test.use_fake_device(1 << 28)
found = []
def products():
    for device, dtypes in (("cpu", "?bhile"), ("cuda", "?bhilefdFD")):
        for dtype in dtypes:
            for n in (20, 70, 150):
                a = (np.arange(n * n).reshape(n, n) % 3).astype(dtype)
                for x, y in ((a, a), (a, a.T), (a[:, ::2], a[1:n:2, ::-1])):
                    with nc.config(device=device):
                        out = np.empty((n, n), dtype, order="F")
                        found.append((x, y, nc.matmul(x, y), nc.matmul(x, y, out=out)))
threading.stack_size({STACK_BYTES})
thread = threading.Thread(target=products)
thread.start()
thread.join()
print(len(found), all((c == x @ y).all() and (d == c).all() for x, y, c, d in found))
"""


@pytest.mark.usefixtures("extension")
def test_small_stacks_of_products():
    done = subprocess.run(
        [sys.executable, "-c", PRODUCTS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "144 True\n", done.stderr
