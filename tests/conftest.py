"""What several test modules need."""

import contextlib
import gc
import os
import re
import tempfile

import pytest

# Rates that tests measure, on builds of all kinds, are not the user's: the import finds their file.
CACHE = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = CACHE.name

import numc_ufuncs as nc  # noqa: E402

try:
    import _numc_test
except ModuleNotFoundError:  # then only --wheel goes on
    _numc_test = None

# Files that --wheel leaves out: an installed wheel has no test extension, and nothing that only the
# tree has; and it is tested beside few other packages.
NEEDS_EXTENSION = re.compile("^(import _numc_test|from test_reduce import)", re.MULTILINE)
NEEDS_MORE = {
    *("test_benchmarks.py", "test_compare.py", "test_programs.py", "test_tools.py"),
    *("test_dask.py", "test_ecosystem.py", "test_numpy_suite.py", "test_tutorial.py"),
}

# Fixtures of tests that pytest-run-parallel is not to run in several threads: they look at what one
# thread, or the process, has done, or set something for the process in the midst of the test.
NOT_IN_THREADS = {"arrays", "reductions", "regions", "request", "short_calls"}


def pytest_addoption(parser):
    parser.addoption("--wheel", action="store_true", help="test an installed wheel")
    parser.addoption("--most-of-each", type=int, help="parameter sets of a test that are run")


def pytest_configure(config):
    if _numc_test is None and not config.getoption("--wheel"):
        raise pytest.UsageError("the test extension is not installed: see `make test`")


def pytest_ignore_collect(collection_path, config):
    if not config.getoption("--wheel") or collection_path.suffix != ".py":
        return None
    path = collection_path
    return path.name in NEEDS_MORE or bool(NEEDS_EXTENSION.search(path.read_text())) or None


def pytest_itemcollected(item):
    if NOT_IN_THREADS.intersection(item.fixturenames):
        item.add_marker("thread_unsafe")


def pytest_collection_modifyitems(config, items):
    """Of the parameter sets of each test, --most-of-each, the first and the last among them."""
    most = config.getoption("--most-of-each")
    if most is None:
        return
    sets = {}
    for item in items:
        sets.setdefault(item.nodeid.partition("[")[0], []).append(item)
    few = {name: min(len(of_one), most) for name, of_one in sets.items()}
    kept = {
        of_one[round(i * (len(of_one) - 1) / max(few[name] - 1, 1))]
        for name, of_one in sets.items()
        for i in range(few[name])
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def pytest_collection_finish():
    """Tests that collect garbage look through what they make, not through all other tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def extension():
    """The test extension."""
    if _numc_test is None:
        pytest.skip("needs the test extension")
    return _numc_test


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
def three_threads():
    """For every call of more than 64 elements, if there is the test extension."""
    before = _numc_test and _numc_test.set_parallel_threshold(1)
    nc.set_config(threads=3)
    yield
    nc.set_config(threads=None)
    if _numc_test:
        _numc_test.set_parallel_threshold(before)


@pytest.fixture
def threads_always(extension, three_threads):
    """For tests that would see nothing where threads compute only what they pay for."""


PRODUCTION = (0, False, False)


@pytest.fixture(
    params=[PRODUCTION, (500, False, False), (500, False, True), (500, True, False)],
    ids=["production", "late workers", "late workers, small blocks", "all workers, large blocks"],
)
def policy(request):
    """How calls are split among threads: see struct policy. Only tests set another one."""
    if _numc_test is None and request.param == PRODUCTION:
        yield
        return
    extension = request.getfixturevalue("extension")
    before = extension.set_policy(*request.param)
    yield
    extension.set_policy(*before)


@pytest.fixture
def workers_come(extension):
    """As in production, but calls wait for their workers, which a busy machine may hold up."""
    before = extension.set_policy(0, True, False)
    yield
    extension.set_policy(*before)


FAKE_MEMORY = 1 << 30


@pytest.fixture(params=["fake", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request, extension):
    """Every matmul on a device: the fake one, and a GPU where there is one."""
    if request.param == "fake":
        extension.use_fake_device(FAKE_MEMORY)
    nc.set_config(device="cuda")
    yield request.param
    nc.set_config(device=None, precision=None, gemm=None)
    if request.param == "fake":
        extension.use_fake_device(0)


@contextlib.contextmanager
def _using(kind):
    if kind == "fake":
        _numc_test.use_fake_device(FAKE_MEMORY)
    yield kind
    nc.set_config(memory=None, device=None, threads=None)
    gc.collect()
    nc.memory.release()
    if kind == "fake":
        assert _numc_test.use_fake_device(0) == 0, "objects are left behind"


@pytest.fixture(params=["fake", pytest.param("cuda", marks=pytest.mark.cuda)])
def gpu(request):
    """The fake device, and a GPU where there is one, for memory of arrays."""
    with _using(request.param) as kind:
        yield kind


@pytest.fixture
def fake_gpu():
    """The fake device alone."""
    with _using("fake"):
        yield


@pytest.fixture(params=["pinned", "managed"])
def memory(request, gpu):
    """For the whole process."""
    nc.set_config(memory=request.param)
    return request.param


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
