"""The start-up file: has NumPy patched in every program that runs with ``NUMC_PATCH=1``."""

import os
import site
import sysconfig
from pathlib import Path

# Python up to 3.17 runs the line of the first file; from 3.15 on, Python calls what the second one
# names, and then skips the line (PEP 829). Each ignores what it does not know.
FILES = {
    "numc_ufuncs-startup.pth": 'import os; os.environ.get("NUMC_PATCH") '
    'and __import__("numc_ufuncs_startup").start()\n',
    "numc_ufuncs-startup.start": "numc_ufuncs_startup:start\n",
}


def _folders():
    """Where this Python looks for such files: for everybody, and for the user, if it does."""
    folders = [Path(sysconfig.get_path("purelib"))]
    if site.ENABLE_USER_SITE:
        folders.append(Path(site.getusersitepackages()))
    return folders


def find():
    """Return the path of the start-up file, None if it is not installed."""
    paths = (folder / next(iter(FILES)) for folder in _folders())
    return next((str(path) for path in paths if path.is_file()), None)


def install(user):
    """Write the files; return lines that say what was done."""
    folders = _folders()
    if user and len(folders) == 1:
        raise OSError("this Python has no folder of the user (site.ENABLE_USER_SITE)")
    folder = folders[1] if user else folders[0]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in FILES.items():
            (folder / name).write_text(text)
    except OSError as error:
        hint = "" if user or len(folders) == 1 else "; --user installs for you alone"
        raise OSError(f"cannot write into {folder}: {error.strerror}{hint}") from None
    return [
        *(f"wrote {folder / name}" for name in FILES),
        "programs that run with NUMC_PATCH=1 in the environment have NumPy patched",
    ]


def remove():
    """Remove the files wherever they are; return lines that say what was done."""
    removed = []
    for path in (folder / name for folder in _folders() for name in FILES):
        try:
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise OSError(f"cannot remove {path}: {error.strerror}") from None
        removed.append(f"removed {path}")
    return removed or ["there is no start-up file"]
