"""The cases of benchmarks/ufuncs.py in a table; the least of some repetitions, in µs."""

from timeit import Timer

from benchmarks.ufuncs import Distance, Logistic

SECONDS = 0.002  # short samples, of which the least are hardly disturbed by other programs
REPETITIONS = 15

for case in (Logistic(), Distance()):
    sizes, ways = case.params
    print(f"{type(case).__name__:12}", *(f"{way:>16}" for way in ways))
    for n in sizes:
        cells = []
        for way in ways:
            case.setup(n, way)
            timer = Timer(case.time_call)
            calls = max(1, int(SECONDS / timer.timeit(1)))
            cells.append(1e6 * min(timer.repeat(REPETITIONS, calls)) / calls)
        print(f"{n:>12,}", *(f"{cell:16.1f}" for cell in cells))
