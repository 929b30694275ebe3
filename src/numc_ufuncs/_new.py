"""``python -m numc_ufuncs new``: a copy of the package in ``_template``, under another name."""

import keyword
import os
import re
import sys
import tempfile
from pathlib import Path

TEMPLATE = Path(__file__).with_name("_template")
NAME = "my_ufuncs"  # the template's, wherever it stands in its files and their paths
ALLOWED = (
    "the name of a package: lower-case letters a-z, digits and underscores, a letter first, no "
    "underscore last; no word of Python, and no module of Python, NumPy or this package"
)
_PATTERN = re.compile(r"[a-z]([a-z0-9_]*[a-z0-9])?")
# What the package builds, tests or lists under its own name.
_TAKEN = {"numpy", "numc_ufuncs", "mesonpy", "pytest", "asv", "src", "tests", "benchmarks", "build"}


def check_name(name):
    """Return the name; raise ValueError for one that Python, pip or C could not use."""
    bad = keyword.iskeyword(name) or name in sys.stdlib_module_names or name in _TAKEN
    if bad or not _PATTERN.fullmatch(name):
        raise ValueError(f"{name!r} is not {ALLOWED}")
    return name


def _copy(source, target, name):
    """Copy a folder, with ``name`` for the template's. pip leaves compiled files in templates."""
    target.mkdir()
    for path in sorted(source.iterdir()):
        copied = target / path.name.replace(NAME, name)
        if path.name == "__pycache__":
            continue
        if path.is_dir():
            _copy(path, copied, name)
        else:
            text = path.read_text(encoding="utf-8")
            copied.write_text(text.replace(NAME, name), encoding="utf-8")


def new(name):
    """Write the package into a new folder of the working directory; return lines that say so."""
    folder = Path(check_name(name))
    if os.path.lexists(folder):
        raise FileExistsError(f"{name!r} exists already; nothing was written")
    # Beside the folder, to be renamed when it is complete.
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=".") as beside:
        made = Path(beside, name)
        _copy(TEMPLATE, made, name)
        files = sum(path.is_file() for path in made.rglob("*"))
        os.rename(made, folder)  # refuses a folder that is not empty, and a file
    return [
        f"wrote {files} files into {folder}/",
        f"next: cd {folder} && pip install '.[test]' && pytest",
    ]
