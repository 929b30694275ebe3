"""Every call computed by NumPy, too, and compared: what ``run --check`` does."""

import sys
import warnings

import numpy as np

from . import _core

# Relative errors that another order of summation explains, by the precision of the result.
_ROUNDING = {"e": 1e-2, "f": 1e-4, "F": 1e-4, "d": 1e-9, "D": 1e-9, "g": 1e-9, "G": 1e-9}
_PLAIN = (np.ndarray, np.generic, int, float, complex, str, type(None), list, tuple, np.dtype, type)


class Difference:
    """A call whose results differ, or whose exceptions do."""

    def __init__(self, call, text):
        self.call = call
        self.text = text

    def __str__(self):
        return f"{self.call}: {self.text}"


def _copy(value, copies):
    """An independent copy of the arrays in an argument; one array is copied once."""
    if type(value) is tuple:
        return tuple(_copy(item, copies) for item in value)
    if type(value) is not np.ndarray:
        return value
    if id(value) not in copies:
        copies[id(value)] = value.copy(order="K")
    return copies[id(value)]


def _is_plain(value):
    """Whether it has no code of its own that would be called twice."""
    if type(value) in (tuple, list):
        return all(map(_is_plain, value))
    if type(value) is np.ndarray:
        return not value.dtype.hasobject
    if value is np._NoValue:
        return True
    return isinstance(value, _PLAIN) and not isinstance(value, np.ndarray)


def _shown(value):
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    return type(value).__name__


def _line():
    """Where the program made the call."""
    from ._profile import _FOLDERS

    frame = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_FOLDERS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "?"


def _difference(expected, found):
    """How two results differ by more than rounding; None if they do not."""
    if isinstance(expected, tuple) and isinstance(found, tuple) and len(expected) == len(found):
        parts = (_difference(e, f) for e, f in zip(expected, found, strict=True))
        return next((part for part in parts if part), None)
    if type(expected) is not type(found):
        return f"{type(found).__name__} instead of {type(expected).__name__}"
    theirs, ours = np.asarray(expected), np.asarray(found)
    if theirs.dtype != ours.dtype or theirs.shape != ours.shape:
        return f"{_shown(ours)} instead of {_shown(theirs)}"
    tolerance = _ROUNDING.get(theirs.dtype.char, 0)
    if tolerance == 0:
        differ = (theirs != ours) & ~((theirs != theirs) & (ours != ours))  # NaT equals nothing
    else:
        # A sum may be far smaller than what was added.
        finite = np.abs(theirs[np.isfinite(theirs)])
        scale = finite.max() if finite.size else 0
        differ = ~np.isclose(
            ours, theirs, rtol=tolerance, atol=tolerance * float(scale), equal_nan=True
        )
    if not np.any(differ):
        return None
    at = tuple(int(i) for i in np.argwhere(differ)[0])
    count = f"{np.count_nonzero(differ)} of {theirs.size} elements differ"
    return f"{count}, {ours[at]} instead of {theirs[at]}" + (f" at {list(at)}" if at else "")


class Check:
    """Compare every call from now on, until `stop`.

    Attributes
    ----------
    calls : int
        How many were compared. Calls of Python objects, of subclasses and of other types are not.
    differences : list of Difference
    """

    def __init__(self):
        self.calls = 0
        self.differences = []
        _core.set_check(self._before, self._after, True)

    def stop(self):
        """Compute calls once again."""
        _core.set_check(self._before, self._after, False)

    def _before(self, ufunc, method, args, keywords):
        if not all(map(_is_plain, (*args, *keywords.values()))):
            return None
        copies = {}
        args = [_copy(value, copies) for value in args]
        keywords = {name: _copy(value, copies) for name, value in keywords.items()}
        name = ufunc.__name__ + ("" if method == "__call__" else f".{method}")
        call = f"{name}({', '.join(map(_shown, args))}) in {_line()}"
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return call, getattr(ufunc, method)(*args, **keywords)
            except Exception as error:
                return call, type(error)

    def _after(self, before, found):
        if before is None:
            return
        self.calls += 1
        call, expected = before
        raised = [isinstance(value, type) for value in (expected, found)]
        if not any(raised):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                text = _difference(expected, found)
        elif all(raised) or issubclass(
            found if raised[1] else expected, (Warning, ArithmeticError)
        ):
            text = None  # warnings and floating-point errors may have been made exceptions
        else:
            text = f"{_shown(found)} instead of {_shown(expected)}"
        if text:
            self.differences.append(Difference(call, text))
