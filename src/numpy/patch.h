/* NumPy's own ufuncs, led to their clones: the objects stay, what computes them changes. */
#ifndef NUMC_PATCH_H
#define NUMC_PATCH_H

#include "numpy_api.h"

/* The clone that computes calls of one of NumPy's ufuncs, here and now; NULL: NumPy does. */
PyObject *patch_clone(PyObject *ufunc);

/* An exception that NumPy raised for a clone names its original, as the caller knows it. */
PyObject *patch_finish(PyObject *clone, PyObject *called, PyObject *result);

/* The Python functions behind patch_numpy. */
int patch_add_functions(PyObject *module);

#endif
