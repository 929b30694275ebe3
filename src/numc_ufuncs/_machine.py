"""What benchmarks need to know about the machine: its CPU, caches and free memory."""

import os
from pathlib import Path

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _text(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def cpu_model():
    """The name of the CPU, or the architecture where the kernel gives no name (aarch64)."""
    for line in _text("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Hardware", "cpu model"):
            return value.strip()
    return os.uname().machine


def cpus():
    """How many CPUs this process may run on."""
    return len(os.sched_getaffinity(0))


def _cache_bytes(text):
    return int(text[:-1]) * _UNITS[text[-1]] if text[-1:] in _UNITS else int(text or 0)


def last_level_caches():
    """Bytes of each last-level cache of the CPUs that this process may run on."""
    caches = {}
    for cpu in os.sched_getaffinity(0):
        folders = Path(f"/sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")
        levels = [(int(_text(folder / "level") or 0), folder) for folder in folders]
        if levels:
            folder = max(levels)[1]
            caches[_text(folder / "shared_cpu_list")] = _cache_bytes(_text(folder / "size"))
    return list(caches.values())


def last_level_cache():
    """Bytes of last-level cache of all CPUs that this process may run on, 0 if unknown."""
    # A CPU of several dies has several last-level caches, and threads on all dies use them all.
    return sum(last_level_caches()) or max(os.sysconf("SC_LEVEL3_CACHE_SIZE"), 0)


def _meminfo():
    rows = (line.split() for line in _text("/proc/meminfo").splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3}


def _free_in_group(folder, limit_file, usage_file):
    """Bytes that a control group may still take; None without a limit."""
    limit, usage = _text(folder / limit_file), _text(folder / usage_file)
    if not (limit.isdecimal() and usage.isdecimal()):
        return None
    # Cached file pages count as used, but the kernel drops them before it refuses memory.
    rows = (line.split() for line in _text(folder / "memory.stat").splitlines())
    cached = sum(int(row[1]) for row in rows if row[0] in ("inactive_file", "active_file"))
    return max(int(limit) - int(usage) + cached, 0)


def _group_limits():
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            root, files = "/sys/fs/cgroup", ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            root = "/sys/fs/cgroup/memory"
            files = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        # Ancestors bind as well. In a container the path may be the host's and not exist here.
        group = Path(group.lstrip("/"))
        for ancestor in (group, *group.parents):
            yield _free_in_group(Path(root) / ancestor, *files)


def total_memory():
    """Bytes of memory of the machine."""
    return _meminfo().get("MemTotal", 0)


def free_memory():
    """Bytes that this process can take without swapping, or running into its group's limit."""
    limits = [_meminfo().get("MemAvailable", 0), *_group_limits()]
    return min(limit for limit in limits if limit is not None)
