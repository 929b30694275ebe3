/* Methods of NumPy's ufuncs that ours have in a faster form. */
#ifndef NUMC_METHODS_H
#define NUMC_METHODS_H

#include "numpy_api.h"

#include <stdint.h>

int methods_initialize(void);

/* Gives a clone its own `at` and `reduceat`, and `reduce` if `op`, unless NULL, names one; from NumPy
 * 2.2 on, before which ufuncs have no attributes. */
int methods_shadow(PyObject *clone, const char *op);

/* What np.ufunc.reduce does with an array and all options, for the ufunc `self`. */
PyObject *methods_numpy_reduce(PyObject *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *keywords);

#endif
