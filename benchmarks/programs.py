"""The programs of examples/programs, plain and under `python -m numc_ufuncs run`, in turn.

    python benchmarks/programs.py [--runs N] [--json FILE] [--plot FILE]

Each run is a process of its own. The time is the program's: the start of Python, `import numpy` and
the start of this package are not in it, and are named below the table. Exits with 1 if what is
printed differs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import measuring

from numc_ufuncs import _bench
from numc_ufuncs.__main__ import _plottable, _writable

HERE = Path(__file__).parent
FOLDER = HERE.parent / "examples" / "programs"
RUNS = 5
LARGE = 10**5  # elements: the geometric mean is of programs with such arrays


class Program(NamedTuple):
    field: str
    elements: int  # of its largest arrays


PROGRAMS = {
    "black_scholes": Program("finance", 1_000_000),
    "climate": Program("earth science", 7_776_000),
    "edit_distance": Program("text", 676),
    "exact_fractions": Program("exact arithmetic", 6272),
    "game_of_life": Program("cellular automata", 2_250_000),
    "heat_equation": Program("physics", 1_728_000),
    "image_filter": Program("image processing", 18_000_000),
    "kalman": Program("tracking", 60_000),
    "kmeans": Program("machine learning", 4_800_000),
    "linkage": Program("genetics", 750_000),
    "logistic_regression": Program("statistics", 20_000_000),
    "mandelbrot": Program("fractals", 1_500_000),
    "monte_carlo": Program("finance", 10_240_000),
    "nbody": Program("astronomy", 3_000_000),
    "pagerank": Program("networks", 2_000_000),
    "ray_tracer": Program("graphics", 921_600),
    "rolling_statistics": Program("time series", 3_000_000),
    "sales": Program("commerce", 1_500_000),
    "shallow_water": Program("fluid dynamics", 160_000),
    "spectrogram": Program("signal processing", 15_872_000),
}
SIDES = {"numpy": [], "ours": ["-m", "numc_ufuncs", "run"]}


def run_once(side, name, arguments):
    """What one process took, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        script = [HERE / "timed_program.py", result, FOLDER / f"{name}.py"]
        command = [sys.executable, *SIDES[side], *script, *arguments]
        start = time.perf_counter()
        process = subprocess.run([*map(str, command)], capture_output=True, text=True)
        seconds = time.perf_counter() - start
        if process.returncode:
            sys.exit(f"{name}, {side}: exit code {process.returncode}\n{process.stderr}")
        figures = json.loads(result.read_text())
        return {**figures, "process_seconds": seconds, "printed": process.stdout}


def measure(name, runs, arguments):
    """One row: medians of both sides, and whether they printed the same."""
    samples = {side: [] for side in SIDES}
    for run in range(runs):
        for side in list(SIDES)[:: -1 if run % 2 else 1]:
            samples[side].append(run_once(side, name, arguments))

    def of(side, key):
        return [figures[key] for figures in samples[side]]

    def medians(key):
        return {side: statistics.median(of(side, key)) for side in SIDES}

    started = {
        side: [figures["process_seconds"] - figures["seconds"] for figures in samples[side]]
        for side in SIDES
    }
    return {
        "program": name,
        "field": PROGRAMS[name].field,
        "elements": PROGRAMS[name].elements,
        **measuring.compared(of("numpy", "seconds"), of("ours", "seconds")),
        "start_seconds": {side: statistics.median(started[side]) for side in SIDES},
        "user_seconds": medians("user_seconds"),
        "system_seconds": medians("system_seconds"),
        "page_faults": medians("page_faults"),
        "peak_bytes": {side: max(of(side, "peak_bytes")) for side in SIDES},
        "same": len({*of("numpy", "printed"), *of("ours", "printed")}) == 1,
    }


def is_large(row):
    return row["elements"] >= LARGE


def is_slower(row):
    return row["ratio"] < 1 - max(row["spread"], _bench.LEAST_SPREAD)


def geometric_mean(rows):
    """Of the ratios of programs with large arrays; None without any."""
    ratios = [row["ratio"] for row in rows if is_large(row)]
    return statistics.geometric_mean(ratios) if ratios else None


