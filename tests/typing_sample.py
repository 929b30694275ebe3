"""Read by mypy and pyright, not run: what the stubs promise."""

from typing import Any

import numpy as np

import numc_ufuncs as nc
from numc_ufuncs import config, exp, parallel, set_config
from numc_ufuncs.linalg import LinAlgError, eigh


def takes_ufunc(ufunc: np.ufunc) -> np.ufunc:
    return ufunc


takes_ufunc(nc.add)
takes_ufunc(nc.subtract)
takes_ufunc(nc.multiply)
takes_ufunc(nc.divide)
takes_ufunc(nc.matmul)
takes_ufunc(nc.hypot)
takes_ufunc(exp)
takes_ufunc(parallel(np.sin))

a = np.ones((3, 3))
called: Any = nc.add(a, a), nc.add(a, 2), nc.add(1.0, 2), nc.matmul(a, a), nc.divmod(a, 2)
nc.add(a, a, out=a)
nc.add(a, a, where=a > 0, out=(a,))
nc.exp(a, out=a)
methods: Any = nc.add.accumulate(a), nc.add.reduceat(a, [0, 1]), nc.multiply.outer(a, a)
nc.add.at(a, [0], 1)

name: str = nc.add.__name__
inputs: int = nc.matmul.nin
total: Any = nc.add.reduce(np.arange(5))

set_config(threads=4, device="auto")
set_config(threads=None)
with config(threads=2, device="cpu"):
    threads: int = nc.get_config()["threads"]
with nc.config() as block:
    again: nc.config = block
versions: dict[str, Any] = nc.info()
version: str = nc.__version__
nc.show_config()
set_config(memory="cached")
with config(memory="system"):
    released: int = nc.memory.release()

inverse: np.ndarray[Any, Any] = nc.linalg.inv(np.eye(3))
sign = nc.linalg.slogdet(np.eye(3)).sign
vectors: Any = eigh(np.eye(3)).eigenvectors
error: ValueError = LinAlgError()

# Each ignored line must be an error: an ignore that is not needed is reported.
set_config(threads="4")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
set_config(memory="kept")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
set_config(device="tpu")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
nc.linalg.nosuch(1)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
takes_ufunc(nc.nosuch)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
set_config(cores=4)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
parallel(len)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
