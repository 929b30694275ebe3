"""Programs for plain NumPy print the same with this package, and what compares them is right."""

import importlib
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import numc_ufuncs as nc

REPOSITORY = Path(__file__).parent.parent
FOLDER = REPOSITORY / "examples" / "programs"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))
LINALG = sorted((REPOSITORY / "examples" / "linalg").glob("*.py"))


def printed(*options):
    command = [sys.executable, *map(str, options)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_prints_the_same(name):
    program = str(FOLDER / f"{name}.py")
    plain = printed(program, "--small")
    assert plain.count("\n") >= 2
    assert printed("-m", "numc_ufuncs", "run", program, "--small") == plain


@pytest.mark.parametrize("path", LINALG, ids=lambda path: path.stem)
def test_linear_algebra_prints_the_same(path, tmp_path):
    picture = tmp_path / "picture.svg"
    plain = printed(path, "--small", "--plot", picture)
    assert plain.count("\n") == 3 and picture.stat().st_size > 1000
    assert printed("-m", "numc_ufuncs", "run", path, "--small") == plain


@pytest.mark.parametrize("path", LINALG, ids=lambda path: path.stem)
def test_linear_algebra_is_computed_here(path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(path), "--small"])
    with nc.patched(), nc.profile() as p:
        runpy.run_path(str(path), run_name="__main__")
    ways = {row["ufunc"]: set() for row in p.rows}
    for row in p.rows:
        ways[row["ufunc"]].add(row["way"])
    names = {"solve", "solve1", "inv", "det", "slogdet", "cholesky_lo", "eigh_lo", "svd_f"}
    assert any(ways[name] & {"one thread", "threads"} for name in names & ways.keys())


def test_programs_know_nothing_of_this_package():
    assert len(PROGRAMS) >= 12 and len(LINALG) == 4
    for path in (*LINALG, *FOLDER.glob("*.py")):
        assert "numc" not in path.read_text(), path


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    return importlib.import_module("programs")


def test_every_program_is_measured(benchmark):
    assert sorted(benchmark.PROGRAMS) == PROGRAMS


def test_most_elements_of_large_arrays_are_computed_here(benchmark, monkeypatch):
    large = [name for name in PROGRAMS if benchmark.PROGRAMS[name].elements >= benchmark.LARGE]
    assert len(large) >= 12
    for name in large:
        program = str(FOLDER / f"{name}.py")
        monkeypatch.setattr(sys, "argv", [program, "--small"])
        with nc.patched(), nc.profile() as p:
            runpy.run_path(program, run_name="__main__")
        elements = {"NumPy": 0, "one thread": 0, "threads": 0}
        for row in p.rows:
            elements[row["way"]] += row["elements"]
        assert elements["NumPy"] < elements["one thread"] + elements["threads"], name


def stand_in(seconds, printed):
    """For run_once: seconds of each side and program, and what each side prints."""

    def run_once(side, name, arguments):
        assert arguments == ["--small"]
        return {
            "seconds": seconds[side, name],
            "process_seconds": seconds[side, name] + 0.5,
            "user_seconds": 0.0,
            "system_seconds": 0.0,
            "page_faults": 0,
            "peak_bytes": 1 << 20,
            "printed": printed[side],
        }

    return run_once


def test_losses_are_marked_and_only_large_arrays_are_averaged(
    benchmark, monkeypatch, capsys, tmp_path
):
    seconds = {
        ("numpy", "kmeans"): 8.0,
        ("ours", "kmeans"): 1.0,
        ("numpy", "nbody"): 1.0,
        ("ours", "nbody"): 2.0,
        ("numpy", "kalman"): 1.0,
        ("ours", "kalman"): 1.01,
    }
    same = {"numpy": "1\n", "ours": "1\n"}
    monkeypatch.setattr(benchmark, "run_once", stand_in(seconds, same))
    names = ["kmeans", "nbody", "kalman"]
    path = tmp_path / "figures.json"
    assert benchmark.main(["--quick", "--json", str(path), "--programs", *names]) == 0
    figures = json.loads(path.read_text())
    assert [row["ratio"] for row in figures["rows"]] == [8.0, 0.5, 1 / 1.01]
    assert figures["geometric_mean"] == pytest.approx(2.0)
    assert figures["rows"][0]["start_seconds"] == {"numpy": 0.5, "ours": 0.5}
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.endswith("SLOWER")] == ["nbody"]
    assert "geometric mean of 2 programs" in lines[-1]


def test_results_that_differ_are_an_error(benchmark, monkeypatch, capsys):
    seconds = {(side, "kalman"): 1.0 for side in benchmark.SIDES}
    differing = {"numpy": "1\n", "ours": "2\n"}
    monkeypatch.setattr(benchmark, "run_once", stand_in(seconds, differing))
    assert benchmark.main(["--quick", "--programs", "kalman"]) == 1
    assert "RESULTS DIFFER" in capsys.readouterr().out


def test_a_program_that_fails_is_shown(benchmark, monkeypatch, tmp_path):
    (tmp_path / "kalman.py").write_text("raise ValueError('the cause')\n")
    monkeypatch.setattr(benchmark, "FOLDER", tmp_path)
    with pytest.raises(SystemExit, match="the cause"):
        benchmark.run_once("numpy", "kalman", [])
