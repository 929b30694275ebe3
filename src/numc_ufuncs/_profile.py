"""Which calls a program makes, what computes them, and where they are."""

import os
import time
from collections import defaultdict

import numpy as np

from . import _core

_FOLDERS = tuple(os.path.join(os.path.dirname(f), "") for f in (np.__file__, __file__))
_MOST_LINES = 10
COLUMNS = ("ufunc", "dtypes", "way", "reason", "calls", "elements", "seconds")


def _line_of(code, instruction):
    """The file and line of an instruction."""
    if code is None:
        return "", 0
    if not hasattr(code, "co_positions"):  # Python 3.10, where it is the line already
        return code.co_filename, instruction
    line = code.co_firstlineno
    for start, end, found in code.co_lines():
        if start <= instruction < end:
            line = found or line
    return code.co_filename, line


def _key_of(row):
    method = f".{row['method']}" if row["method"] else ""
    dtypes = " ".join(dtype.name for dtype in row["dtypes"])
    file, line = _line_of(row["code"], row["instruction"])
    return f"{row['ufunc'].__name__}{method}", dtypes, row["way"], row["reason"] or "", file, line


def _counted():
    """What has been counted so far: (calls, elements, seconds) by ufunc, dtypes, way and line."""
    counts = defaultdict(lambda: [0, 0, 0.0])
    for row in _core.profile_rows():
        key, new = _key_of(row), (row["calls"], row["elements"], row["seconds"])
        counts[key] = [a + b for a, b in zip(counts[key], new, strict=True)]
    return counts


def _seconds(value):
    for unit, factor in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 1 or unit == "us":
            return f"{value * factor:.3g} {unit}"
    raise AssertionError


class profile:
    """Count the calls of ufuncs within a ``with`` block.

    Calls of this package's ufuncs are counted, and those of NumPy's where they are patched
    (`patch_numpy`): of all threads.

    Attributes
    ----------
    rows : list of dict
        One for each ufunc, combination of dtypes, way and source line, those that took longest
        first: ``ufunc`` (and its method), ``dtypes`` (of the array operands), ``way`` (``"one
        thread"``, ``"threads"``, ``"GPU"``, or ``"NumPy"`` for its own loops), ``reason`` (why
        NumPy's own ran), ``calls``, ``elements``, ``seconds``, ``file``, ``line``.
    seconds : float
        How long the block took.

    Notes
    -----
    Reasons: ``scalars`` (no array among the operands), ``small`` (fewer than 8192 elements),
    ``objects``, ``no numbers`` (strings, times, structured dtypes), ``subclass``, ``no array``
    (lists, other types), ``keywords``, ``no gain`` (ours would not be faster).

    Examples
    --------
    >>> import numpy as np, numc_ufuncs as nc
    >>> with nc.patched(), nc.profile() as p:
    ...     total = (np.arange(10.0) * 2).sum()
    >>> sorted(row["ufunc"] for row in p.rows)
    ['add.reduce', 'multiply']
    """

    def __init__(self):
        self.rows = []
        self.seconds = 0.0

    def __enter__(self):
        _core.profile_open(_FOLDERS)
        self._before = _counted()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exception):
        self.seconds = time.perf_counter() - self._start
        counts = _counted()
        _core.profile_close()
        for key, before in self._before.items():
            counts[key] = [a - b for a, b in zip(counts[key], before, strict=True)]
        names = ("ufunc", "dtypes", "way", "reason", "file", "line")
        self.rows = [
            {
                **dict(zip(names, key, strict=True)),
                "calls": calls,
                "elements": elements,
                "seconds": seconds,
            }
            for key, (calls, elements, seconds) in counts.items()
            if calls > 0
        ]
        self.rows.sort(key=lambda row: -row["seconds"])
        return False

    def _summed_by(self, names):
        sums = defaultdict(lambda: [0, 0, 0.0])
        for row in self.rows:
            sum_ = sums[tuple(row[name] for name in names)]
            for i, name in enumerate(("calls", "elements", "seconds")):
                sum_[i] += row[name]
        return sorted(sums.items(), key=lambda item: -item[1][2])

    def table(self):
        """Return a table of ufuncs, and one of the lines that took most, as text.

        Returns
        -------
        str
        """
        by_ufunc = [
            (*key, f"{calls:,}", f"{elements:,}", _seconds(seconds))
            for key, (calls, elements, seconds) in self._summed_by(COLUMNS[:4])
        ]
        by_line = [
            (f"{file}:{line}" if file else "not in Python", f"{calls:,}", _seconds(seconds))
            for (file, line), (calls, _, seconds) in self._summed_by(("file", "line"))
        ]
        in_calls = sum(row["seconds"] for row in self.rows)
        calls = sum(row["calls"] for row in self.rows)
        return "\n".join(
            [
                f"{calls:,} calls took {_seconds(in_calls)} of {_seconds(self.seconds)}",
                "",
                *_aligned([COLUMNS, *by_ufunc], left=4),
                "",
                *_aligned([("line", "calls", "seconds"), *by_line[:_MOST_LINES]], left=1),
            ]
        )

    def to_json(self):
        """Return all rows as JSON.

        Returns
        -------
        str
        """
        import json  # here: an import of the package should take no longer for it

        return json.dumps({"seconds": self.seconds, "rows": self.rows}, indent=1)

    def plot(self, file):
        """Draw how long each ufunc took, by way, into a file (matplotlib).

        Parameters
        ----------
        file : str or path
            Its name tells the format.
        """
        from matplotlib.figure import Figure

        seconds = defaultdict(lambda: defaultdict(float))
        for (ufunc, way), sums in self._summed_by(("ufunc", "way")):
            seconds[ufunc][way] += sums[2]
        shown = sorted(seconds.items(), key=lambda item: sum(item[1].values()))[-20:]
        figure = Figure(figsize=(7, 1 + 0.3 * len(shown)), layout="constrained")
        axes = figure.subplots()
        done = np.zeros(len(shown))
        for way in ("GPU", "threads", "one thread", "NumPy"):
            width = np.array([ways.get(way, 0.0) for _, ways in shown])
            axes.barh([name for name, _ in shown], width, left=done, label=way)
            done += width
        axes.set_xlabel("seconds")
        axes.legend()
        figure.savefig(file)


def _aligned(rows, left):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = (
            text.ljust(width) if i < left else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
