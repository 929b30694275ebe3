"""What several test modules need."""

import os
import tempfile

import pytest

# Rates that tests measure, on builds of all kinds, are not the user's: the import finds their file.
CACHE = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = CACHE.name

import _numc_test  # noqa: E402

import numc_ufuncs as nc  # noqa: E402


def pytest_runtest_setup(item):
    if item.get_closest_marker("cuda") and nc.info()["cuda"] != "ready":
        pytest.skip(f"no GPU: {nc.info()['cuda']}")


@pytest.fixture
def cpu():
    """No product goes to a device, which sums in an order of its own."""
    nc.set_config(device="cpu")
    yield
    nc.set_config(device="auto")


@pytest.fixture
def threads_always():
    """Three threads for every call of more than 64 elements."""
    before = _numc_test.set_parallel_threshold(1)
    nc.set_config(threads=3)
    yield
    nc.set_config(threads=None)
    _numc_test.set_parallel_threshold(before)


@pytest.fixture(
    params=[(0, False, False), (500, False, False), (500, False, True), (500, True, False)],
    ids=["production", "late workers", "late workers, small blocks", "all workers, large blocks"],
)
def policy(request):
    """How calls are split among threads: see struct policy."""
    before = _numc_test.set_policy(*request.param)
    yield
    _numc_test.set_policy(*before)


FAKE_MEMORY = 1 << 30


@pytest.fixture(params=["fake", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request):
    """Every matmul on a device: the fake one, and a GPU where there is one."""
    if request.param == "fake":
        _numc_test.use_fake_device(FAKE_MEMORY)
    nc.set_config(device="cuda")
    yield request.param
    nc.set_config(device=None, precision=None, gemm=None)
    if request.param == "fake":
        _numc_test.use_fake_device(0)


@pytest.fixture
def regions():
    """A function that returns how many threaded regions ran since the last call of it."""
    seen = nc._core.regions()

    def since():
        nonlocal seen
        before, seen = seen, nc._core.regions()
        return seen - before

    return since


@pytest.fixture
def reductions():
    """How many arrays were reduced above the loop, and how often a loop ran our kernel."""
    seen = nc._core.reductions()

    def count():
        return tuple(now - then for now, then in zip(nc._core.reductions(), seen, strict=True))

    return count
