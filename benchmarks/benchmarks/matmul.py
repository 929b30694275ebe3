"""Our own generalized ufuncs: matmul for every dtype class and shape."""

import numpy as np

from .operands import LIBRARIES, OWN_GENERALIZED, values

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
        self.ufunc = getattr(LIBRARIES[library], ufunc)
        self.a, self.b = (values(operand, dtype) for operand in SHAPES[shape])
        if shape.endswith("transposed"):
            self.b = np.swapaxes(self.b, -1, -2)

    def time_call(self, *_):
        self.ufunc(self.a, self.b)
