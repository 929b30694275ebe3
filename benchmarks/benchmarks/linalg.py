"""Linear algebra: stacks of small matrices, and one matrix."""

import numpy as np

import numc_ufuncs as nc

LIBRARIES = {"numpy": np.linalg, "numc_ufuncs": nc.linalg}
OPS = ["inv", "solve", "det", "slogdet", "cholesky", "eigh", "eigvalsh", "svd", "qr", "pinv"]


class Linalg:
    """``f(a)`` of so many positive definite matrices of n x n."""

    param_names = ("function", "shape", "library")
    params = (OPS, ["1 of 3", "1 of 200", "10000 of 3", "1000 of 8", "50 of 64"], list(LIBRARIES))

    def setup(self, function, shape, library):
        count, n = map(int, shape.split(" of "))
        rng = np.random.default_rng(n)
        a = rng.uniform(-1, 1, (count, n, n))
        a = a @ a.swapaxes(-1, -2) + n * np.eye(n)
        a = a[0] if count == 1 else a
        self.function = getattr(LIBRARIES[library], function)
        self.args = (a, a[..., :1].copy()) if function == "solve" else (a,)

    def time_call(self, *_):
        self.function(*self.args)
