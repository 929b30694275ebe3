"""Our own generalized ufuncs: matmul for every dtype class and shape."""

import numpy as np

from .operands import LIBRARIES, OWN_GENERALIZED, values

# Of the matrices; where a ufunc takes a vector, it is a row of them.
SHAPES = {
    "3": ((3, 3), (3, 3)),
    "64": ((64, 64), (64, 64)),
    "256": ((256, 256), (256, 256)),
    "256 transposed": ((256, 256), (256, 256)),
    "1000 of 16": ((1000, 16, 16), (1000, 16, 16)),
    "512 by vector": ((512, 512), (512,)),
}


class Matmul:
    """``f(a, b)``."""

    param_names = ("ufunc", "dtype", "shape", "library")
    params = (
        OWN_GENERALIZED,
        ["bool", "int8", "int32", "int64", "float16", "float32", "float64", "complex128"],
        list(SHAPES),
        list(LIBRARIES),
    )

    def setup(self, ufunc, dtype, shape, library):
        self.ufunc = getattr(LIBRARIES[library], ufunc, None)
        if self.ufunc is None or (ufunc == "vecmat" and shape == "512 by vector"):
            raise NotImplementedError  # asv leaves it out; NumPy has all of them from 2.2 on
        self.a, self.b = (values(operand, dtype) for operand in SHAPES[shape])
        if shape.endswith("transposed"):
            self.b = np.swapaxes(self.b, -1, -2)
        if ufunc in ("vecdot", "vecmat"):
            self.a = self.a[..., 0, :]
        if ufunc in ("vecdot", "matvec") and self.b.ndim > 1:
            self.b = self.b[..., 0, :]

    def time_call(self, *_):
        self.ufunc(self.a, self.b)
