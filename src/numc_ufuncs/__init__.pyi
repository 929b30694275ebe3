from collections.abc import Iterable
from os import PathLike
from types import TracebackType
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

# Every ufunc of NumPy has the type of NumPy's. A NumPy that lacks one makes it Any.
from numpy import (
    abs as abs,
    absolute as absolute,
    acos as acos,
    acosh as acosh,
    add as add,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    bitwise_and as bitwise_and,
    bitwise_count as bitwise_count,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    cbrt as cbrt,
    ceil as ceil,
    conj as conj,
    conjugate as conjugate,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    deg2rad as deg2rad,
    degrees as degrees,
    divide as divide,
    divmod as divmod,
    equal as equal,
    exp as exp,
    exp2 as exp2,
    expm1 as expm1,
    fabs as fabs,
    float_power as float_power,
    floor as floor,
    floor_divide as floor_divide,
    fmax as fmax,
    fmin as fmin,
    fmod as fmod,
    frexp as frexp,
    gcd as gcd,
    greater as greater,
    greater_equal as greater_equal,
    heaviside as heaviside,
    hypot as hypot,
    invert as invert,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    isnat as isnat,
    lcm as lcm,
    ldexp as ldexp,
    left_shift as left_shift,
    less as less,
    less_equal as less_equal,
    log as log,
    log10 as log10,
    log1p as log1p,
    log2 as log2,
    logaddexp as logaddexp,
    logaddexp2 as logaddexp2,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    matmul as matmul,
    matvec as matvec,
    maximum as maximum,
    minimum as minimum,
    mod as mod,
    modf as modf,
    multiply as multiply,
    negative as negative,
    nextafter as nextafter,
    not_equal as not_equal,
    positive as positive,
    pow as pow,
    power as power,
    rad2deg as rad2deg,
    radians as radians,
    reciprocal as reciprocal,
    remainder as remainder,
    right_shift as right_shift,
    rint as rint,
    sign as sign,
    signbit as signbit,
    sin as sin,
    sinh as sinh,
    spacing as spacing,
    sqrt as sqrt,
    square as square,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    true_divide as true_divide,
    trunc as trunc,
    vecdot as vecdot,
    vecmat as vecmat,
)

from . import linalg as linalg, memory as memory

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
_Memory: TypeAlias = Literal["system", "cached", "pinned", "managed"]

__version__: str
__all__: list[str]

_Ufunc = TypeVar("_Ufunc", bound=np.ufunc)

def parallel(ufunc: _Ufunc) -> _Ufunc: ...

class config:
    def __init__(
        self,
        *,
        threads: int | None = ...,
        device: _Device | None = ...,
        precision: _Precision | None = ...,
        gemm: _Gemm | None = ...,
        memory: _Memory | None = ...,
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
    memory: _Memory | None = ...,
) -> None: ...
def get_config() -> dict[str, Any]: ...
def info() -> dict[str, Any]: ...
def last_call() -> dict[str, Any] | None: ...
def load_ipython_extension(shell: Any) -> None: ...
def measure_rates() -> dict[str, Any]: ...
def show_config() -> None: ...
def patch_numpy(names: Iterable[str] | None = ...) -> None: ...
def restore_numpy() -> None: ...
def is_patched(name: str | None = ...) -> bool: ...

class patched:
    def __init__(self, names: Iterable[str] | None = ...) -> None: ...
    def __enter__(self) -> patched: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

def unload_ipython_extension(shell: Any) -> None: ...

class profile:
    rows: list[dict[str, Any]]
    seconds: float
    def __init__(self) -> None: ...
    def __enter__(self) -> profile: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...
    def table(self) -> str: ...
    def to_json(self) -> str: ...
    def plot(self, file: str | PathLike[str]) -> None: ...
