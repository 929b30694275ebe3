"""Where the libraries are that computing on a GPU needs. Imported when a device is asked for first."""

import sys
from pathlib import Path

CUDA_LIBRARY = "libnumc_cuda.so"
CUBLAS = "libcublas.so.13"


def _cublas():
    """Paths and names to try, the best first."""
    paths = []
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        paths.append(load_nvidia_dynamic_lib("cublas").abs_path)
    except Exception:
        pass  # it is not installed, or finds none: the loader may
    paths.append(CUBLAS)
    for folder in sys.path:
        wheel = Path(folder, "nvidia", "cu13", "lib", CUBLAS)
        if wheel.exists():
            paths.append(str(wheel))
    paths.append(f"/usr/local/cuda/lib64/{CUBLAS}")
    return [path for path in paths if path]


def libraries():
    """Return the path of the part that knows CUDA, '' if it was not built, and those of cuBLAS."""
    library = Path(__file__).with_name(CUDA_LIBRARY)
    return (str(library), _cublas()) if library.exists() else ("", [])
