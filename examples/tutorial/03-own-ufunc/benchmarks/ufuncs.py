"""The ufuncs beside formulas of NumPy's, and on all cores."""

import numpy as np
import own

import numc_ufuncs as nc


class Logistic:
    param_names = ("n", "way")
    params = (
        [100, 10**4, 10**6],
        ["NumPy", "own", "own, all cores"],
    )
    functions = {
        "NumPy": lambda x: 1 / (1 + np.exp(-x)),
        "own": own.logistic,
        "own, all cores": nc.parallel(own.logistic),
    }

    def setup(self, n, way):
        self.call = self.functions[way]
        self.operands = (np.random.default_rng(0).normal(size=n),)

    def time_call(self, *_):
        self.call(*self.operands)


class Distance(Logistic):
    """Of n points of three coordinates to one point."""

    functions = {
        "NumPy": lambda a, b: np.sqrt(((a - b) ** 2).sum(-1)),
        "own": own.distance,
        "own, all cores": nc.parallel(own.distance),
    }

    def setup(self, n, way):
        self.call = self.functions[way]
        points = np.random.default_rng(0).normal(size=(n, 3))
        self.operands = points, points[0]
