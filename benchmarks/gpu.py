"""matmul on a GPU, ordinary arrays in, a fresh array out, beside NumPy, CuPy and torch.

    python benchmarks/gpu.py [part ...]      # parts: see PARTS; all but the sweep without any

Times are medians of calls made in turn. The limit is the larger of what the operands need to get to
the device from pinned memory and what the product takes there, both measured.
"""

import argparse
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import numc_ufuncs as nc
from numc_ufuncs import _bench

PAUSE_SECONDS = 0.12
BLOCKS, LEAST_CALLS, MOST_CALLS = 2, 2, 100
NAMES = {"f": "float32", "d": "float64", "i": "int32", "l": "int64", "e": "float16"}
NAMES |= {"F": "complex64", "D": "complex128", "b": "int8", "?": "bool"}

try:
    import cupy
except ImportError:
    cupy = None
try:
    import torch
except ImportError:
    torch = None


# ---- operands and measuring ----


def operand(shape, dtype, seed=0):
    """Random numbers, of which large arrays repeat some: making them takes longer than products."""
    count = int(np.prod(shape))
    rng = np.random.default_rng(seed)
    period = rng.standard_normal(min(count, 999_983))  # a prime: no two rows are alike
    if np.dtype(dtype).kind in "iub?":
        period = period * 1000
    if np.dtype(dtype).kind == "c":
        period = period + 1j * rng.standard_normal(period.size)
    return np.resize(period.astype(dtype), shape)


def samples_of(calls, budget=2.0, blocks=BLOCKS, pause=PAUSE_SECONDS):
    """Seconds of each of the calls, by name, within about `budget` seconds in all.

    Each has the machine to itself some times, after a pause: threads of OpenBLAS, torch and OpenMP
    keep spinning for a while, and would take the processors from whoever comes next. Every other
    time the order is turned round: what went before costs up to a tenth.
    """
    samples = {name: [] for name in calls}
    share = budget / blocks / len(calls)
    for block in range(blocks):
        for name in list(calls)[:: 1 if block % 2 == 0 else -1]:
            call = calls[name]
            time.sleep(pause)
            call()
            end = time.perf_counter() + share
            for done in range(MOST_CALLS):
                start = time.perf_counter()
                result = call()
                now = time.perf_counter()
                samples[name].append(now - start)
                del result
                if now > end and done + 1 >= LEAST_CALLS:
                    break
    return samples


def median_seconds(*arguments):
    return {name: statistics.median(of) for name, of in samples_of(*arguments).items()}


def on(device, **options):
    def matmul(a, b):
        with nc.config(device=device, **options):
            return nc.matmul(a, b)

    return matmul


def start_device():
    """Or auto would stay on the CPU until the time lost exceeds the start."""
    on("cuda")(*[operand((512, 512), "f")] * 2)


def by_cupy(a, b):
    return cupy.matmul(cupy.asarray(a), cupy.asarray(b)).get()


def by_torch(a, b):
    a, b = torch.from_numpy(a), torch.from_numpy(b)
    return torch.matmul(a.cuda(), b.cuda()).cpu().numpy()


def free_peers():
    if cupy is not None:
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()


def pinned_bandwidth(size=1 << 28):
    if cupy is None:
        return 55.6e9
    pinned = cupy.cuda.alloc_pinned_memory(size)
    on_device = cupy.empty(size, np.uint8)
    return size / _device_seconds(lambda: on_device.data.copy_from_host_async(pinned.ptr, size))


def _device_seconds(call, repeats=5):
    stream = cupy.cuda.get_current_stream()
    call()
    events = []
    for _ in range(repeats):
        events.append((cupy.cuda.Event(), cupy.cuda.Event()))
        events[-1][0].record(stream)
        call()
        events[-1][1].record(stream)
    stream.synchronize()
    return statistics.median(cupy.cuda.get_elapsed_time(*pair) for pair in events) / 1e3


def limit_seconds(a, b, bandwidth):
    """What no way can fall below: the operands' way to the device, or the product there."""
    transfer = (a.nbytes + b.nbytes) / bandwidth
    if cupy is None:
        return transfer
    x, y = cupy.asarray(a), cupy.asarray(b)
    out = cupy.empty((a.shape[0], b.shape[1]), a.dtype)
    seconds = _device_seconds(lambda: cupy.matmul(x, y, out=out))
    x = y = out = None
    free_peers()
    return max(transfer, seconds)


def ms(seconds):
    return "-" if seconds is None else f"{seconds * 1e3:.3g}"


