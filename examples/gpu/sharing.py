"""A NumPy array that CuPy and torch compute with on the GPU, without a copy.

    python examples/gpu/sharing.py

The array is NumPy's, in managed memory: both sides have the same address for it. The GPU's work is
waited for before the processor reads.
"""

import numpy as np

import numc_ufuncs as nc


def with_cupy(array):
    import cupy

    shared = cupy.asarray(nc.memory.device_view(array))
    cupy.sqrt(shared, out=shared)
    cupy.cuda.get_current_stream().synchronize()
    return shared.data.ptr


def with_torch(array):
    import torch

    shared = torch.from_dlpack(nc.memory.device_view(array))
    shared.square_()
    torch.cuda.synchronize()
    return shared.data_ptr()


def main():
    try:
        options = nc.config(memory="managed")
    except RuntimeError as error:
        print(error)
        return
    with options:
        array = np.arange(1_000_000.0)
    print(f"NumPy: {array[:4]}, at {array.ctypes.data:#x}")
    for compute in (with_cupy, with_torch):
        name = compute.__name__.removeprefix("with_")
        try:
            address = compute(array)
        except ImportError as error:
            print(f"{name}: {error}")
            continue
        nc.memory.prefetch(array, "cpu")  # sooner than page by page
        print(f"{name}: {array[:4].round(4)}, at {address:#x}")
        assert address == array.ctypes.data


if __name__ == "__main__":
    main()
