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


def cublas():
    """Return paths and names of cuBLAS to try, the best first."""
    paths = []
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        paths.append(pathfinder.load_nvidia_dynamic_lib("cublas").abs_path)
    except Exception:
        pass  # it is not installed, or finds none: the loader may
    for name in CUBLAS:
        paths.append(name)
        for folder in sys.path:
            wheel = Path(folder, "nvidia", "cu13" if name.endswith("13") else "cublas", "lib", name)
            if wheel.exists():
                paths.append(str(wheel))
        paths.append(f"/usr/local/cuda/lib64/{name}")
    return [path for path in paths if path]