def table(title, columns, rows):
    print(f"\n{title}")
    rows = [columns, *rows]
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(columns))]
    for row in rows:
        print("  ".join(str(cell).rjust(width) for cell, width in zip(row, widths, strict=True)))


def times(x, y):
    return "-" if x is None or y is None else f"{x / y:.2f}"


# ---- parts ----

MOST_MS = {
    ("d", 1024): 0.9,
    ("d", 2048): 2.6,
    ("d", 4096): 8,
    ("d", 8192): 34,
    ("d", 16384): 215,
    ("f", 2048): 1.7,
    ("f", 4096): 6,
    ("f", 8192): 31,
    ("f", 16384): 210,
}
LEAST_TIMES_CUPY = {
    ("d", 2048): 6,
    ("d", 4096): 8,
    ("d", 8192): 6.5,
    ("d", 16384): 4.5,
    ("f", 2048): 2.2,
    ("f", 4096): 5.5,
    ("f", 8192): 4,
    ("f", 16384): 2.8,
}


def part_squares():
    bandwidth = pinned_bandwidth()
    print(f"pinned memory to the device: {bandwidth / 1e9:.1f} GB/s")
    rows = []
    for dtype in "df":
        for n in (1024, 2048, 4096, 8192, 16384):
            a, b = operand((n, n), dtype, 1), operand((n, n), dtype, 2)
            calls = {"ours": lambda a=a, b=b: on("cuda")(a, b)}
            if n <= 4096:
                calls["numpy"] = lambda a=a, b=b: np.matmul(a, b)
            if cupy is not None:
                calls["cupy"] = lambda a=a, b=b: by_cupy(a, b)
            if torch is not None:
                calls["torch"] = lambda a=a, b=b: by_torch(a, b)
            seconds = median_seconds(calls, 3.0)
            free_peers()
            limit = limit_seconds(a, b, bandwidth)
            most, least = MOST_MS.get((dtype, n)), LEAST_TIMES_CUPY.get((dtype, n))
            ours, cupys = seconds["ours"], seconds.get("cupy")
            good = (most is None or ours * 1e3 <= most) and (
                least is None or cupys is None or cupys / ours >= least
            )
            rows.append(
                (
                    f"{NAMES[dtype]} {n}",
                    ms(ours),
                    most or "-",
                    ms(seconds.get("numpy")),
                    ms(cupys),
                    ms(seconds.get("torch")),
                    ms(limit),
                    f"{limit / ours:.0%}",
                    times(cupys, ours),
                    least or "-",
                    times(seconds.get("numpy"), ours),
                    "" if good else "MISSED",
                )
            )
    columns = ("case, ms", "ours", "<=", "numpy", "cupy", "torch", "limit", "share")
    table("squares, host to host", (*columns, "x cupy", ">=", "x numpy", ""), rows)


def part_layouts():
    rows = []
    n = 4096
    for dtype in "df":
        a, b = operand((n, n), dtype, 1), operand((n, n), dtype, 2)
        wide = operand((2 * n, n), dtype, 3)[::2]
        columns = operand((n, 2 * n), dtype, 4)[:, ::2]
        pairs = {
            "contiguous": (a, b),
            "a.T": (a.T, b),
            "b.T": (a, b.T),
            "both .T": (a.T, b.T),
            "rows [::2]": (wide, b),
            "reversed": (a[::-1], b),
            "columns [:, ::2]": (columns, b),
        }
        calls = {name: lambda pair=pair: on("cuda")(*pair) for name, pair in pairs.items()}
        seconds = median_seconds(calls, 2.5)
        for name in pairs:
            ratio = seconds[name] / seconds["contiguous"]
            missed = "MISSED" if ratio > 1.15 and name != "columns [:, ::2]" else ""
            rows.append((f"{NAMES[dtype]} {name}", ms(seconds[name]), f"{ratio:.2f}", missed))
    table(f"layouts at {n}, at most 1.15", ("case, ms", "ours", "ratio", ""), rows)


def part_batch():
    a, b = operand((10000, 64, 64), "f", 1), operand((64, 64), "f", 2)
    start_device()
    calls = {
        "auto": lambda: on("auto")(a, b),
        "cuda": lambda: on("cuda")(a, b),
        "cpu": lambda: on("cpu")(a, b),
        "numpy": lambda: np.matmul(a, b),
    }
    if cupy is not None:
        calls["cupy"] = lambda: by_cupy(a, b)
    seconds = median_seconds(calls, 6.0, 2 * BLOCKS)
    free_peers()
    table(
        "10000 x 64x64 float32, one operand broadcast, ms",
        tuple(calls),
        [[ms(of) for of in seconds.values()]],
    )


