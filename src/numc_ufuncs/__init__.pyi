from types import TracebackType
from typing import Any, Literal, TypeAlias

import numpy as np

_Device: TypeAlias = Literal[
    "auto",
    "cpu",
    "cuda",
    "cuda:0",
    "cuda:1",
    "cuda:2",
    "cuda:3",
    "cuda:4",
    "cuda:5",
    "cuda:6",
    "cuda:7",
    "cuda:8",
    "cuda:9",
    "cuda:10",
    "cuda:11",
    "cuda:12",
    "cuda:13",
    "cuda:14",
    "cuda:15",
]
_Precision: TypeAlias = Literal["ieee", "tf32", "bf16"]
_Gemm: TypeAlias = Literal["auto", "cublas", "tiled"]

__version__: str
__all__: list[str]

add: np.ufunc
subtract: np.ufunc
multiply: np.ufunc
divide: np.ufunc
matmul: np.ufunc
vecdot: np.ufunc
matvec: np.ufunc
vecmat: np.ufunc

def parallel(ufunc: np.ufunc) -> np.ufunc: ...

class config:
    def __init__(
        self,
        *,
        threads: int | None = ...,
        device: _Device | None = ...,
        precision: _Precision | None = ...,
        gemm: _Gemm | None = ...,
    ) -> None: ...
    def __enter__(self) -> config: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

def set_config(
    *,
    threads: int | None = ...,
    device: _Device | None = ...,
    precision: _Precision | None = ...,
    gemm: _Gemm | None = ...,
) -> None: ...
def get_config() -> dict[str, Any]: ...
def info() -> dict[str, Any]: ...
def last_call() -> dict[str, Any] | None: ...
def show_config() -> None: ...

# Every ufunc of NumPy, in its parallel form: numc_ufuncs.exp is parallel(numpy.exp).
def __getattr__(name: str) -> np.ufunc: ...
