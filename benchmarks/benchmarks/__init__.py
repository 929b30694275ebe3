"""asv suite: each ufunc of this package beside NumPy's, as values of one parameter."""
