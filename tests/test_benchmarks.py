"""No ufunc without a benchmark or a test, and the command line."""

import importlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import test_ufuncs

import numc_ufuncs as nc
from numc_ufuncs import _bench, _machine
from numc_ufuncs._ufuncs import OWN

REPOSITORY = Path(__file__).parent.parent
EXPORTED = sorted(n for n in nc.__all__ if type(getattr(nc, n)) is np.ufunc)
NUMPY_UFUNCS = sorted(n for n in dir(np) if type(getattr(np, n)) is np.ufunc)


@pytest.fixture
def suite(monkeypatch):
    """A function that imports a module of the asv suite, as asv does."""
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    return lambda name: importlib.import_module(f"benchmarks.{name}")


def values_of(benchmark, parameter):
    return set(benchmark.params[benchmark.param_names.index(parameter)])


def test_every_exported_ufunc_has_a_benchmark_of_its_own(suite):
    measured = values_of(suite("elementwise").Elementwise, "ufunc")
    measured |= values_of(suite("matmul").Matmul, "ufunc")
    assert set(EXPORTED) <= measured
    assert set(OWN) == measured


def test_every_numpy_ufunc_has_a_benchmark(suite):
    assert set(NUMPY_UFUNCS) <= values_of(suite("numpy_ufuncs").Parallel, "ufunc")


def test_benchmarks_measure_numpy_as_well(suite):
    for module, name in (
        ("elementwise", "Elementwise"),
        ("matmul", "Matmul"),
        ("numpy_ufuncs", "Parallel"),
        ("linalg", "Linalg"),
    ):
        assert values_of(getattr(suite(module), name), "library") == {"numpy", "numc_ufuncs"}


@pytest.mark.parametrize("name", NUMPY_UFUNCS)
def test_benchmark_of_numpy_ufunc_runs(suite, name):
    benchmark = suite("numpy_ufuncs").Parallel()
    benchmark.setup(name, 5000, "numc_ufuncs")
    benchmark.time_call()


def test_benchmarks_of_element_wise_ufuncs_run(suite):
    benchmark = suite("elementwise").Elementwise()
    ran = set()
    for name in values_of(benchmark, "ufunc"):
        for dtype in values_of(benchmark, "dtype"):
            try:
                benchmark.setup(name, dtype, 100, "new", "numc_ufuncs")
            except NotImplementedError:
                continue
            benchmark.time_call()
            ran.add((name, dtype))
    assert {("add", "int64"), ("divide", "float16")} <= ran
    assert ("divide", "int64") not in ran


def test_every_own_ufunc_is_tested():
    assert set(EXPORTED) == set(OWN)
    assert {m.args[1] for m in test_ufuncs.test_is_a_ufunc_like_numpys.pytestmark} == {tuple(OWN)}


def test_constants_name_commands_and_pages_that_exist():
    named = set()
    for path in REPOSITORY.glob("src/*/**/*.[ch]"):
        named |= set(re.findall(r"(?:benchmarks|docs)/[\w/.-]*\w", path.read_text()))
    assert {name for name in named if not (REPOSITORY / name).is_file()} == set()
    scripts = [name for name in named if name.endswith(".py")]
    assert scripts
    for name in scripts:
        assert '__name__ == "__main__"' in (REPOSITORY / name).read_text(), name


def test_contributing_names_files_that_exist():
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`((?:\w+/)*\w+\.(?:c|h|def|build|pyi?|md|sh))`", text))
    assert "numpy/call.c" in named
    source = REPOSITORY / "src"
    found = {name for name in named if (REPOSITORY / name).is_file() or any(source.rglob(name))}
    assert named - found == set()


def test_the_guide_lists_the_instruction_sets():
    guide = (REPOSITORY / "docs" / "guide" / "options.md").read_text()
    (row,) = re.findall(r"^\| `NUMC_ISA` \|.*$", guide, re.MULTILINE)
    assert set(nc.info()["isa_available"]) <= set(re.findall(r"`(\w+)`", row))


