"""NumPy's own tests, run with our ufuncs in the place of NumPy's."""

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
# Half of the time, and no ufunc of ours in it: overlap, files, several GiB, what is no ufunc.
SLOW = (
    *("diophantine_fuzz", "share_memory_easy_fuzz", "share_memory_harder_fuzz"),
    *("arbitrary_number_of_ops_error", "large_zip", "big_arrays", "large_archive"),
    *("huge_vectordot", "count_nonzero_all", "large_string_addition_error"),
)
OTHERS = f"not ({' or '.join(SLOW)})"
WHOLE = ("_core", "lib", "linalg", "ma", "fft", "polynomial", "random", "matrixlib", "testing")
SELECTIONS = {
    "ufuncs": [*(str(NUMPY_TESTS / f"test_{name}.py") for name in MODULES), "-k", OTHERS],
    "matmul": [str(NUMPY_TESTS / "test_multiarray.py"), "-k", "matmul"],
    "linalg": [str(NUMPY / "linalg"), "-m", "not slow"],
    "whole": [*(str(NUMPY / name) for name in (*WHOLE, "tests")), "-k", OTHERS],
}

# Far below what is measured, far above what a plugin that hardly leads anything to us would reach.
LEAST = {
    "ufuncs": {"tests": 7000, "calls": 200_000, "regions": 20_000, "short": 5_000},
    "matmul": {"tests": 200, "calls": 500, "regions": 0, "short": 0},
    "linalg": {"tests": 300, "calls": 2_000, "regions": 1_000, "short": 0},
    "whole": {"tests": 35_000, "calls": 1_000_000, "regions": 100, "short": 1_000_000},
}

# Tests that cannot pass, because they ask for the very object that is not there, or change it.
EXPECTED = {
    "swap": {
        "_core/tests/test_umath.py::TestSpecialMethods::test_ufunc_docstring": (
            "asserts that __module__ of np.add is 'numpy'; ours is 'numc_ufuncs'"
        ),
    },
    "patch": {
        "_core/tests/test_umath.py::TestReplaceLoopBySignature::test_replace_loop": (
            "replaces an inner loop of NumPy's, of which ours keeps the one that there was before"
        ),
    },
}


def suite(mode, policy, *arguments):
    """What the plugin reports of a run: {'outcomes': {test: outcome}, 'calls': n, ...}."""
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


def having(report, outcome):
    return {test for test, found in report["outcomes"].items() if found == outcome}


@pytest.mark.parametrize(
    ("mode", "policy", "selection"),
    [
        ("swap", "forced", "ufuncs"),
        ("swap", "forced", "matmul"),
        ("swap", "forced", "linalg"),
        ("patch", "late", "ufuncs"),
        ("patch", "late", "matmul"),
        ("patch", "forced", "linalg"),
        pytest.param("patch", "production", "whole", marks=pytest.mark.whole),
    ],
)
def test_what_passes_with_numpy_passes_with_ours(mode, policy, selection):
    arguments = [a for a in SELECTIONS[selection] if not a.endswith(".py") or os.path.exists(a)]
    ours = suite(mode, policy, *arguments)
    failed, expected = having(ours, "failed"), EXPECTED[mode].keys()

    unexpected = sorted(failed - expected)
    if unexpected:
        plain = suite("plain", policy, *(str(NUMPY / test) for test in unexpected))
        lost = sorted(having(plain, "passed") & failed)
        assert not lost, "\n".join(lost)
    outdated = expected & having(ours, "passed")
    assert not outdated, f"these pass, contrary to EXPECTED: {outdated}"

    least = LEAST[selection]
    assert len(having(ours, "passed")) >= least["tests"]
    if policy == "forced":  # otherwise it depends on the machine how many workers come
        assert ours["regions"] >= least["regions"]
    assert ours["short"] >= least["short"]
    assert ours["calls"] >= least["calls"]
