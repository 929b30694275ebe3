"""NumPy's own tests, run with our ufuncs in the place of NumPy's."""

import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from fuzzing import POLICIES

import numc_ufuncs

# The plugin, and the package wherever it is: tests may have it by a path of their own.
PATHS = (Path(__file__).parent / "numpy_suite", Path(numc_ufuncs.__file__).parent.parent)

NUMPY = Path(np.__file__).parent
NUMPY_TESTS = NUMPY / "_core" / "tests"
MODULES = (
    "errstate",
    "half",
    "mem_overlap",
    "multithreading",  # from NumPy 2.1
    "nep50_promotions",
    "regression",
    "scalarmath",
    "ufunc",
    "umath",
)
# Half of the time, and no ufunc of ours in it.
SLOW = "not (diophantine_fuzz or share_memory_easy_fuzz or share_memory_harder_fuzz)"
SELECTIONS = {
    "ufuncs": [*(str(NUMPY_TESTS / f"test_{name}.py") for name in MODULES), "-k", SLOW],
    "matmul": [str(NUMPY_TESTS / "test_multiarray.py"), "-k", "matmul"],
}

# Far below what is measured, far above what a plugin that hardly swaps anything would reach.
LEAST = {
    "ufuncs": {
        "tests": 7000,
        "calls": 200_000,
        "operators": 10_000,
        "regions": 20_000,
        "short": 5_000,
    },
    "matmul": {"tests": 200, "calls": 500, "operators": 500, "regions": 0, "short": 0},
}

# Tests that cannot pass, because they ask for the very object that is not there.
EXPECTED = {
    "test_umath.py::TestSpecialMethods::test_ufunc_docstring": (
        "asserts that __module__ of np.add is 'numpy'; ours is 'numc_ufuncs'"
    ),
}


@functools.cache
def suite(mode, selection, policy="forced"):
    """What the plugin reports of a run: {'outcomes': {test: outcome}, 'calls': n, ...}."""
    arguments = [a for a in SELECTIONS[selection] if not a.endswith(".py") or os.path.exists(a)]
    assert NUMPY_TESTS.is_dir(), f"this NumPy was installed without its tests: no {NUMPY_TESTS}"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        options = f"-p no:cacheprovider -p plugin -q --tb=short -rfE -c {os.devnull}"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options.split(), f"--rootdir={NUMPY}", *arguments],
            cwd=folder,
            env={
                **os.environ,
                "NUMC_SUITE": mode,
                "NUMC_SUITE_POLICY": json.dumps(POLICIES[policy][1:]),
                "NUMC_SUITE_REPORT": str(report),
                "PYTHONPATH": os.pathsep.join(map(str, PATHS)),
            },
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        output = f"{done.stdout}\n{done.stderr}"
        print(output)
        assert report.exists(), f"NumPy's tests did not run to their end:\n{output}"
        return json.loads(report.read_text(encoding="utf-8"))


def passed(report):
    return {test for test, outcome in report["outcomes"].items() if outcome == "passed"}


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize(
    ("mode", "policy"), [("swap", "forced"), ("redirect", "late"), ("redirect", "production")]
)
def test_what_passes_with_numpy_passes_with_ours(mode, policy, selection):
    plain, ours = suite("plain", selection), suite(mode, selection, policy)

    lost = passed(plain) - passed(ours) - set(EXPECTED)
    assert not lost, "\n".join(f"{ours['outcomes'].get(t, 'not run')}: {t}" for t in sorted(lost))

    least = LEAST[selection]
    assert len(passed(ours)) >= least["tests"]
    if policy == "forced":  # otherwise it depends on the machine how many workers come
        assert ours["regions"] >= least["regions"]
    assert ours["short"] >= least["short"]
    assert ours["calls"] >= least["calls"]
    if mode == "redirect":
        assert ours["operators"] >= least["operators"]
