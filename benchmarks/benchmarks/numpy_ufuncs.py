"""Every ufunc of NumPy, as ``numc_ufuncs.<name>``."""

from .operands import LIBRARIES, NUMPY_UFUNCS, inputs_of


class Parallel:
    """``f(*inputs)`` of one dtype, contiguous."""

    param_names = ("ufunc", "n", "library")
    params = (NUMPY_UFUNCS, [10**4, 10**6], list(LIBRARIES))

    def setup(self, ufunc, n, library):
        self.ufunc = getattr(LIBRARIES[library], ufunc)
        self.inputs = inputs_of(ufunc, n)

    def time_call(self, *_):
        self.ufunc(*self.inputs)
