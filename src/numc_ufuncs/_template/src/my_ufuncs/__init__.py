"""NumPy ufuncs of one's own."""

from ._loops import lerp

__all__ = ["lerp"]
__version__ = "0.1.0"