def part_integers():
    rows = []
    for dtype in "il":
        for n in (1024, 4096, 8192):
            a, b = operand((n, n), dtype, 1), operand((n, n), dtype, 2)
            calls = {"ours": lambda a=a, b=b: on("cuda")(a, b)}
            alone = None
            if cupy is not None:
                calls["cupy"] = lambda a=a, b=b: by_cupy(a, b)
                x, y = cupy.asarray(a), cupy.asarray(b)
                out = cupy.empty((n, n), dtype)
                alone = _device_seconds(lambda x=x, y=y, out=out: cupy.matmul(x, y, out=out), 3)
                del x, y, out
            seconds = median_seconds(calls, 2.5)
            free_peers()
            ratio = times(seconds.get("cupy"), seconds["ours"])
            missed = "MISSED" if n > 1024 and ratio != "-" and float(ratio) < 1.5 else ""
            rows.append(
                (f"{NAMES[dtype]} {n}", *map(ms, (seconds["ours"], seconds.get("cupy"), alone)))
                + (ratio, missed)
            )
    table(
        "integers, at least 1.5 x cupy",
        ("case, ms", "ours", "cupy", "cupy's kernel alone", "x cupy", ""),
        rows,
    )


def part_memory():
    """Operands and result twice as large as what the device may be used for."""
    import _numc_test  # of an installation with -Dtests=true

    rows = []
    for dtype in "fd":
        n = 8192
        a, b = operand((n, n), dtype, 1), operand((n, n), dtype, 2)
        calls = {"": lambda a=a, b=b: on("cuda")(a, b)}
        free = median_seconds(calls, 1.5)[""]
        _numc_test.limit_device_memory(3 * a.nbytes // 2)
        limited = median_seconds(calls, 1.5)[""]
        _numc_test.limit_device_memory(0)
        ratio = limited / free
        rows.append(
            (f"{NAMES[dtype]} {n}", ms(free), ms(limited), f"{ratio:.2f}")
            + ("MISSED" if ratio > 1.3 else "",)
        )
    table(
        "half of the memory that it needs, at most 1.3",
        ("case, ms", "all", "half", "ratio", ""),
        rows,
    )


def part_kernels():
    rows = []
    for dtype, n in (("f", 2048), ("d", 2048), ("f", 4096), ("e", 2048), ("F", 2048)):
        a, b = operand((n, n), dtype, 1), operand((n, n), dtype, 2)
        calls = {
            gemm: lambda a=a, b=b, gemm=gemm: on("cuda", gemm=gemm)(a, b)
            for gemm in ("tiled", "cublas")
        }
        seconds = median_seconds(calls, 1.0)
        rows.append((f"{NAMES[dtype]} {n}", ms(seconds["tiled"]), ms(seconds["cublas"])))
    table("kernels; float32 2048: at most 2.6 and 1.7", ("case, ms", "tiled", "cublas"), rows)


def exact_product(a, b):
    """In a wider dtype, of real numbers on this package's own threads."""

    def product(x, y):
        wide = np.float64 if a.itemsize <= 4 * (1 + (a.dtype.kind == "c")) else np.longdouble
        with nc.config(device="cpu"):
            return nc.matmul(x.astype(wide), y.astype(wide))

    if a.dtype.kind != "c":
        return product(a, b)
    real = product(a.real, b.real) - product(a.imag, b.imag)
    return real + 1j * (product(a.real, b.imag) + product(a.imag, b.real))


def part_errors():
    rows = []
    for dtype in "fdFDe":
        for n in (1024, 4096, 8192, 16384)[: {"e": 2, "F": 3, "D": 3}.get(dtype)]:
            a, b = operand((n, n), dtype, 1), operand((n, n), dtype, 2)
            some = slice(0, 16), slice(0, 2048)
            exact = exact_product(a[:16], b[:, :2048])
            # NumPy's halves take minutes, and are summed in an order that no shape changes.
            few = slice(0, 16) if dtype == "e" else slice(0, 256)
            results = {"numpy": np.matmul(a[few], b[:, :2048])}
            results["cublas"] = on("cuda")(a, b)
            if n <= 4096:
                results["tiled"] = on("cuda", gemm="tiled")(a, b)
            errors = {
                name: np.sqrt(np.mean(np.abs(result[some] - exact) ** 2))
                for name, result in results.items()
            }
            ratios = [times(errors.get(name), errors["numpy"]) for name in ("cublas", "tiled")]
            rows.append((f"{NAMES[dtype]} {n}", f"{errors['numpy']:.3g}", *ratios))
    table(
        "root mean square of the errors, cuBLAS's and the tiled kernel's as multiples of NumPy's",
        ("case", "numpy", "cublas", "tiled"),
        rows,
    )


def part_stages():
    """Where the time goes: when the last of each piece was queued, and the end, in ms."""
    import _numc_test  # of an installation with -Dtests=true

    rows = []
    for dtype, n in (("f", 2048), ("d", 1024), ("f", 4096), ("d", 4096), ("d", 8192)):
        a, b = operand((n, n), dtype, 1), operand((n, n), dtype, 2)
        for threads in (8, 12, 16):
            times = []
            time.sleep(PAUSE_SECONDS)
            for _ in range(12):
                start = time.perf_counter()
                with nc.config(threads=threads):
                    result = on("cuda")(a, b)
                times.append((*_numc_test.last_times(), time.perf_counter() - start))
                del result
            stages = sorted(times[2:], key=lambda of: of[-1])[len(times[2:]) // 2]
            rows.append((f"{NAMES[dtype]} {n}, {threads} threads", *map(ms, stages)))
    columns = ("case, ms", "last upload", "last product", "last download", "end", "call")
    table("stages", columns, rows)


MOST_TIMES_AFTER = 2


def part_neighbours():
    """After a product of NumPy's, whose threads still spin: at once, and 60 ms later."""
    rows = []
    for n in (1024, 4096):
        a, b = operand((n, n), "d", 1), operand((n, n), "d", 2)
        samples = {"alone": [], "after": [], "later": []}
        for _ in range(15):
            for name, pause in (("alone", PAUSE_SECONDS), ("after", 0), ("later", 0.06)):
                (on("cuda") if name == "alone" else np.matmul)(a, b)
                time.sleep(pause)
                start = time.perf_counter()
                result = on("cuda")(a, b)
                samples[name].append(time.perf_counter() - start)
                del result
        seconds = {name: statistics.median(of) for name, of in samples.items()}
        ratio = max(seconds["after"], seconds["later"]) / seconds["alone"]
        rows.append((f"float64 {n}", *map(ms, seconds.values()), f"{ratio:.1f}"))
        rows[-1] += ("MISSED" if ratio > MOST_TIMES_AFTER else "",)
    table(
        "after a product of NumPy's",
        ("case, ms", "alone", "after it", "60 ms later", "ratio", ""),
        rows,
    )


MOST_TIMES_PROCESSOR = 1.1
FIRST_CALLS = """
import sys, time, numpy as np, numc_ufuncs as nc
rng = np.random.default_rng(0)
a, b = rng.random((2, 4096, 4096))
for _ in range(12):
    start = time.perf_counter()
    result = eval(sys.argv[1])(a, b)
    seconds = time.perf_counter() - start
    where = nc.last_call()["device"] if sys.argv[1].startswith("nc") else "cpu"
    print(seconds, where)
"""


FIRST_PROCESSES = 5


def part_first():
    """The first calls of a process, while the device is being started.

    Each beside the call of NumPy's at the same place in its process, medians of several processes
    of both in turn; one before them measures the machine's rates."""
    times = {"np.matmul": [], "nc.matmul": []}
    for call in ("nc.matmul", *[*times] * FIRST_PROCESSES):
        done = subprocess.run(
            [sys.executable, "-c", FIRST_CALLS, call], capture_output=True, text=True, check=True
        )
        times[call].append([line.split(maxsplit=1) for line in done.stdout.splitlines()])
    rows = []
    by_call = [zip(*of, strict=True) for of in (times["np.matmul"], times["nc.matmul"][1:])]
    for theirs, ours in zip(*by_call, strict=True):
        numpy, seconds = (statistics.median(float(of[0]) for of in side) for side in (theirs, ours))
        on_cpu = sum(where == "cpu" for _, where in ours)
        missed = "MISSED" if seconds > MOST_TIMES_PROCESSOR * numpy else ""
        rows.append((ms(numpy), ms(seconds), f"{on_cpu} of {len(ours)}", f"{seconds / numpy:.2f}"))
        rows[-1] += (missed,)
    table("first calls, float64 4096", ("ms: NumPy", "ours", "on the CPU", "ratio", ""), rows)


MOST_TIMES_ALONE = 1.3


def part_two():
    """Two threads, each with a GPU of its own."""
    if len([name for name in nc.info()["devices"] if name.startswith("cuda")]) < 2:
        print("\ntwo: there is one GPU")
        return
    rows = []
    for dtype, n in (("d", 8192), ("f", 16384)):
        operands = [[operand((n, n), dtype, seed + i) for i in range(2)] for seed in (1, 3)]
        outs = [np.zeros((n, n), dtype) for _ in operands]
        samples = {"alone": [], "both": []}

        def multiply(number, operands=operands, outs=outs):
            start = time.perf_counter()
            with nc.config(device=f"cuda:{number}"):
                nc.matmul(*operands[number], out=outs[number])
            return time.perf_counter() - start

        for _ in range(6):
            time.sleep(PAUSE_SECONDS)
            samples["alone"] += [multiply(0), multiply(1)]
            time.sleep(PAUSE_SECONDS)
            with ThreadPoolExecutor(2) as pool:
                samples["both"] += [max(pool.map(multiply, (0, 1)))]
        seconds = {name: statistics.median(of) for name, of in samples.items()}
        ratio = seconds["both"] / seconds["alone"]
        rows.append((f"{NAMES[dtype]} {n}", *map(ms, seconds.values()), f"{ratio:.2f}"))
        rows[-1] += ("MISSED" if ratio > MOST_TIMES_ALONE else "",)
    table("two GPUs at once, into out", ("case, ms", "alone", "both", "ratio", ""), rows)


SWEEP_SHAPES = {
    "square": lambda n: (n, n, n),
    "tall": lambda n: (n, 32, n),
    "inner": lambda n: (32, n, n),
    "column": lambda n: (n, n, 1),
}


def part_sweep(seconds=300):
    """auto against the better of CPU and GPU, with the device up and its rates measured."""
    start_device()
    end = time.perf_counter() + seconds
    cells, missed, skipped = 0, [], 0
    for dtype in "fdiebFl":
        for shape, extents in SWEEP_SHAPES.items():
            slow_cpu = False
            for n in (16, 64, 128, 256, 512, 1024, 2048, 4096, 8192):
                if time.perf_counter() > end:
                    skipped += 1
                    continue
                m, k, p = extents(n)
                a, b = operand((m, k), dtype, 1), operand((k, p), dtype, 2)
                calls = {"cuda": lambda a=a, b=b: on("cuda")(a, b)}
                calls["auto"] = lambda a=a, b=b: on("auto")(a, b)
                if not slow_cpu:
                    calls["cpu"] = lambda a=a, b=b: on("cpu")(a, b)
                calls["auto"]()
                where = nc.last_call()["device"]
                of = median_seconds(calls, 0.1, 1, 0.07)
                slow_cpu = slow_cpu or of["cpu"] > 0.3
                best = min(of["cuda"], of.get("cpu", 9e9))
                cells += 1
                if of["auto"] > 1.1 * best:
                    again = samples_of(calls, 0.4)  # or was it noise?
                    low = {name: np.percentile(times, 25) for name, times in again.items()}
                    high = {name: np.percentile(times, 75) for name, times in again.items()}
                    if low["auto"] > 1.1 * min(low["cuda"], low.get("cpu", 9e9)) and (
                        low["auto"] > min(high["cuda"], high.get("cpu", 9e9))
                    ):
                        shown = ", ".join(
                            f"{name} {ms(low[name])}-{ms(high[name])}" for name in low
                        )
                        missed.append(f"{NAMES[dtype]} {shape} {n}: {shown} ({where})")
    print(f"\nsweep: {cells} cells, {skipped} not reached; slower than 1.1 x the better:")
    print("\n".join(f"  {line}" for line in missed[:60]) or "  none")


def parts_of(names):
    """The parts of a script, by name: its functions ``part_<name>``."""
    return {
        name.removeprefix("part_"): function
        for name, function in names.items()
        if name.startswith("part_")
    }


PARTS = parts_of(globals())


def main(parts, description):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[[], *parts], metavar="part")
    names = parser.parse_args().parts or [name for name in parts if name != "sweep"]
    print("; ".join(f"{key}: {value}" for key, value in nc.info().items()))
    print(f"BLAS {_bench.blas()}")
    for name in names:
        start = time.perf_counter()
        try:
            parts[name]()
        except Exception as error:  # the others may work
            print(f"\n{name} FAILED: {type(error).__name__}: {error}")
        print(f"[{name}: {time.perf_counter() - start:.0f} s]", flush=True)


if __name__ == "__main__":
    main(PARTS, __doc__)
