"""Compare with NumPy, numexpr, numba and torch, as far as they are installed; name every loss.

python benchmarks/compare.py [--json FILE] [--plot FILE]
python benchmarks/compare.py --worst      # all ops, dtypes, sizes and layouts against NumPy
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import grid
import measuring
import numpy as np
import peers
import plain
from cases import named_cases

import numc_ufuncs as nc
from numc_ufuncs import _bench, _machine
from numc_ufuncs.__main__ import _plottable, _writable

SECONDS, QUICK_SECONDS = 0.4, 0.001  # per case, for each library


def measure(case, others, loops, threads, seconds):
    """One row: seconds per call of each library, and what came of the comparison."""
    names = case.operands()
    calls = {"numpy": case.call(np, names), "ours": case.call(nc, names)}
    expected = case.result(calls["numpy"], names)
    same = case.same(expected, case.result(calls["ours"], names))
    unfit = []
    for peer, library in others.items():
        call = library.call(case, names) if case.has_peers else None
        if call is None:
            continue
        try:
            right = case.near(expected, case.result(call, names))
        except Exception as error:  # njit refuses some broadcasts
            unfit.append(f"{peer} raises {type(error).__name__}")
            continue
        if right:
            calls[peer] = call
        else:
            unfit.append(f"{peer} is wrong")
    loop = loops and loops.call(case, names)
    if loop:
        calls["plain"] = loop
    samples = measuring.in_rounds(calls, seconds)
    medians = {name: statistics.median(times) for name, times in samples.items()}
    of_plain = medians.pop("plain", None)
    noise = max(_bench.spread(samples["numpy"]), _bench.LEAST_SPREAD)
    ratios = {name: seconds / medians["ours"] for name, seconds in medians.items()}
    return {
        "case": case.name,
        "size": case.size,
        "seconds": medians,
        "ratios": ratios,
        "noise": noise,
        "slower_than": [name for name, ratio in ratios.items() if ratio < 1 - noise],
        "unfit": unfit,
        "same": same,
        "target": case.target(threads),
        "share_of_plain": of_plain and of_plain / medians["ours"],
        "read_share": case.read_share if threads >= 16 else None,
        "read_bytes_per_second": names["a"].nbytes / medians["ours"] if case.read_share else None,
    }


def missed(row, read_bandwidth):
    """Whether a target of this row was set and not reached, where the machine gives more."""
    if row["share_of_plain"] and row["share_of_plain"] >= plain.ENOUGH:
        return False
    if row["target"] and row["ratios"]["numpy"] < row["target"]:
        return True
    share = row["read_share"]
    return bool(share and row["read_bytes_per_second"] < share * read_bandwidth)


def target_text(row, read_bandwidth):
    texts = []
    if row["target"]:
        texts.append(f"{row['target']:.1f}")
    if row["read_bytes_per_second"]:
        share = f"read {row['read_bytes_per_second'] / read_bandwidth:.0%}"
        texts.append(f"{share} of {row['read_share']:.0%}" if row["read_share"] else share)
    if row["share_of_plain"]:
        texts.append(f"plain {row['share_of_plain']:.0%}")
    if row["target"] or row["read_share"]:
        texts.append("MISSED" if missed(row, read_bandwidth) else "met")
    return " ".join(texts)


def table(rows, columns, read_bandwidth):
    """Lines: times of all libraries, NumPy and the best peer / ours, target, losses."""
    heads = "".join(f"{name:>10}" for name in columns)
    lines = [f"{'case':43}{'size':>13}{heads}{'ratio':>7}  {'best peer':14} target"]
    for row in rows:
        times = "".join(
            f"{_bench._duration(row['seconds'][name]) if name in row['seconds'] else '-':>10}"
            for name in columns
        )
        rivals = {name: r for name, r in row["ratios"].items() if name not in ("numpy", "ours")}
        best = min(rivals, key=rivals.get, default=None)
        notes = [*row["unfit"], *(f"LOSS to {name}" for name in row["slower_than"])]
        notes += ["RESULTS DIFFER"] * (not row["same"])
        lines.append(
            f"{row['case']:43}{row['size']:>13}{times}{row['ratios']['numpy']:>7.2f}"
            f"  {f'{best} {rivals[best]:.2f}' if best else '-':14}"
            f" {target_text(row, read_bandwidth):20} {', '.join(notes)}".rstrip()
        )
    return lines


def summary(rows, read_bandwidth):
    """Lines that count what the table marks."""
    targets = [row for row in rows if row["target"] or row["read_share"]]
    misses = sum(missed(row, read_bandwidth) for row in targets)
    lost = {}
    for row in rows:
        for name in row["slower_than"]:
            lost[name] = lost.get(name, 0) + 1
    losses = ", ".join(f"{count} to {name}" for name, count in lost.items()) or "none"
    return [
        "Medians, in turn. Ratio: NumPy's time / ours; best peer: its time / ours. LOSS: by more",
        f"than the spread of NumPy against itself, and by more than {_bench.LEAST_SPREAD:.0%}.",
        f"losses in {len(rows)} cases: {losses}",
        f"targets missed: {misses} of {len(targets)}",
    ]


def plot(rows, columns, title, path):
    """Draw the ratios to ours, of NumPy and of each peer, as bars."""
    from matplotlib.figure import Figure  # optional: the extra `plot`

    others = [name for name in columns if name != "ours"]
    figure = Figure(figsize=(9, 2 + 0.14 * len(rows) * len(others)), layout="constrained")
    axes = figure.subplots()
    height = 0.8 / len(others)
    for k, name in enumerate(others):
        found = [(i, row["ratios"][name]) for i, row in enumerate(rows) if name in row["ratios"]]
        # From 1, to the left where ours is slower.
        lengths = [ratio - 1 for _, ratio in found]
        axes.barh([i + k * height for i, _ in found], lengths, height, left=1, label=name)
    names = [f"{row['case']} {row['size']}" for row in rows]
    axes.set_yticks([i + 0.4 - height / 2 for i in range(len(rows))], names, fontsize=7)
    axes.set(title=title, xlabel="time / our time", xscale="log")
    axes.set_ylim(len(rows), -0.5)
    axes.axvline(1, color="gray", linewidth=1)
    axes.legend()
    figure.savefig(path)


def compare(options):
    """Measure and print the named cases; the exit code."""
    load = os.getloadavg()[0]
    threads = nc.get_config()["threads"]
    others, missing = peers.installed(options.peers, threads)
    try:
        loops = plain.Plain(threads)
    except (OSError, subprocess.CalledProcessError) as error:
        loops, missing["plain"] = None, error
    progress = _bench.progress_on_stderr()
    machine = _bench.Bench(options.quick, progress).machine
    progress("bandwidth of reading")
    reading = measuring.read_bandwidth(threads, machine["bandwidth_array_bytes"])
    rows = []
    for case in named_cases(options.quick, options.match):
        progress(f"{case.name} {case.size}")
        rows.append(
            measure(case, others, loops, threads, QUICK_SECONDS if options.quick else SECONDS)
        )
    progress("")
    columns = ["numpy", "ours", *others]
    lines = _bench.header(machine)
    lines.append(f"load before: {load:.2f}; other work slows most what uses all cores")
    lines.append(f"reading: {reading / 1e9:.1f} GB/s, NumPy's maximum on the same threads")
    lines += [f"{name}: left out, {why}" for name, why in missing.items()]
    print("\n".join([*lines, "", *table(rows, columns, reading), "", *summary(rows, reading)]))
    if options.json:
        figures = {"machine": machine, "read_bytes_per_second": reading, "rows": rows}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if options.plot:
        plot(rows, columns, f"{machine['cpu']}, {threads} threads", options.plot)
    return 0 if all(row["same"] for row in rows) else 1


def worst_of_runs(options):
    """Runs in processes of their own: each goes on with the cells that were slower before."""
    fixed = ["--ops", *options.ops, "--sizes", *map(str, options.sizes)]
    if options.threads:
        fixed += ["--threads", str(options.threads)]
    results, names = [], None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "names.json")
        for run in range(1, options.runs + 1):
            path.write_text(json.dumps(names))
            print(f"run {run} of {options.runs}", file=sys.stderr, flush=True)
            results.append(measuring.run_in_process(__file__, [*fixed, "--one-run", str(path)]))
            names = grid.slower(results[-1])
    return results


def one_run(options):
    """What one of these processes does."""
    progress = _bench.progress_on_stderr()
    names = json.loads(options.one_run.read_text())
    result = grid.run(options.ops, options.sizes, names, progress)
    progress("")
    options.json.write_text(json.dumps(result))
    return 0


def worst(options):
    """Measure the grid, print the worst cells; the exit code."""
    results = worst_of_runs(options)
    if options.json:
        options.json.write_text(json.dumps({"info": nc.info(), "runs": results}, indent=2) + "\n")
    slower = list(measuring.slower_in_all(results))
    cells = [cell for result in results for cell in result["cells"]]
    different = sorted({cell["cell"] for cell in cells if not cell["same"]})
    info = nc.info()
    print(
        f"{_machine.cpu_model()}, NumPy {np.__version__}, {info['isa']}, "
        f"{info['threads']} threads ({info['threads_reason']})\n"
    )
    print("\n".join(grid.worst(results)))
    print("Few runs: the cell was not slower in the last of them, beyond the noise.\n")
    for reason in results[0]["skipped"]:
        print(f"skipped: {reason}")
    for name in different:
        print(f"RESULTS DIFFER: {name}")
    measured = ", ".join(str(len(result["cells"])) for result in results)
    print(f"cells measured in each run: {measured}")
    print(f"slower than NumPy in {options.runs} of {options.runs} runs: {len(slower)} cells")
    return 1 if slower or different else 0


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, help="for every library; default: ours")
    parser.add_argument("--json", type=_writable, metavar="FILE", help="write all figures to FILE")
    named = parser.add_argument_group("the named cases")
    named.add_argument("--plot", type=_plottable, metavar="FILE", help="draw them (matplotlib)")
    named.add_argument("--peers", nargs="*", choices=peers.PEERS, default=list(peers.PEERS))
    named.add_argument("--match", metavar="TEXT", default="", help="those with TEXT in their name")
    named.add_argument("--quick", action="store_true", help="small operands: a check, no figures")
    worst = parser.add_argument_group("the grid against NumPy")
    worst.add_argument("--worst", action="store_true", help="exits with 1 if a cell is slower")
    worst.add_argument("--runs", type=int, default=3, help="a slower cell is so in all; default 3")
    worst.add_argument("--ops", nargs="+", choices=grid.OPS, default=grid.OPS)
    worst.add_argument("--sizes", nargs="+", type=int, default=grid.SIZES)
    worst.add_argument("--one-run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.runs < 1 or min(options.sizes) < 1:
        parser.error("--runs and --sizes are at least 1")
    if options.threads is not None:
        try:
            nc.set_config(threads=options.threads)
        except ValueError as error:
            parser.error(str(error))
    return options


def main(arguments=None):
    options = options_of(arguments)
    np.seterr(all="ignore")
    if options.one_run:
        return one_run(options)
    return worst(options) if options.worst else compare(options)


if __name__ == "__main__":
    sys.exit(main())
