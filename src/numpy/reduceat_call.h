/* Calls of reduceat whose segments kernels reduce, on all cores. */
#ifndef NUMC_REDUCEAT_CALL_H
#define NUMC_REDUCEAT_CALL_H

#include "numpy_api.h"

struct reduction_op;

/* NULL without an exception if the call is to be NumPy's. */
PyObject *reduceat_call(const struct reduction_op *op, PyObject *const *args, Py_ssize_t count,
                        PyObject *keywords);

#endif
