from typing import Any, Literal

from numpy.typing import NDArray
from typing_extensions import CapsuleType

__all__ = ["DeviceView", "device_view", "prefetch", "release"]

def release() -> int: ...
def prefetch(array: NDArray[Any], device: Literal["cpu", "cuda"]) -> None: ...
def device_view(array: NDArray[Any]) -> DeviceView: ...

class DeviceView:
    def __init__(self, array: NDArray[Any]) -> None: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = ...,
        max_version: tuple[int, int] | None = ...,
        dl_device: tuple[int, int] | None = ...,
        copy: bool | None = ...,
    ) -> CapsuleType: ...
