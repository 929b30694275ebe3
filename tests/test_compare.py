"""The scripts that compare with NumPy and with other libraries find losses, and only those."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def module(monkeypatch):
    """A function that imports a module beside the scripts."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module


def run(*arguments, before=""):
    """compare.py in a process of its own; `before` is Python code to run first."""
    code = (
        f"import runpy, sys\nsys.path.insert(0, {str(BENCHMARKS)!r})\n{before}\n"
        f"runpy.run_path({str(BENCHMARKS / 'compare.py')!r}, run_name='__main__')"
    )
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)


def test_named_cases(tmp_path, module):
    path, picture = tmp_path / "figures.json", tmp_path / "figures.svg"
    files = "--json", str(path), "--plot", str(picture)
    result = run("--quick", "--peers", "--threads", "2", *files)
    assert result.returncode == 0, result.stderr
    figures = json.loads(path.read_text())
    assert figures["machine"]["threads"] == 2
    cases = [(case.name, case.size) for case in module("cases").named_cases(True, "")]
    assert [(row["case"], row["size"]) for row in figures["rows"]] == cases
    for row in figures["rows"]:
        assert row["same"] is True
        assert row["ratios"]["numpy"] == row["seconds"]["numpy"] / row["seconds"]["ours"]
    assert f"losses in {len(cases)} cases" in result.stdout
    assert picture.stat().st_size > 1000


@pytest.mark.parametrize("peer", ["numexpr", "numba", "njit", "torch"])
def test_peer(peer, tmp_path):
    pytest.importorskip("numba" if peer == "njit" else peer)
    path = tmp_path / "figures.json"
    result = run("--quick", "--peers", peer, "--match", "float32", "--json", str(path))
    assert result.returncode == 0, result.stderr
    rows = json.loads(path.read_text())["rows"]
    assert any(peer in row["seconds"] for row in rows)
    assert all(row["unfit"] == [] for row in rows)


def test_peers_that_are_not_installed_are_named():
    before = "for name in ('numexpr', 'numba', 'torch'): sys.modules[name] = None"
    result = run("--quick", "--match", "float16", before=before)
    assert result.returncode == 0, result.stderr
    for name in ("numexpr", "numba", "njit", "torch"):
        assert f"{name}: left out" in result.stdout


def test_results_that_differ_are_an_error():
    before = (
        "import numpy as np, numc_ufuncs as nc\n"
        "class Wrong:\n"
        "    def __getattr__(self, name): return getattr(np.add, name)\n"
        "    def __call__(self, a, b, out=None): return np.subtract(a, b, out=out)\n"
        "nc.add = Wrong()\n"
    )
    result = run("--quick", "--peers", "--match", "float32", before=before)
    assert result.returncode == 1
    added = [line for line in result.stdout.splitlines() if line.startswith("add ")]
    assert added and all("RESULTS DIFFER" in line for line in added)
    assert result.stdout.count("RESULTS DIFFER") == len(added)  # the sums are right


def row_of(module, **changes):
    row = {
        "case": "add",
        "size": "10",
        "seconds": {"numpy": 2.0, "ours": 1.0, "peer": 0.5, "slow": 3.0},
        "ratios": {"numpy": 2.0, "ours": 1.0, "peer": 0.5, "slow": 3.0},
        "slower_than": ["peer"],
        "unfit": ["other is wrong"],
        "same": True,
        "target": 2.0,
        "share_of_plain": None,
        "read_share": None,
        "read_bytes_per_second": None,
    }
    compare = module("compare")
    rows = [{**row, **changes}]
    columns = ["numpy", "ours", "peer", "other"]
    return compare.table(rows, columns, 1e9)[1], compare.summary(rows, 1e9)


def test_table_marks_losses_and_targets(module):
    line, summary = row_of(module)
    assert "2.0 met" in line and line.endswith("other is wrong, LOSS to peer")
    assert "peer 0.50" in line
    assert summary[-2:] == ["losses in 1 cases: 1 to peer", "targets missed: 0 of 1"]
    line, summary = row_of(module, target=2.1, slower_than=[])
    assert "2.1 MISSED" in line and "LOSS" not in line
    assert summary[-2:] == ["losses in 1 cases: none", "targets missed: 1 of 1"]
    line, summary = row_of(module, target=None, read_share=0.85, read_bytes_per_second=8e8)
    assert "read 80% of 85% MISSED" in line
    assert summary[-1] == "targets missed: 1 of 1"
    line, _ = row_of(module, target=2.1, share_of_plain=0.89)
    assert "2.1 plain 89% MISSED" in line
    line, summary = row_of(module, target=2.1, share_of_plain=0.9)
    assert "2.1 plain 90% met" in line
    assert summary[-1] == "targets missed: 0 of 1"


