"""Time per call of fibonacci(90): this plugin, and a cached function of Python."""

import functools
from timeit import Timer

import smallest


@functools.cache
def cached(n):
    return n if n < 2 else cached(n - 1) + cached(n - 2)


def loop(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


for name, function in {"plugin": smallest.fibonacci, "functools": cached, "loop": loop}.items():
    timer = Timer("function(90)", globals={"function": function})
    calls, _ = timer.autorange()
    seconds = min(timer.repeat(5, calls // 4 + 1)) / (calls // 4 + 1)
    print(f"{name:10}{1e9 * seconds:8.0f} ns")
