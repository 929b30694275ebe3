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


def _by_pathfinder():
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        return [pathfinder.load_nvidia_dynamic_lib("cublas").abs_path]
    except Exception as error:
        if _is_from_signal_handler(error):
            raise  # it concerns the caller
        return []  # the loader may find it


def blas():
    """Return paths and names of cuBLAS to try, the best first."""
    paths = _by_pathfinder()
    # No relative ones: the working directory is nobody's to load libraries from.
    folders = [path for path in sys.path if isinstance(path, str) and os.path.isabs(path)]
    for name in CUBLAS:
        paths.append(name)
        package = "cu13" if name.endswith("13") else "cublas"
        for folder in folders:
            wheel = os.path.join(folder, "nvidia", package, "lib", name)
            if "\0" not in wheel and os.access(wheel, os.F_OK):
                paths.append(wheel)
        paths.append(f"/usr/local/cuda/lib64/{name}")
    return [path for path in paths if path]
