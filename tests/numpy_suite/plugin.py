"""Runs a test suite of NumPy's against our ufuncs: ``pytest -p plugin``.

``NUMC_SUITE`` is the mode: ``plain`` changes nothing; ``swap`` puts our ufuncs in the place of
NumPy's, wherever a module of NumPy names them; ``patch`` is ``numc_ufuncs.patch_numpy()``.
``NUMC_SUITE_POLICY`` is, in JSON, what ``_numc_test.set_policy`` is given.
``NUMC_SUITE_REPORT`` is the file to write, in JSON.
"""

import gc
import json
import os
import sys

import numpy as np

MODE = os.environ.get("NUMC_SUITE", "plain")
# What is tested is that splitting changes nothing. On a machine of two processors, a third thread
# would wait for one of them at each call.
THREADS = 2

_outcomes = {}
_threads_run_before = 0
_root = ""


def _swap(theirs, ours):
    """Put `ours` wherever a module of NumPy has `theirs`, under any name."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "numpy":
            for attribute, value in list(vars(module).items()):
                if value is theirs:
                    setattr(module, attribute, ours)


METHODS = {
    "sum": "add",
    "prod": "multiply",
    "maximum": "maximum",
    "minimum": "minimum",
    "any": "logical_or",
    "all": "logical_and",
}


def pytest_collection_finish():
    """Tests that collect garbage look through what they make, not through 40,000 other tests."""
    gc.collect()
    gc.freeze()


def pytest_configure():
    global _threads_run_before
    if MODE == "plain":
        return
    import _numc_test

    import numc_ufuncs
    from numc_ufuncs._ufuncs import OWN

    if MODE == "patch":
        numc_ufuncs.patch_numpy()
    for name in filter(np.__dict__.__contains__, OWN):
        theirs, ours = getattr(np, name), getattr(numc_ufuncs, name)
        if MODE == "swap":
            _swap(theirs, ours)
        _numc_test.count_calls(ours if MODE == "swap" else theirs)
    # These functions are no ufuncs, whose calls could be counted: regions tell of them.
    for name in numc_ufuncs.linalg.__all__ if MODE == "swap" else ():
        _swap(getattr(np.linalg, name), getattr(numc_ufuncs.linalg, name))
    if MODE == "swap":
        # Bound methods behind ndarray.sum, prod, max, min, any and all.
        for name, ufunc in METHODS.items():
            setattr(np._core._methods, f"umr_{name}", getattr(numc_ufuncs, ufunc).reduce)
    numc_ufuncs.set_config(threads=THREADS)
    _numc_test.set_policy(*json.loads(os.environ["NUMC_SUITE_POLICY"]))
    _threads_run_before = numc_ufuncs._core.regions()


def _name(nodeid):
    """The test, by its file within NumPy."""
    path, separator, rest = nodeid.partition("::")  # parameters may hold a slash
    file = os.path.relpath(os.path.join(_root, path), os.path.dirname(np.__file__))
    return file + separator + rest


def pytest_sessionstart(session):
    global _root
    _root = session.config.rootpath


def pytest_collectreport(report):
    if report.failed:
        _outcomes[_name(report.nodeid)] = "failed"


def pytest_runtest_logreport(report):
    test = _name(report.nodeid)
    decides = report.when == "call" or report.outcome != "passed"
    if decides and _outcomes.get(test) != "failed":
        _outcomes[test] = report.outcome


def _counts():
    counts = {"calls": None, "regions": None, "short": None}
    if MODE != "plain":
        import _numc_test

        import numc_ufuncs

        counts["regions"] = numc_ufuncs._core.regions() - _threads_run_before
        counts["short"] = sum(numc_ufuncs._core.short_calls())
        counts["calls"] = sum(_numc_test.calls().values())
    return counts


def pytest_terminal_summary(terminalreporter):
    counts = _counts()
    if MODE != "plain":
        terminalreporter.write_line(
            f"numc_ufuncs, mode {MODE}: {counts['calls']} calls were ours, {counts['short']} took "
            f"the short way, {counts['regions']} ran on several threads"
        )
    path = os.environ.get("NUMC_SUITE_REPORT")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"outcomes": _outcomes, **counts}, file)
