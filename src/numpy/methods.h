/* Methods of NumPy's ufuncs that ours have in a faster form. */
#ifndef NUMC_METHODS_H
#define NUMC_METHODS_H

#include "numpy_api.h"

#include <stdint.h>

int methods_initialize(void);

/* Gives a clone methods of its own, those of `op` unless it is NULL; from NumPy 2.2 on, before which
 * ufuncs have no attributes. */
int methods_shadow(PyObject *clone, const char *op);

/* np.ufunc.reduce and np.ufunc.accumulate, for the ufunc `self`. */
PyObject *methods_numpy_reduce(PyObject *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *keywords);
PyObject *methods_numpy_accumulate(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                   PyObject *keywords);

#endif
