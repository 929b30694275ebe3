"""``python -m numc_ufuncs bench``: this package against NumPy, on the machine at hand."""

import os
import platform
import shutil
import statistics
import sys
import time
from dataclasses import dataclass
from math import sqrt

import numpy as np

from . import _core, _machine
from ._config import info
from ._ufuncs import own

add, matmul = own["add"], own["matmul"]

# One run cannot tell less than this from noise, however well NumPy agrees with itself.
LEAST_SPREAD = 0.05

SECONDS = 110.0  # for the whole bench
ROW_SECONDS = 0.5  # of repetitions, for each side
LONGEST_ROW_SECONDS = 12.0  # a row that would take longer is skipped
SAMPLE_SECONDS = 2e-4  # short calls are timed in groups that take this long
LEAST_REPETITIONS, ROUNDS = 3, 5
# Threads spin for a while after a call and would slow whoever is timed next: ours for 5 ms,
# libgomp's for 17, OpenBLAS's for 2**26 or 2**28 cycles, which is 25 to 130.
LONGEST_SPIN_SECONDS = 0.5
# Who spins takes this part of a core while we look; the kernel counts it every 4 or 10 ms.
LOOK_SECONDS, LEAST_SPIN = 0.012, 0.1
SERIAL_SECONDS = 5e-6  # no library uses threads for calls as short as this
COLD_SECONDS = 0.06  # of sleep before a cold call, from when no thread spins
COLD_REPETITIONS = 5
LONGEST_COLD_SECONDS = 0.1  # a longer call hardly notices that it has to wake threads up
BANDWIDTH_BYTES = 1 << 28
BAR_CELLS = 24  # of the progress bar

OUTPUTS = "out=", "new"
ADD_SIZES = [10**power for power in range(4, 10)]
MATMUL_SIZES = {
    "float32": (512, 1024, 2048, 4096),
    "float64": (512, 1024, 2048, 4096),
    "int32": (256, 512),
}
QUICK_ADD_SIZES = [10**4, 10**5]
QUICK_MATMUL_SIZES = {"float32": (64,), "float64": (64,), "int32": (32,)}
ARRAYS_OF_ADD = 4  # two inputs, `out`, and the fresh output that it is checked against


@dataclass
class Case:
    """One row to measure: what is called, on how many elements or rows."""

    op: str
    dtype: str
    n: int
    output: str  # "out=" or "new"

    @property
    def name(self):
        return f"{self.op} {self.dtype} {self.output}"

    @property
    def operations(self):
        """Bytes moved by add, arithmetic operations done by matmul."""
        return 3 * self.n * np.dtype(self.dtype).itemsize if self.op == "add" else 2 * self.n**3

    @property
    def unit(self):
        if self.op == "add":
            return "GB/s"
        return "GOP/s" if "int" in self.dtype else "GFLOP/s"


def _time(function, calls):
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls


def _group(function, time_calls):
    """How many calls to time together, and seconds per call."""
    calls = 1
    while (seconds := time_calls(function, calls)) * calls < SAMPLE_SECONDS:
        calls *= 4
    return calls, seconds


def until_none_spins():
    """Sleep until no thread of this process runs any more."""
    end = time.perf_counter() + LONGEST_SPIN_SECONDS
    while time.perf_counter() < end:
        before, start = time.process_time(), time.perf_counter()
        time.sleep(LOOK_SECONDS)
        if time.process_time() - before < LEAST_SPIN * (time.perf_counter() - start):
            break


def alternate(functions, seconds, time_calls=_time, pauses=True):
    """Time functions in rounds, each when no thread spins, and with its own threads awake.

    Parameters
    ----------
    functions : sequence
        What `time_calls` takes: callables without arguments, each called before.
    seconds : float
        Time to spend on each of them, but at least one repetition in each round.
    time_calls : callable, optional
        Given one of `functions` and a number of calls, returns seconds per call.
    pauses : bool, optional
        Whether to wait for threads of the function before.

    Returns
    -------
    list of list of float
        For each function, seconds per call in each repetition.
    """
    groups = [_group(function, time_calls) for function in functions]
    longest = max(per_call for _, per_call in groups)
    rounds = ROUNDS if longest < seconds else LEAST_REPETITIONS
    samples = [[] for _ in functions]
    for _ in range(rounds):
        for function, (calls, per_call), times in zip(functions, groups, samples, strict=True):
            if pauses and longest > SERIAL_SECONDS:
                until_none_spins()
                if per_call < LONGEST_COLD_SECONDS:
                    time_calls(function, calls)  # wakes its threads up
            end = time.perf_counter() + seconds / rounds
            times.append(time_calls(function, calls))
            while time.perf_counter() < end:
                times.append(time_calls(function, calls))
    return samples


