"""add, subtract, multiply and divide on a GPU, of arrays in all kinds of memory, beside others.

    python benchmarks/gpu_elementwise.py [part ...]      # parts: see PARTS; all without any

Times are medians of calls made in turn, as in benchmarks/gpu.py.
"""

import time

import numpy as np
from gpu import (
    NAMES,
    _device_seconds,
    cupy,
    free_peers,
    main,
    median_seconds,
    ms,
    parts_of,
    start_device,
    table,
    torch,
)

import numc_ufuncs as nc

OPS = ("add", "subtract", "multiply", "divide")
LEAST_OF_COPY = 0.95
MOST_CALL_US = 12
MOST_HOST_MS = {"pinned": 165, "ordinary": 300}


def filled(memory, n, dtype, value):
    with nc.config(memory=memory):
        return np.full(n, value, dtype)


def on_gpu(op, *args):
    with nc.config(device="cuda"):
        return getattr(nc, op)(args[0], args[1], out=args[2])


def copy_bandwidth(size=4 << 30):
    """Bytes read and written per second, from the GPU's memory to the GPU's memory."""
    if cupy is None:
        return None
    source, target = cupy.zeros(size, np.uint8), cupy.empty(size, np.uint8)
    seconds = _device_seconds(lambda: target.data.copy_from_device_async(source.data, size))
    source = target = None
    free_peers()
    return 2 * size / seconds


def fastest(call, seconds=0.1):
    """The operands lie on the GPU, and the call is over when it returns."""
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def peers_rates(op, dtype, n):
    """Bytes per second of arrays that are on the GPU."""
    rates = {}
    if cupy is not None:
        a, b, out = (cupy.ones(n, dtype) for _ in range(3))
        rates["cupy"] = 3 * a.nbytes / _device_seconds(lambda: getattr(cupy, op)(a, b, out=out))
        a = b = out = None
    if torch is not None and torch.cuda.is_available():
        a, b, out = (torch.from_numpy(np.ones(n, dtype)).cuda() for _ in range(3))

        def call():
            getattr(torch, op)(a, b, out=out)
            torch.cuda.synchronize()

        rates["torch"] = 3 * n * np.dtype(dtype).itemsize / fastest(call)
        a = b = out = None
    free_peers()
    return rates


def print_resident(op, arrays, copy, peers):
    a, b, out = arrays
    for x in arrays:
        nc.memory.prefetch(x, "cuda")  # then calls stay there unasked
    ufunc = getattr(nc, op)
    rate = 3 * a.nbytes / fastest(lambda: ufunc(a, b, out=out))
    missed = "MISSED" if copy and rate < LEAST_OF_COPY * copy else ""
    if nc.last_call()["device"] == "cpu":
        missed = f"MISSED: {nc.last_call()['reason']}"
    shown = "".join(f", {name} {of / 1e9:.0f}" for name, of in peers.items())
    case = f"  {op} {NAMES[a.dtype.char]} {a.size:.0e}"
    share = f" = {rate / copy:.3f} of the copy" if copy else ""
    print(f"{case}: {rate / 1e9:.0f}{share}{shown} {missed}", flush=True)


def part_resident():
    copy = copy_bandwidth()
    said = (
        f"; a copy on the device {copy / 1e9:.0f}, at least {LEAST_OF_COPY} of it" if copy else ""
    )
    print(f"\nresident managed arrays, GB/s{said}", flush=True)
    for dtype, n in [(dtype, 10**8) for dtype in "fdil"] + [("f", 10**9)]:
        arrays = [filled("managed", n, dtype, value) for value in (3, 2, 1)]
        for op in OPS[: 3 if dtype in "il" else 4] if n == 10**8 else OPS[:1]:
            peers = peers_rates(op, dtype, n) if op == "add" and n == 10**8 else {}
            print_resident(op, arrays, copy, peers)
        del arrays
        nc.memory.release()


