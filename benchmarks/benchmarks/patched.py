"""What programs write, with NumPy as it is and patched: what gains, and what must not lose."""

import numpy as np

import numc_ufuncs as nc

SHORT, LONG = np.arange(10.0), np.arange(1e6)
INTEGERS, OBJECTS = np.arange(10), np.arange(3).astype(object)
MATRIX = np.ones((300, 300), np.int32)
CALLS = {
    "number": lambda: np.exp(1.5),
    "list": lambda: np.add([1, 2], 3),
    "objects": lambda: OBJECTS + 1,
    "two dtypes": lambda: SHORT + INTEGERS,
    "short operator": lambda: SHORT + SHORT,
    "short sum": lambda: SHORT.sum(),
    "short max": lambda: SHORT.max(),
    "short cumsum": lambda: SHORT.cumsum(),
    "long operator": lambda: LONG + LONG,
    "long sum": lambda: LONG.sum(),
    "long std": lambda: LONG.std(),
    "clip": lambda: np.clip(LONG, 1, 1000),
    "dot of integers": lambda: MATRIX.dot(MATRIX),
    "einsum of integers": lambda: np.einsum("ij,jk->ik", MATRIX, MATRIX),
}


class Patched:
    """The call as a program writes it."""

    param_names = ("call", "numpy")
    params = (list(CALLS), ["plain", "patched"])

    def setup(self, call, numpy):
        self.call = CALLS[call]
        if numpy == "patched":
            nc.patch_numpy()

    def teardown(self, call, numpy):
        nc.restore_numpy()

    def time_call(self, call, numpy):
        self.call()
