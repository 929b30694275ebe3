"""Is a wheel's content ours, small enough, and found by glibcs older than this machine's?

python tools/check_wheel.py WHEEL
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

MOST_BYTES = 5_000_000  # without CUDA
NEWEST_GLIBC = 28  # 2.28: what manylinux_2_28 allows

# What Python gives, and weak names that GCC's start files ask for.
UNVERSIONED = ("Py", "_Py", "_ITM_", "__gmon_start__", "__cxa_finalize")


def unversioned(library):
    """Names without a version, that only newer glibcs have: linkers leave them to run time."""
    command = ["nm", "-D", "--undefined-only", library]
    listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    names = [line.split()[-1] for line in listed.splitlines()]
    return [name for name in names if "@" not in name and not name.startswith(UNVERSIONED)]


def problems(wheel):
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = [name for name in archive.namelist() if ".so" in Path(name).name]
        grafted = [name for name in names if not name.startswith("numc_ufuncs/")]
        if grafted:
            yield f"it brings libraries that are not ours: {', '.join(grafted)}"
        with_cuda = any("libnumc_cuda" in name for name in names)
        size = wheel.stat().st_size
        what = "with CUDA" if with_cuda else "without CUDA: there was no nvcc"
        print(f"{wheel.name}: {size / 1e6:.2f} MB, {what}")
        if size > MOST_BYTES and not with_cuda:
            yield f"{size} bytes are more than {MOST_BYTES}"
        needed = re.findall(r"manylinux_2_(\d+)_", wheel.name)
        if needed and min(map(int, needed)) > NEWEST_GLIBC:
            yield f"it needs glibc 2.{min(map(int, needed))}, and 2.{NEWEST_GLIBC} is to do"
        for name in sorted({*names} - {*grafted}):
            missing = unversioned(archive.extract(name, folder))
            if missing:
                yield f"{name} needs {', '.join(missing)}, which older glibcs do not have"


def main(arguments):
    found = [f"{path}: {problem}" for path in arguments for problem in problems(Path(path))]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
