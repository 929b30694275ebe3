"""Where the libraries are that a GPU needs. Imported when a device is asked for first."""

import importlib
import sys
from pathlib import Path

CUDA_LIBRARY = "libnumc_cuda.so"
CUBLAS = ("libcublas.so.13", "libcublas.so.12")


def library():
    """Return the path of the part that knows CUDA, '' if it was not built."""
    path = Path(__file__).with_name(CUDA_LIBRARY)
    return str(path) if path.exists() else ""


def _by_pathfinder():
    # Handlers of signals may raise here, whatever they like: that must reach the caller.
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
    except ImportError:
        return []
    try:
        return [pathfinder.load_nvidia_dynamic_lib("cublas").abs_path]
    except pathfinder.DynamicLibNotFoundError:
        return []  # the loader may find it


def cublas():
    """Return paths and names of cuBLAS to try, the best first."""
    paths = _by_pathfinder()
    # No relative ones: the working directory is nobody's to load libraries from.
    folders = [folder for folder in map(Path, sys.path) if folder.is_absolute()]
    for name in CUBLAS:
        paths.append(name)
        for folder in folders:
            wheel = folder / "nvidia" / ("cu13" if name.endswith("13") else "cublas") / "lib" / name
            if wheel.exists():
                paths.append(str(wheel))
        paths.append(f"/usr/local/cuda/lib64/{name}")
    return [path for path in paths if path]