def test_plain_loops_add_and_read(module, monkeypatch):
    plain = module("plain")
    monkeypatch.setattr(plain, "FROM_ELEMENTS", 1)
    loops, added, read = plain.Plain(2), 0, 0
    for case in module("cases").named_cases(True, ""):
        names = case.operands()
        call = loops.call(case, names)
        if case.op.endswith(".reduce") and call is not None:
            words = names["a"].view(np.uint64)
            assert call() == np.bitwise_or.reduce(words, axis=None)
            read += 1
        elif call is not None:
            call()
            if "out" in names and names["a"].dtype != np.float16:  # read as integers
                assert np.array_equal(case.result(call, names), names["a"] + names["b"])
                added += 1
    assert added > 16 and read > 8


def test_targets_are_those_of_the_threads_at_hand(module):
    case = module("cases").Case("add", "contiguous", "d", (1,), targets={2: 3.0, 16: 9.0})
    assert [case.target(threads) for threads in (1, 2, 15, 16, 64)] == [None, 3.0, 3.0, 9.0, 9.0]


@pytest.mark.parametrize("dtype", "? i1 i8 e f d F".split())
@pytest.mark.parametrize("n", [1, 8, 100, 1000, 77])
def test_layouts_have_the_size_asked_for(module, dtype, n):
    layouts = module("layouts")
    for name, make in layouts.LAYOUTS.items():
        a, b = make(*layouts.sides(name, n), dtype)
        out = layouts.empty_out(a, b, dtype)
        assert a.dtype == b.dtype == out.dtype == np.dtype(dtype)
        assert out.size == n
        assert np.add(a, b).strides == out.strides
        assert np.all(b != 0)


def test_grid_measures_every_cell_once(monkeypatch, module):
    grid = module("grid")
    called = []

    def measure(op, a, b, output):
        called.append((op, a.dtype.char))
        return {"ratio": 1.0, "spread": 0.0, "same": True}

    monkeypatch.setattr(grid, "measure", measure)
    result = grid.run(grid.OPS, grid.SIZES[:3], None, lambda text: None)
    names = [cell["cell"] for cell in result["cells"]]
    accepted = [grid.result_dtype(op, d) is not None for op in grid.OPS for d in grid.DTYPES]
    assert len(set(names)) == len(names) == sum(accepted) * 3 * 9
    assert ("subtract", "?") not in called  # NumPy refuses it
    again = grid.run(grid.OPS, grid.SIZES[:3], names[5:7], lambda text: None)
    assert [cell["cell"] for cell in again["cells"]] == names[5:7]


def test_cells_that_do_not_fit_the_memory_are_left_out(monkeypatch, module):
    grid = module("grid")
    monkeypatch.setattr(grid._machine, "free_memory", lambda: 2 * grid.BYTES * 50)
    monkeypatch.setattr(grid, "measure", lambda *_: {"ratio": 1.0, "spread": 0.0, "same": True})
    result = grid.run(["add"], [8, 100], None, lambda text: None)
    assert len(result["cells"]) == 7 * 9
    assert len(result["skipped"]) == 7 * 8


def test_slower_means_in_all_runs(module):
    grid, measuring = module("grid"), module("measuring")

    def result(**ratios):
        cells = [
            {"cell": name, "ratio": r, "spread": 0.1, "numpy_seconds": r, "our_seconds": 1.0}
            for name, r in ratios.items()
        ]
        return {"cells": cells}

    runs = [result(a=0.8, b=0.8, c=0.95, d=0.5), result(a=0.85, b=0.95, d=0.6), result(a=0.89)]
    assert grid.slower(runs[0]) == ["a", "b", "d"]
    assert list(measuring.slower_in_all(runs)) == [("a", [0.8, 0.85, 0.89])]
    lines = grid.worst(runs)[1:]
    assert [line[0] for line in lines] == ["a", "d", "b", "c"]
    assert [line.endswith("SLOWER") for line in lines] == [True, False, False, False]


