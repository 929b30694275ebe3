"""dask.array on a cluster of processes, where a plugin patches NumPy: examples/dask_cluster.py."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import numc_ufuncs as nc

REASON = "dask.array and distributed are not installed: pip install dask distributed"
da = pytest.importorskip("dask.array", reason=REASON)
distributed = pytest.importorskip("distributed", reason=REASON)

EXAMPLES = Path(__file__).parent.parent / "examples"
WORKERS = 2


@pytest.fixture(scope="module")
def example():
    """The example as a module, which workers can import as well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        yield importlib.import_module("dask_cluster")


@pytest.fixture
def cluster(example):
    with distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster, example):
    with distributed.Client(cluster) as client:
        client.register_plugin(example.PatchedNumPy())
        yield client


def kernel_runs(client):
    """Each thread counts its own: those are asked that compute."""
    asked = [
        client.submit(nc._core.reductions, workers=[worker], pure=False)
        for worker in client.nthreads()
    ]
    return sum(sum(counts) for counts in client.gather(asked))


def test_example():
    command = [sys.executable, EXAMPLES / "dask_cluster.py", str(WORKERS)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("worker: patched True, threads 1\n") == WORKERS + 1
    assert result.stdout.count("equal to plain NumPy's") == 5
    assert "NOT" not in result.stdout


def test_workers_compute_with_patched_numpy(client, cluster):
    """One test for all: a cluster takes seconds to start."""
    assert list(client.run(nc.is_patched).values()) == [True] * WORKERS
    assert not nc.is_patched()

    # Workers have what Dask allows them: OMP_NUM_THREADS=1.
    assert [options["threads"] for options in client.run(nc.get_config).values()] == [1] * WORKERS

    before = kernel_runs(client)
    x = da.random.default_rng(1).random((400, 5000), chunks=(100, 5000))
    sums = x.sum(axis=1)
    np.testing.assert_array_equal(sums.compute(), sums.compute(scheduler="synchronous"))
    assert kernel_runs(client) > before

    cluster.scale(WORKERS + 1)
    client.wait_for_workers(WORKERS + 1)
    assert list(client.run(nc.is_patched).values()) == [True] * (WORKERS + 1)

    client.unregister_worker_plugin("numc_ufuncs")
    assert list(client.run(nc.is_patched).values()) == [False] * (WORKERS + 1)
