"""What this processor can do, measured by plain C: multiplications and additions, and reading."""

import functools
import os
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("peak.c")


@functools.cache
def compiled():
    folder = tempfile.TemporaryDirectory()
    program = str(Path(folder.name) / "peak")
    flags = ["-O2", "-march=native", "-ffp-contract=fast", "-pthread"]
    subprocess.run([os.environ.get("CC", "cc"), *flags, SOURCE, "-o", program], check=True)
    return folder, program  # the folder goes with the process


def measured(threads, mebibytes=128):
    """Operations/s of float32 and float64, and bytes/s of reading so much memory."""
    command = [compiled()[1], str(threads), str(mebibytes << 20)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    floats, doubles, read = map(float, done.stdout.split())
    return {"float32": floats, "float64": doubles, "read": read}