def test_grid_finds_what_is_slower_and_what_differs(monkeypatch, module):
    grid = module("grid")
    monkeypatch.setattr(grid, "SECONDS", 0.001)
    monkeypatch.setattr(grid, "LONG_SECONDS", 0.001)
    a, b = np.arange(10.0), np.arange(10.0)

    class Library:
        def add(self, a, b, out=None):
            for _ in range(100):
                np.add(a, b, out=out)
            return np.add(a, b, out=out)

        def subtract(self, a, b, out=None):
            return np.add(a, b, out=out)

        def multiply(self, a, b, out=None):
            return out  # not written

    monkeypatch.setattr(grid, "nc", Library())
    for output in ("out=", "new"):
        cell = grid.measure("add", a, b, output)
        assert cell["same"] and cell["ratio"] < 0.5
        assert not grid.measure("subtract", a, b, output)["same"]
    assert not grid.measure("multiply", a, b, "out=")["same"]


@pytest.fixture
def quick_matmul(monkeypatch, module):
    """A function that measures one square product by matmul.py, ours computed as it is told."""
    matmul = module("matmul")
    monkeypatch.setattr(matmul, "SECONDS", 0.001)

    def measure(dtype, ours=np.matmul):
        monkeypatch.setattr(matmul.nc, "matmul", ours)
        return matmul.measure(dtype, dtype, (20, 20), (20, 20), 10)

    return measure


def test_matmul_checks_the_results_of_every_dtype(quick_matmul, module):
    matmul = module("matmul")

    def wrong(a, b):
        product = np.matmul(a, b)
        product[7, 3] = not product[7, 3] if product.dtype == bool else product[7, 3] + 1
        return product

    for dtype in matmul.DTYPES:
        assert quick_matmul(dtype)["same"]
        cell = quick_matmul(dtype, wrong)
        assert not cell["same"] and "RESULTS DIFFER" in matmul.line(cell)


def test_matmul_shows_torch_beside_ours(quick_matmul, module):
    torch = pytest.importorskip("torch")
    matmul = module("matmul")
    cell = quick_matmul("int8")
    assert "torch" in cell["peers"]
    assert hasattr(torch, "_int_mm") and "torch._int_mm" in matmul.line(cell)


def test_calls_of_two_dtypes_are_cells_of_never_slower(monkeypatch, module):
    never_slower = module("never_slower")
    monkeypatch.setattr(never_slower, "SECONDS", 0.001)
    cells = [cell for cell in never_slower.cells() if "+" in cell[1] and cell[2] < 100]
    assert len(cells) == 2
    monkeypatch.setattr(never_slower, "cells", lambda: cells)
    names = [cell["cell"] for cell in never_slower.run_once()]
    assert names[:2] == ["add int64+float64 1e+00 out=", "add int64+float64 1e+00 new"]


def test_cold_calls_are_cells_of_never_slower(monkeypatch, module):
    never_slower = module("never_slower")
    monkeypatch.setattr(never_slower, "SECONDS", 0.001)
    monkeypatch.setattr(never_slower.measuring, "COLD_REPETITIONS", 3)
    assert {n for *_, n, cold in never_slower.cells() if cold} == set(never_slower.COLD_SIZES)
    cells = [("add", "complex64", 100, False), ("add", "complex64", 100, True)]
    monkeypatch.setattr(never_slower, "cells", lambda: cells)
    names = [cell["cell"] for cell in never_slower.run_once()]
    assert [name.endswith("cold") for name in names] == [False, False, True, True]


def test_streaming_pays_from_where_it_is_faster_on(module):
    pays_from = module("streaming").pays_from
    assert pays_from([(1, 1.0, 2.0), (2, 1.0, 0.9), (4, 1.0, 1.1), (8, 1.0, 0.9)]) == 8
    assert pays_from([(1, 1.0, 0.9), (2, 1.0, 0.9)]) == 1
    assert pays_from([(1, 1.0, 0.9), (2, 1.0, 1.0)]) is None


def test_worst_runs_in_processes(tmp_path):
    path = tmp_path / "cells.json"
    result = run("--worst", "--runs", "2", "--ops", "add", "--sizes", "8", "--json", str(path))
    assert result.returncode in (0, 1), result.stderr  # timings are not ours to decide
    figures = json.loads(path.read_text())
    assert len(figures["runs"]) == 2
    assert len(figures["runs"][0]["cells"]) == 7 * 9
    assert all(cell["same"] for cell in figures["runs"][0]["cells"])
    assert "the worst cells" in result.stdout and "slower than NumPy in 2 of 2" in result.stdout


def test_bad_options_are_refused():
    assert run("--threads", "0").returncode == 2
    assert run("--worst", "--sizes", "0").returncode == 2
    assert run("--worst", "--ops", "matmul").returncode == 2
