"""lerp beside the same formula of NumPy's ufuncs, which needs three passes over memory."""

import numpy as np

import my_ufuncs

WAYS = {"numpy": lambda a, b, t: a + t * (b - a), "ours": my_ufuncs.lerp}
try:
    import numc_ufuncs
except ImportError:
    pass
else:
    WAYS["all cores"] = numc_ufuncs.parallel(my_ufuncs.lerp)


class Lerp:
    param_names = ("n", "dtype", "way")
    params = ([100, 10**4, 10**6], ["float32", "float64"], list(WAYS))

    def setup(self, n, dtype, way):
        self.call = WAYS[way]
        self.operands = np.random.default_rng(0).random((3, n)).astype(dtype)

    def time_call(self, *_):
        self.call(*self.operands)
