"""dask.array on a cluster of processes, each of which computes with this package.

    pip install "dask[array]" distributed
    python examples/dask_cluster.py [workers]

A plugin patches NumPy in each worker when it starts, those that are added later included. Dask sets
OMP_NUM_THREADS=1 for its workers, so each computes on one thread: the cores are shared already.
"""

import sys

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster, WorkerPlugin

import numc_ufuncs as nc


class PatchedNumPy(WorkerPlugin):
    name = "numc_ufuncs"

    def setup(self, worker):
        nc.patch_numpy()

    def teardown(self, worker):
        nc.restore_numpy()


def jobs():
    """Arrays that Dask has not computed yet, by what they show."""
    rng = da.random.default_rng(0)
    x = rng.normal(size=(2000, 2000), chunks=(500, 2000))
    digits = rng.integers(0, 100, size=(600, 600), chunks=(200, 600), dtype=np.int32)
    return {
        "element-wise": da.exp(-(x**2) / 2) / np.sqrt(2 * np.pi),
        "standardized": (x - x.mean(axis=0)) / x.std(axis=0),
        "sum": da.where(x > 0, x, 0).sum(),
        "running sum": da.cumsum(x, axis=1),
        "integer product": digits @ digits.T,
    }


def state():
    """Of the process that calls it."""
    return nc.is_patched(), nc.get_config()["threads"]


def main(workers=2):
    arrays = jobs()
    expected = {name: array.compute(scheduler="synchronous") for name, array in arrays.items()}
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.register_plugin(PatchedNumPy())
        cluster.scale(workers + 1)
        client.wait_for_workers(workers + 1)
        for patched, threads in client.run(state).values():
            print(f"worker: patched {patched}, threads {threads}")
        for name, array in arrays.items():
            same = np.array_equal(array.compute(), expected[name])
            print(f"{name}: {'equal to' if same else 'NOT'} plain NumPy's")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