def run(*arguments, before="", **options):
    """The command line in a process of its own; `before` is Python code to run first."""
    code = f"{before}\nimport runpy; runpy.run_module('numc_ufuncs', run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, **options
    )


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the plain loops are for x86-64")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_streaming_stores_are_measured():
    script = REPOSITORY / "benchmarks" / "streaming.py"
    command = [sys.executable, script, "--quick", "--threads", "2"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "streaming " in result.stdout and "populated, streamed" in result.stdout


def test_kept_memory_is_measured():
    script = REPOSITORY / "benchmarks" / "kept_memory.py"
    result = subprocess.run(
        [sys.executable, script, "--quick"], capture_output=True, text=True, check=True
    )
    assert len(result.stdout.splitlines()) == 5


def test_random_calls_are_drawn_and_measured():
    script = REPOSITORY / "benchmarks" / "random_calls.py"
    result = subprocess.run(
        [sys.executable, script, "--seconds", "1"], capture_output=True, text=True, check=True
    )
    assert "slower than NumPy" in result.stdout.splitlines()[-1]


def test_programs_are_measured_both_ways(tmp_path):
    path, picture = tmp_path / "figures.json", tmp_path / "figures.svg"
    script = REPOSITORY / "benchmarks" / "programs.py"
    files = "--json", str(path), "--plot", str(picture)
    command = [sys.executable, script, "--quick", "--runs", "1", "--programs", "kmeans", "kalman"]
    result = subprocess.run([*command, *files], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    rows = json.loads(path.read_text())["rows"]
    assert [row["program"] for row in rows] == ["kmeans", "kalman"]
    for row in rows:
        assert row["same"] is True
        assert row["ratio"] == row["numpy_seconds"] / row["our_seconds"]
        assert min(row["peak_bytes"].values()) > 1 << 20
        assert min(row["start_seconds"].values()) > 0
    assert "geometric mean of 1 programs" in result.stdout
    assert picture.stat().st_size > 1000


def test_linear_algebra_is_measured(tmp_path):
    path = tmp_path / "figures.json"
    script = REPOSITORY / "benchmarks" / "linalg.py"
    command = [sys.executable, script, "--quick", "--threads", "1", "2", "--json", str(path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    figures = json.loads(path.read_text())
    rows = figures["rows"]
    assert {row["part"] for row in rows} == {"stacks", "single", "gufuncs"}
    assert {(row["n"], row["threads"]) for row in rows if row["part"] == "stacks"} == {
        (n, threads) for n in (2, 3, 4, 8, 16, 64) for threads in (1, 2)
    }
    for row in rows:
        assert row["same"] is True
        assert row["ratio"] == row["numpy_seconds"] / row["our_seconds"]
    assert min(figures["peak_bytes"].values()) > 1 << 20
    assert "BLAS" in result.stdout and "peak memory" in result.stdout


def test_results_of_linear_algebra_that_differ_are_seen(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    measured = importlib.import_module("linalg")
    a = measured.operands("qr", 4, 3)[0]
    for op in measured.OPS:
        results = getattr(np.linalg, op)(*measured.operands(op, 4, 3))
        assert measured.same(op, results, results)
    assert not measured.same("inv", a, a * (1 + 1e-6))
    assert not measured.same("eigh", np.linalg.eigh(a), np.linalg.eigh(a * 1.1))


def test_benchmarks_of_linear_algebra_run(suite):
    benchmark = suite("linalg").Linalg()
    for function in values_of(benchmark, "function"):
        for shape in ("1 of 3", "1000 of 8"):
            benchmark.setup(function, shape, "numc_ufuncs")
            benchmark.time_call()


def test_without_arguments_prints_help():
    result = subprocess.run([sys.executable, "-m", "numc_ufuncs"], capture_output=True, text=True)
    assert result.returncode == 0
    assert "bench" in result.stdout and "info" in result.stdout


def test_info_prints_what_info_returns():
    result = run("info")
    assert result.returncode == 0
    shown = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert set(shown) == set(nc.info())
    assert shown["version"] == nc.__version__


def test_bench_shows_a_bar_on_a_terminal():
    screen, terminal = os.openpty()
    shown = []
    reader = threading.Thread(target=lambda: shown.extend(iter(lambda: read_from(screen), b"")))
    reader.start()
    command = [sys.executable, "-m", "numc_ufuncs", "bench", "--quick"]
    environment = {**os.environ, "COLUMNS": "50"}
    result = subprocess.run(command, stderr=terminal, stdout=subprocess.PIPE, env=environment)
    os.close(terminal)
    reader.join()
    os.close(screen)
    assert result.returncode == 0
    first, *lines, last = b"".join(shown).decode().split("\r")
    assert first == "" and last == "\033[K"
    assert lines[0] == f"[{'.' * 24}]   0% memory bandwidth\033[K"
    assert lines[-1].startswith(f"[{'#' * 21}...]  89% matmul int32")
    assert all(len(line.removesuffix("\033[K")) < 50 for line in lines)


def read_from(screen):
    try:
        return os.read(screen, 4096)
    except OSError:  # Linux, once the other end is closed
        return b""


def test_unknown_command_is_an_error():
    assert run("bnech").returncode == 2


def test_bench_writes_json_and_prints_a_table(tmp_path):
    path = tmp_path / "figures.json"
    result = run("bench", "--quick", "--json", str(path))
    assert result.returncode == 0, result.stderr
    assert "ratio" in result.stdout and "limit:" in result.stdout
    assert "add float32 out= 10,000" in result.stderr
    figures = json.loads(path.read_text())
    assert figures["machine"]["version"] == nc.__version__
    assert figures["machine"]["bandwidth_bytes_per_second"] > 0
    assert {row["op"] for row in figures["rows"]} == {"add", "matmul"}
    for row in figures["rows"]:
        assert row["same"] is True
        assert row["ratio"] == pytest.approx(row["numpy_seconds"] / row["our_seconds"])
        assert row["repetitions"] >= 3
        assert row["cold_ratio"] > 0
        assert row["rate"] == pytest.approx(row["numpy_rate"] * row["ratio"])


@pytest.fixture
def journal(monkeypatch):
    """What _bench does in order: sleeps in ms, waits, and groups of calls as (name, how many)."""
    done = []
    monkeypatch.setattr(_bench.time, "sleep", lambda seconds: done.append(round(1e3 * seconds)))
    monkeypatch.setattr(_bench, "until_none_spins", lambda: done.append("wait"))
    return done


def clock(journal, **seconds):
    """A stand-in for what times calls of functions, which are names here."""

    def time_calls(name, calls):
        journal.append((name, calls))
        return seconds[name]

    return time_calls


def test_each_side_is_timed_after_a_pause_with_its_own_threads_awake(journal):
    time_calls = clock(journal, theirs=1e-4, ours=1e-5)
    samples = _bench.alternate(["theirs", "ours"], 0.0, time_calls)
    probed = [("theirs", 1), ("theirs", 4), ("ours", 1), ("ours", 4), ("ours", 16), ("ours", 64)]
    theirs, ours = ["wait", ("theirs", 4), ("theirs", 4)], ["wait", ("ours", 64), ("ours", 64)]
    assert journal == probed + (theirs + ours) * _bench.LEAST_REPETITIONS
    assert samples == [[1e-4] * 3, [1e-5] * 3]


@pytest.mark.parametrize(("spins", "looks"), [(0.0, 1), (0.1, 10), (9.0, 42)])
def test_threads_that_spin_are_waited_for(monkeypatch, spins, looks):
    slept = []
    monkeypatch.setattr(_bench.time, "sleep", slept.append)
    monkeypatch.setattr(_bench.time, "perf_counter", lambda: sum(slept))
    monkeypatch.setattr(_bench.time, "process_time", lambda: min(sum(slept), spins))
    _bench.until_none_spins()
    assert len(slept) == pytest.approx(looks, abs=1)


def test_calls_that_use_no_threads_are_timed_without_pauses(journal):
    _bench.alternate(["theirs", "ours"], 1e-5, clock(journal, theirs=1e-6, ours=1e-7))
    assert "wait" not in journal


def test_long_calls_are_timed_three_times_each_and_need_no_waking(journal):
    samples = _bench.alternate(["theirs", "ours"], 0.0, clock(journal, theirs=2.0, ours=1.0))
    assert [len(times) for times in samples] == [3, 3]
    assert journal.count(("theirs", 1)) == 4  # and once to see how long it takes


def test_cold_calls_are_single_ones_after_a_sleep(journal):
    _bench.cold(["theirs", "ours"], 2, clock(journal, theirs=1e-6, ours=1e-6))
    assert journal == ["wait", 60, ("theirs", 1), "wait", 60, ("ours", 1)] * 2


@pytest.mark.parametrize("name", ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"])
def test_bench_names_what_holds_blas_back(name, monkeypatch):
    monkeypatch.delenv(name, raising=False)
    assert name not in _bench.blas()
    monkeypatch.setenv(name, "Haswell")
    assert f"UNSET {name}=Haswell" in _bench.blas()


def test_bench_exits_with_1_if_results_differ():
    before = (
        "import numpy as np, numc_ufuncs._bench as b\n"
        "b.add = lambda x, y, out=None: np.subtract(x, y, out=out)"
    )
    result = run("bench", "--quick", before=before)
    assert result.returncode == 1
    assert "RESULTS DIFFER" in result.stdout


def test_bench_tells_how_to_get_matplotlib(tmp_path):
    before = "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None"
    result = run("bench", "--quick", "--plot", str(tmp_path / "x.png"), before=before)
    assert result.returncode == 2
    assert "pip install numc_ufuncs[plot]" in result.stderr


def test_bench_plots(tmp_path):
    path = tmp_path / "x.svg"
    assert run("bench", "--quick", "--plot", str(path)).returncode == 0
    assert path.stat().st_size > 1000
    assert run("bench", "--quick", "--plot", str(tmp_path / "x.nonsense")).returncode == 2


def test_bad_path_is_refused_before_measuring(tmp_path):
    result = run("bench", "--quick", "--json", str(tmp_path / "missing" / "x.json"))
    assert result.returncode == 2
    assert "cannot write" in result.stderr and "No such file" in result.stderr
    assert "bandwidth" not in result.stderr


def test_looking_whether_a_path_is_writable_leaves_it_alone(tmp_path):
    old = tmp_path / "old.json"
    old.write_text("kept")
    new = tmp_path / "new.json"
    before = (
        "import numc_ufuncs._bench as b\n"
        "def stop(self): raise KeyboardInterrupt\n"
        "b.Bench.run = stop"
    )
    for path in (old, new):
        result = run("bench", "--quick", "--json", str(path), before=before)
        assert result.returncode == 130
        assert "interrupted" in result.stderr and "Traceback" not in result.stderr
    assert old.read_text() == "kept"
    assert not new.exists()


def test_sizes_that_do_not_fit_the_memory_are_left_out(monkeypatch):
    monkeypatch.setattr(_machine, "free_memory", lambda: 2 * 16 * 50_000)
    bench = _bench.Bench(quick=True, progress=lambda *step: None)
    bench.run()
    assert {row["n"] for row in bench.rows if row["op"] == "add"} == {10_000}
    assert any("memory" in reason for reason in bench.skipped)


@pytest.mark.parametrize("free_memory", [1 << 40, 2 * 16 * 50_000, 1 << 18])
def test_progress_counts_every_step(free_memory, monkeypatch):
    monkeypatch.setattr(_machine, "free_memory", lambda: free_memory)
    shares = []
    bench = _bench.Bench(quick=True, progress=lambda text, share: shares.append(share))
    bench.run()
    steps = 2 + len(bench.rows) + len(bench.skipped)
    assert len(shares) == steps - len(bench.skipped)
    assert shares == sorted(shares) and shares[0] == 0
    assert shares[-1] == pytest.approx(1 - 1 / steps)


def test_cases_that_would_take_too_long_are_left_out(monkeypatch):
    monkeypatch.setattr(_bench, "LONGEST_ROW_SECONDS", 0.0)
    bench = _bench.Bench(quick=True, progress=lambda *step: None)
    bench.run()
    assert len(bench.rows) == 5  # the first of each name: nothing says yet how long it takes
    assert all("too long" in reason for reason in bench.skipped)


def test_table_marks_losses():
    row = {
        "op": "add",
        "dtype": "float32",
        "output": "new",
        "n": 10,
        "numpy_seconds": 1.0,
        "our_seconds": 2.0,
        "ratio": 0.5,
        "cold_ratio": None,
        "numpy_spread": 0.1,
        "numpy_rate": 2.0,
        "rate": 1.0,
        "unit": "GB/s",
        "share_of_limit": 0.5,
        "same": True,
    }
    assert _bench.table([row])[1].endswith("50% SLOWER")
    assert _bench.table([{**row, "numpy_spread": 0.6}])[1].endswith("50%")
    assert _bench.table([{**row, "same": False}])[1].endswith("RESULTS DIFFER")


def test_group_limit_counts_dropped_file_pages_as_free(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 300\nactive_file 50\n")
    files = "memory.max", "memory.current"
    assert _machine._free_in_group(tmp_path, *files) == 450
    (tmp_path / "memory.max").write_text("max\n")
    assert _machine._free_in_group(tmp_path, *files) is None