def table(rows):
    lines = [
        f"{'program':20} {'field':18} {'elements':>11} {'NumPy':>8} {'ours':>8} {'ratio':>6}"
        f" {'spread':>6}  {'peak MiB':>11}"
    ]
    for row in rows:
        peak = "{:.0f} / {:.0f}".format(*(row["peak_bytes"][side] / (1 << 20) for side in SIDES))
        notes = ["SLOWER"] * is_slower(row) + ["RESULTS DIFFER"] * (not row["same"])
        lines.append(
            f"{row['program']:20} {row['field']:18} {row['elements']:>11,}"
            f" {_bench._duration(row['numpy_seconds']):>8}"
            f" {_bench._duration(row['our_seconds']):>8} {row['ratio']:>6.2f}"
            f" {row['spread']:>6.0%}  {peak:>11} {', '.join(notes)}".rstrip()
        )
    return lines


def summary(rows, runs):
    start = {side: statistics.median(row["start_seconds"][side] for row in rows) for side in SIDES}
    mean = geometric_mean(rows)
    lines = [
        f"Medians of {runs} processes of each side, in turn; ratio = NumPy / ours; peak: the most",
        "memory of NumPy / ours. SLOWER: by more than the spread of NumPy against itself in this",
        f"run, and by more than {_bench.LEAST_SPREAD:.0%}.",
        f"Start of a process, not in these times: {_bench._duration(start['numpy'])},"
        f" with ours {_bench._duration(start['ours'])}.",
    ]
    if mean is not None:
        large = sum(map(is_large, rows))
        lines.append(f"geometric mean of {large} programs with {LARGE:,} elements: {mean:.2f}")
    return lines


def plot(rows, title, path):
    """Draw the ratios as bars: those of small arrays, and losses, in other colours."""
    from matplotlib.figure import Figure  # optional: the extra `plot`
    from matplotlib.ticker import LogLocator

    groups = {
        "large arrays": ("tab:blue", lambda row: is_large(row) and row["ratio"] >= 1),
        "small arrays, objects": ("tab:gray", lambda row: not is_large(row) and row["ratio"] >= 1),
        "slower": ("tab:red", lambda row: row["ratio"] < 1),
    }
    rows = sorted(rows, key=lambda row: row["ratio"])
    figure = Figure(figsize=(8, 1.5 + 0.25 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for label, (colour, belongs) in groups.items():
        found = [(i, row["ratio"]) for i, row in enumerate(rows) if belongs(row)]
        if found:
            # From 1, to the left where ours is slower.
            positions, ratios = zip(*found, strict=True)
            lengths = [ratio - 1 for ratio in ratios]
            axes.barh(positions, lengths, left=1, color=colour, label=label)
    for i, row in enumerate(rows):
        end = max(row["ratio"], 1), i
        axes.annotate(f"{row['ratio']:.2f}", end, (3, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(rows)), [f"{r['program']} ({r['field']})" for r in rows], fontsize=8)
    axes.set(title=title, xlabel="NumPy time / our time", xscale="log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.margins(x=0.12)
    axes.axvline(1, color="gray", linewidth=1)
    axes.legend(loc="lower right")
    figure.savefig(path)


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS, help=f"of each side; default {RUNS}")
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--quick", action="store_true", help="small sizes: a check, no figures")
    parser.add_argument("--json", type=_writable, metavar="FILE", help="write all figures to FILE")
    parser.add_argument("--plot", type=_plottable, metavar="FILE", help="draw them (matplotlib)")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error("--runs is at least 1")
    return options


def main(arguments=None):
    options = options_of(arguments)
    load = os.getloadavg()[0]
    progress = _bench.progress_on_stderr()
    machine = _bench.Bench(options.quick, progress).machine
    rows = []
    for name in options.programs:
        progress(name)
        rows.append(measure(name, options.runs, ["--small"] if options.quick else []))
    progress("")
    lines = [*_bench.header(machine), f"load before: {load:.2f}", "", *table(rows), ""]
    print("\n".join([*lines, *summary(rows, options.runs)]))
    if options.json:
        figures = {"machine": machine, "rows": rows, "geometric_mean": geometric_mean(rows)}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if options.plot:
        plot(rows, f"{machine['cpu']}, {machine['threads']} threads", options.plot)
    return 0 if all(row["same"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