def part_calls():
    """Of 1000 elements: latency."""
    rows = []
    for memory in ("managed", "pinned", "system"):
        a, b, out = (filled(memory, 1000, "f", value) for value in (3, 2, 1))
        with nc.config(device="cuda"):
            add = nc.add
            seconds = fastest(lambda a=a, b=b, out=out, add=add: add(a, b, out=out), 0.2)
        most = MOST_CALL_US if memory == "managed" else "-"
        missed = "MISSED" if memory == "managed" and seconds * 1e6 > most else ""
        rows.append((f"device='cuda', {memory}", f"{seconds * 1e6:.1f}", most, missed))
    a, b, out = (filled("managed", 1000, "f", value) for value in (3, 2, 1))
    for x in (a, b, out):
        nc.memory.prefetch(x, "cuda")
    unasked = fastest(lambda: nc.add(a, b, out=out), 0.2)
    rows.append((f"unasked, on {nc.last_call()['device']}", f"{unasked * 1e6:.1f}", "-", ""))
    x, y, z = (np.full(1000, value, "f") for value in (3, 2, 1))
    rows.append(("numpy", f"{fastest(lambda: np.add(x, y, out=z)) * 1e6:.2f}", "-", ""))
    if cupy is not None:
        x, y, z = (cupy.full(1000, value, "f") for value in (3, 2, 1))

        def call():
            cupy.add(x, y, out=z)
            cupy.cuda.get_current_stream().synchronize()

        rows.append(("cupy", f"{fastest(call, 0.2) * 1e6:.1f}", "-", ""))
    table("a call of 1000 elements, us", ("case", "takes", "<=", ""), rows)


def part_host():
    """Arrays of the processor, 10^9 float32, into out=."""
    n, rows = 10**9, []
    for memory, name in (("pinned", "pinned"), ("system", "ordinary")):
        a, b, out = (filled(memory, n, "f", value) for value in (3, 2, 1))
        calls = {"ours": lambda a=a, b=b, out=out: on_gpu("add", a, b, out)}
        calls["cpu"] = lambda a=a, b=b, out=out: nc.add(a, b, out=out)
        calls["numpy"] = lambda a=a, b=b, out=out: np.add(a, b, out=out)
        if cupy is not None and memory == "system":  # most of a second each
            calls["cupy"] = lambda a=a, b=b, out=out: cupy.add(
                cupy.asarray(a), cupy.asarray(b)
            ).get(out=out)
        seconds = median_seconds(calls, 0.5)
        free_peers()
        assert (out[:: 1 << 20] == 5).all()
        most = MOST_HOST_MS[name]
        missed = "MISSED" if seconds["ours"] * 1e3 > most else ""
        peers = (seconds.get(peer) for peer in ("cpu", "numpy", "cupy"))
        rows.append((name, ms(seconds["ours"]), most, *map(ms, peers), missed))
        del a, b, out, calls
        nc.memory.release()
    columns = ("memory", "device='cuda'", "<=", "all cores", "numpy", "cupy", "")
    table("float32 add of 10^9 with out=, ms", columns, rows)


def part_alternating():
    """NumPy reads each result: what a step of the program takes, unasked."""
    rows = []
    for n in (1000, 10**6, 10**8):
        steps = max(3, min(300, 10**8 // n))
        times = {}
        for memory in ("system", "managed"):
            x = filled(memory, n, "f", 1)
            with nc.config(memory=memory):
                start = time.perf_counter()
                for _ in range(steps):
                    y = nc.multiply(x, 0.5)
                    np.negative(y, out=y)
                    x = nc.add(y, 1)
                times[memory] = (time.perf_counter() - start) / steps
        rows.append((f"{n:.0e}", *(f"{1e3 * of:.3f}" for of in times.values())))
    table("NumPy and ours in turn, ms per step", ("elements", "ordinary", "managed"), rows)


PARTS = parts_of(globals())


if __name__ == "__main__":
    start_device()
    main(PARTS, __doc__)
