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


def fastest(call, seconds=0.4):
    """The operands lie on the GPU, and the call is over when it returns."""
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def peers_seconds(op, dtype, n):
    seconds = {}
    if cupy is not None:
        a, b, out = (cupy.ones(n, dtype) for _ in range(3))
        seconds["cupy"] = _device_seconds(lambda: getattr(cupy, op)(a, b, out=out))
        del a, b, out
    if torch is not None and torch.cuda.is_available():
        a, b, out = (torch.from_numpy(np.ones(n, dtype)).cuda() for _ in range(3))

        def call():
            getattr(torch, op)(a, b, out=out)
            torch.cuda.synchronize()

        seconds["torch"] = fastest(call)
        del a, b, out
    free_peers()
    return seconds


def part_resident():
    copy = copy_bandwidth()
    rows = []
    cases = [("add", "f", 10**9)] + [(op, dtype, 10**8) for dtype in "fdil" for op in OPS]
    for op, dtype, n in cases:
        if op == "divide" and dtype in "il":
            continue
        a, b, out = (filled("managed", n, dtype, value) for value in (3, 2, 1))
        on_gpu(op, a, b, out)  # moves them there; then they stay unasked
        ufunc = getattr(nc, op)
        seconds = {"ours": fastest(lambda f=ufunc, a=a, b=b, out=out: f(a, b, out=out))}
        assert nc.last_call()["device"] != "cpu", nc.last_call()
        assert out[n // 2] == getattr(np, op)(a[:1], b[:1])[0]
        moved = 3 * a.nbytes
        del a, b, out
        nc.memory.release()
        seconds |= peers_seconds(op, dtype, n)
        rates = {name: moved / of / 1e9 for name, of in seconds.items()}
        share = moved / seconds["ours"] / copy if copy else None
        missed = "MISSED" if share is not None and share < LEAST_OF_COPY else ""
        shown = [f"{rates.get(name, 0):.0f}" for name in ("ours", "cupy", "torch")]
        of_copy = f"{share:.3f}" if share else "-"
        rows.append((f"{op} {NAMES[dtype]} {n:.0e}", *shown, of_copy, missed))
    title = "resident managed arrays, GB/s"
    if copy:
        title += f"; a copy on the device {copy / 1e9:.0f}"
    columns = ("case", "ours", "cupy", "torch", f"of the copy, >= {LEAST_OF_COPY}", "")
    table(title, columns, rows)


def part_calls():
    """Of 1000 elements: latency."""
    rows = []
    for memory in ("managed", "pinned", "system"):
        a, b, out = (filled(memory, 1000, "f", value) for value in (3, 2, 1))
        with nc.config(device="cuda"):
            add = nc.add
            seconds = fastest(lambda a=a, b=b, out=out, add=add: add(a, b, out=out), 1.0)
        most = MOST_CALL_US if memory == "managed" else "-"
        missed = "MISSED" if memory == "managed" and seconds * 1e6 > most else ""
        rows.append((f"device='cuda', {memory}", f"{seconds * 1e6:.1f}", most, missed))
    a, b, out = (filled("managed", 1000, "f", value) for value in (3, 2, 1))
    for x in (a, b, out):
        nc.memory.prefetch(x, "cuda")
    unasked = fastest(lambda: nc.add(a, b, out=out), 1.0)
    rows.append((f"unasked, on {nc.last_call()['device']}", f"{unasked * 1e6:.1f}", "-", ""))
    x, y, z = (np.full(1000, value, "f") for value in (3, 2, 1))
    rows.append(("numpy", f"{fastest(lambda: np.add(x, y, out=z)) * 1e6:.2f}", "-", ""))
    if cupy is not None:
        x, y, z = (cupy.full(1000, value, "f") for value in (3, 2, 1))

        def call():
            cupy.add(x, y, out=z)
            cupy.cuda.get_current_stream().synchronize()

        rows.append(("cupy", f"{fastest(call, 1.0) * 1e6:.1f}", "-", ""))
    table("a call of 1000 elements, us", ("case", "takes", "<=", ""), rows)


def part_host():
    """Arrays of the processor, 10^9 float32, into out=."""
    n, rows = 10**9, []
    for memory, name in (("pinned", "pinned"), ("system", "ordinary")):
        a, b, out = (filled(memory, n, "f", value) for value in (3, 2, 1))
        calls = {"ours": lambda a=a, b=b, out=out: on_gpu("add", a, b, out)}
        calls["cpu"] = lambda a=a, b=b, out=out: nc.add(a, b, out=out)
        calls["numpy"] = lambda a=a, b=b, out=out: np.add(a, b, out=out)
        if cupy is not None and memory == "system":
            calls["cupy"] = lambda a=a, b=b, out=out: cupy.add(
                cupy.asarray(a), cupy.asarray(b)
            ).get(out=out)
        seconds = median_seconds(calls, 1.5)
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


PARTS = {
    name.removeprefix("part_"): function
    for name, function in globals().items()
    if name.startswith("part_")
}


if __name__ == "__main__":
    start_device()
    main(PARTS, __doc__)
