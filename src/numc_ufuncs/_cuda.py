"""Where the libraries are that a GPU needs. Imported when a device is asked for first."""

import importlib
import os
import signal
import sys
import traceback
from pathlib import Path

CUDA_LIBRARY = "libnumc_cuda.so"
CUBLAS = ("libcublas.so.13", "libcublas.so.12")


def library():
    """Return the path of the part that knows CUDA, '' if it was not built."""
    path = str(Path(__file__).with_name(CUDA_LIBRARY))
    return path if os.access(path, os.F_OK) else ""


def _is_from_signal_handler(error):
    handlers = (signal.getsignal(number) for number in signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers}
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code in codes for frame, _ in frames)


def _files():
    """cuBLAS of NVIDIA's wheels, then of CUDA's own folder."""
    # No relative ones: the working directory is nobody's to load libraries from.
    folders = [path for path in sys.path if isinstance(path, str) and os.path.isabs(path)]
    places = [
        os.path.join(folder, "nvidia", "cu13" if name.endswith("13") else "cublas", "lib", name)
        for name in CUBLAS
        for folder in folders
        if "\0" not in folder
    ]
    places += [f"/usr/local/cuda/lib64/{name}" for name in CUBLAS]
    return [path for path in places if os.access(path, os.F_OK)]


def _by_pathfinder():
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        path = pathfinder.load_nvidia_dynamic_lib("cublas").abs_path
        return [path] if path else []
    except Exception as error:
        if _is_from_signal_handler(error):
            raise  # it concerns the caller
        return []  # the loader may find it


def blas():
    """Return paths and names of cuBLAS to try, the best first."""
    # The pathfinder, which looks in more places, loads cuBLAS at once: 150 ms of the caller's time.
    return [*(_files() or _by_pathfinder()), *CUBLAS]