def cold(functions, repetitions, time_calls=_time, pause=COLD_SECONDS):
    """Time single calls in turn, each after a pause in which all threads fall asleep."""
    samples = [[] for _ in functions]
    for _ in range(repetitions):
        for function, times in zip(functions, samples, strict=True):
            if pause > 0:
                until_none_spins()
            time.sleep(pause)
            times.append(time_calls(function, 1))
    return samples


def blas():
    """NumPy's BLAS, which of its kernels runs, and what in the environment holds it back."""
    try:
        import threadpoolctl
    except ImportError:
        libraries = ["kernel unknown: threadpoolctl is not installed"]
    else:
        libraries = [
            f"{library['internal_api']} {library['version']} {library.get('architecture')}"
            for library in threadpoolctl.threadpool_info()
            if library["user_api"] == "blas"
        ]
    held = [
        f"UNSET {name}={os.environ[name]}: it holds NumPy's BLAS back"
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
        if name in os.environ
    ]
    return "; ".join(libraries + held)


def spread(samples):
    """How far one function is from itself: a fifth of the repetitions against all of them."""
    whole = statistics.median(samples)
    size = max(len(samples) // 5, 1)
    fifths = (samples[i : i + size] for i in range(0, len(samples) - size + 1, size))
    return max(abs(statistics.median(fifth) / whole - 1) for fifth in fifths)


def _same_bits(x, y):
    # In blocks: a comparison of whole arrays would need a quarter of their memory again.
    block = 1 << 20
    x, y = x.view(np.uint32), y.view(np.uint32)
    return all(np.array_equal(x[i : i + block], y[i : i + block]) for i in range(0, x.size, block))


def _add_calls(case, operands):
    """The two calls to time, and whether their results are equal."""
    a, b, out = (operand[: case.n] for operand in operands)
    out.fill(np.nan)
    if case.output == "out=":
        add(a, b, out=out)
        same = _same_bits(np.add(a, b), out)
        return (lambda: np.add(a, b, out=out)), (lambda: add(a, b, out=out)), same
    np.add(a, b, out=out)
    same = _same_bits(add(a, b), out)
    return (lambda: np.add(a, b)), (lambda: add(a, b)), same


def _matmul_calls(case, rng):
    shape = case.n, case.n
    if "int" in case.dtype:
        a, b = (rng.integers(-100, 100, shape, dtype=case.dtype) for _ in "ab")
        tolerance = 0.0
    else:
        # Positive entries: no cancellation, so the error is relative to the result. It grows with
        # the square root of the number of terms, whatever order they are added in.
        a, b = (rng.random(shape, dtype=case.dtype) for _ in "ab")
        tolerance = 4 * sqrt(case.n) * np.finfo(case.dtype).eps
    out = np.empty(shape, case.dtype)
    expected = np.matmul(a, b)
    matmul(a, b, out=out)
    # Also different where a result is NaN: that compares as False.
    same = bool(np.all(np.abs(out - expected) <= tolerance * np.abs(expected)))
    return (lambda: np.matmul(a, b, out=out)), (lambda: matmul(a, b, out=out)), same


class Bench:
    """Measures all cases, and keeps what came of them.

    Parameters
    ----------
    quick : bool
        Measure small sizes only, briefly: enough to see that all works.
    progress : callable
        Called before each step with a line of text and the share of all steps that are done.
    """

    def __init__(self, quick, progress):
        self.rows = []
        self.skipped = []
        self._show = progress
        self._row_seconds = 0.005 if quick else ROW_SECONDS
        self._cold_pause = 0.0 if quick else COLD_SECONDS
        self._add_sizes = QUICK_ADD_SIZES if quick else ADD_SIZES
        self._matmul_sizes = QUICK_MATMUL_SIZES if quick else MATMUL_SIZES
        # It takes three such arrays; like the cases, it leaves half of the free memory free.
        self._bandwidth_bytes = min(
            BANDWIDTH_BYTES >> 4 if quick else BANDWIDTH_BYTES, _machine.free_memory() // 6
        )
        self._end = time.perf_counter() + SECONDS
        add_cases = len(OUTPUTS) * len(self._add_sizes)
        self._steps = 2 + add_cases + sum(map(len, self._matmul_sizes.values()))
        self._done = 0
        self._pair_seconds = {}
        self.machine = self._describe()

    def _step(self, text):
        self._show(text, self._done / self._steps)
        self._done += 1

    def _skip(self, case, reason):
        self.skipped.append(f"{case.name} {case.n:,}: {reason}")
        self._done += 1

    def _describe(self):
        configuration = info()
        self._step("memory bandwidth")
        bandwidth = _core.stream_bandwidth(self._bandwidth_bytes, configuration["threads"])
        return {
            "cpu": _machine.cpu_model(),
            "blas": blas(),
            "cpus": _machine.cpus(),
            "memory_bytes": _machine.total_memory(),
            "free_memory_bytes": _machine.free_memory(),
            "last_level_cache_bytes": _machine.last_level_cache(),
            "python": platform.python_version(),
            "bandwidth_bytes_per_second": bandwidth,
            "bandwidth_array_bytes": self._bandwidth_bytes,
            **configuration,
        }

    @property
    def differs(self):
        return any(not row["same"] for row in self.rows)

    def run(self):
        rng = np.random.default_rng(0)
        self._run_add(rng)
        for dtype, sizes in self._matmul_sizes.items():
            for n in sizes:
                case = Case("matmul", dtype, n, "out=")
                if self._affordable(case, growth=8):
                    self._measure(case, lambda case=case: _matmul_calls(case, rng))

    def _run_add(self, rng):
        # Half of the free memory stays free: other programs need some as well.
        largest = _machine.free_memory() / 2 / (4 * ARRAYS_OF_ADD)
        room = max((n for n in self._add_sizes if n <= largest), default=0)
        self._step("filling arrays")
        operands = [rng.random(room, dtype=np.float32) for _ in range(2)]
        operands.append(np.empty(room, np.float32))
        for n in self._add_sizes:
            for output in OUTPUTS:
                case = Case("add", "float32", n, output)
                if n > room:
                    self._skip(case, "not enough free memory")
                elif self._affordable(case, growth=10):
                    self._measure(case, lambda case=case: _add_calls(case, operands))

    def _affordable(self, case, growth):
        """Whether a case that is `growth` times the previous one of its name fits the time."""
        expected = self._pair_seconds.get(case.name, 0.0) * growth * (LEAST_REPETITIONS + 2)
        if expected <= min(LONGEST_ROW_SECONDS, self._end - time.perf_counter()):
            return True
        self._pair_seconds[case.name] = float("inf")
        self._skip(case, "would take too long")
        return False

    def _measure(self, case, prepare):
        self._step(f"{case.name} {case.n:,}")
        *calls, same = prepare()
        samples = alternate(calls, self._row_seconds)
        numpy_seconds, our_seconds = map(statistics.median, samples)
        self._pair_seconds[case.name] = numpy_seconds + our_seconds
        rate = case.operations / our_seconds
        cold_ratio = None
        if numpy_seconds < LONGEST_COLD_SECONDS:
            samples_of_cold = cold(calls, COLD_REPETITIONS, pause=self._cold_pause)
            cold_numpy, cold_ours = map(statistics.median, samples_of_cold)
            cold_ratio = cold_numpy / cold_ours
        self.rows.append(
            {
                "op": case.op,
                "dtype": case.dtype,
                "n": case.n,
                "output": case.output,
                "numpy_seconds": numpy_seconds,
                "our_seconds": our_seconds,
                "repetitions": len(samples[0]),
                "ratio": numpy_seconds / our_seconds,
                "cold_ratio": cold_ratio,
                "numpy_spread": spread(samples[0]),
                "numpy_rate": case.operations / numpy_seconds / 1e9,
                "rate": rate / 1e9,
                "unit": case.unit,
                "share_of_limit": self._share(case, rate),
                "same": same,
            }
        )

    def _share(self, case, rate):
        """Share of the memory bandwidth; None where memory is not what limits."""
        cache = self.machine["last_level_cache_bytes"]
        if case.op != "add" or case.operations < 2 * cache:
            return None
        return rate / self.machine["bandwidth_bytes_per_second"]


def progress_on_stderr():
    """A callable for `Bench`: on a terminal a bar, which "" erases; else line by line."""
    terminal = sys.stderr.isatty()

    def show(text, share=0.0):
        if terminal and text:
            full = round(share * BAR_CELLS)
            text = f"[{'#' * full}{'.' * (BAR_CELLS - full)}] {share:4.0%} {text}"
            text = text[: shutil.get_terminal_size().columns - 1]  # a second line would stay
        # \033[K erases what a longer line before left over.
        line = f"\r{text}\033[K" if terminal else f"{text}\n" if text else ""
        print(line, end="", file=sys.stderr, flush=True)

    return show


def _duration(seconds):
    for unit, size in (("s ", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _verdict(row):
    if not row["same"]:
        return "RESULTS DIFFER"
    return "SLOWER" if row["ratio"] < 1 - max(row["numpy_spread"], LEAST_SPREAD) else ""


def header(machine):
    """Lines that name the machine, the versions and the limit."""
    gib = 1 << 30
    return [
        f"numc_ufuncs {machine['version']}, NumPy {machine['numpy']}, Python {machine['python']}",
        f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['memory_bytes'] / gib:.1f} GiB memory "
        f"({machine['free_memory_bytes'] / gib:.1f} free), "
        f"{machine['last_level_cache_bytes'] / (1 << 20):.0f} MiB last-level cache",
        f"ISA {machine['isa']} (of {', '.join(machine['isa_available'])}), "
        f"threads {machine['threads']} ({machine['threads_reason']})",
        f"BLAS {machine['blas']}",
        f"limit: {machine['bandwidth_bytes_per_second'] / 1e9:.1f} GB/s, a plain streaming add of "
        f"{machine['bandwidth_array_bytes'] >> 20} MiB arrays on the same threads",
    ]


def table(rows):
    """Lines of the table, one for each row."""
    lines = [
        f"{'case':20} {'n':>13} {'NumPy':>9} {'ours':>9} {'ratio':>6} {'cold':>6}"
        f" {'NumPy':>6} {'ours':>6} {'rate':7} {'of limit':>8}"
    ]
    for row in rows:
        share, cold_ratio = row["share_of_limit"], row["cold_ratio"]
        lines.append(
            f"{row['op']} {row['dtype']} {row['output']}".ljust(20)
            + f" {row['n']:>13,} {_duration(row['numpy_seconds']):>9}"
            + f" {_duration(row['our_seconds']):>9} {row['ratio']:>6.2f}"
            + f" {'-' if cold_ratio is None else f'{cold_ratio:.2f}':>6}"
            + f" {row['numpy_rate']:>6.1f} {row['rate']:>6.1f} {row['unit']:<7}"
            + f" {'-' if share is None else f'{share:.0%}':>8} {_verdict(row)}".rstrip()
        )
    return lines


def report(bench):
    """Print header, table and what was left out."""
    print("\n".join(header(bench.machine)), end="\n\n")
    print("\n".join(table(bench.rows)), end="\n\n")
    for reason in bench.skipped:
        print(f"skipped: {reason}")
    print(
        "Medians of calls in turn; ratio = NumPy / ours; cold: of single calls, each after\n"
        f"{COLD_SECONDS * 1e3:.0f} ms of sleep. SLOWER: by more than the spread of NumPy against\n"
        f"itself in this run, and by more than {LEAST_SPREAD:.0%}.\n"
        "-: not measured; or, of the limit, the arrays fit the cache."
    )


def plot(bench, path):
    """Draw GB/s of add and GOP/s of matmul over the size, both sides and the limit."""
    from matplotlib.figure import Figure  # optional: the extra `plot`

    figure = Figure(figsize=(12, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    machine = bench.machine
    _draw_rates(left, [row for row in bench.rows if row["op"] == "add"], "output")
    limit = machine["bandwidth_bytes_per_second"] / 1e9
    left.axhline(limit, color="gray", linewidth=1, label="limit of the memory")
    left.set(title="add float32", xlabel="elements", ylabel="GB/s")
    _draw_rates(right, [row for row in bench.rows if row["op"] == "matmul"], "dtype")
    right.set(title="matmul", xlabel="rows and columns", ylabel="GOP/s")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(which="both", linewidth=0.3)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))  # beside the lines, not on them
    sizes = sorted({row["n"] for row in bench.rows if row["op"] == "matmul"})
    right.set_xticks(sizes, sizes)
    right.set_xticks([], minor=True)
    versions = f"numc_ufuncs {machine['version']}, NumPy {machine['numpy']}"
    figure.suptitle(f"{versions}, {machine['cpu']}, {machine['threads']} threads")
    figure.savefig(path)


def _draw_rates(axes, rows, name):
    """Lines for each value of a column: ours solid, NumPy's dashed, in one color."""
    for i, value in enumerate(dict.fromkeys(row[name] for row in rows)):
        of_value = [row for row in rows if row[name] == value]
        n = [row["n"] for row in of_value]
        axes.plot(n, [row["rate"] for row in of_value], f"C{i}o-", label=f"{value}, ours")
        axes.plot(n, [row["numpy_rate"] for row in of_value], f"C{i}x--", label=f"{value}, NumPy")
