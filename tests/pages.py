"""The commands and the code of Markdown pages, as tests run them."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from typing import NamedTuple

# What the line before a block may say that it needs, beside what the other blocks of its page do.
NEEDS = {
    "asv": lambda: find_spec("asv") is not None,
    "meson-python": lambda: find_spec("mesonpy") is not None,
    "numba": lambda: find_spec("numba") is not None,
    "nvcc": lambda: shutil.which("nvcc") is not None,
    "cuda": lambda: shutil.which("nvcc") is not None,
}
FENCED = re.compile(
    r"(?:<!-- needs ([\w-]+) -->\n)?^```(\S*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
COMMANDS = ("sh", "console")
SECONDS = 300


class Block(NamedTuple):
    needs: str
    language: str
    text: str


def blocks(path):
    text = path.read_text(encoding="utf-8")
    return [Block(*match.groups(default="")) for match in FENCED.finditer(text)]


def run_commands(script, folder, **variables):
    """Run a script by bash, with the Python of the tests first on PATH."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", f"set -eux\n{script}"],
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout
