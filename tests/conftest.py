"""What several test modules need."""

import os
from pathlib import Path

import pytest

import numc_ufuncs as nc


@pytest.fixture(autouse=True, scope="session")
def installed_package_in_subprocesses():
    """Started at the top of the repository, ``python -c`` would find the uncompiled package."""
    before = os.getcwd()
    os.chdir(Path(__file__).parent)
    yield
    os.chdir(before)


@pytest.fixture
def cpu():
    """No product goes to a device, which sums in an order of its own."""
    nc.set_config(device="cpu")
    yield
    nc.set_config(device="auto")


@pytest.fixture
def threads_always():
    """Three threads for every call of more than 64 elements."""
    before = nc._core.set_parallel_threshold(1)
    nc.set_config(threads=3)
    yield
    nc.set_config(threads=None)
    nc._core.set_parallel_threshold(before)


@pytest.fixture
def regions():
    """A function that returns how many threaded regions ran since the last call of it."""
    seen = nc._core.regions()

    def since():
        nonlocal seen
        before, seen = seen, nc._core.regions()
        return seen - before

    return since
