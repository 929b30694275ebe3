"""Memory that is not there: a call gives the right result, or MemoryError."""

import os
import re
import subprocess
import sys
from pathlib import Path

import _numc_test
import pytest

LIBRARY = Path(_numc_test.__file__).parent / "libnumc_failing_malloc.so"


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="ASan has its own malloc")
def test_every_allocation_may_fail():
    package = Path(_numc_test.__file__).parent
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", Path(__file__).with_name("allocations.py"), LIBRARY],
        env={
            **os.environ,
            "LD_PRELOAD": str(LIBRARY),
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": str(package),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    print(done.stdout)
    right, errors = map(int, re.search(r"(\d+) right results, (\d+) times", done.stdout).groups())
    assert right and errors
