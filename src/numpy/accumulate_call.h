/* accumulate of a whole array, past NumPy's method. */
#ifndef NUMC_ACCUMULATE_CALL_H
#define NUMC_ACCUMULATE_CALL_H

#include "reduction_arguments.h"
#include "reduction_plan.h"

/* The result; NULL with an exception, or without one if NumPy is to do it. `op` is that of our kernels, or
 * NULL. */
PyObject *accumulate_call(PyObject *ufunc, const struct reduction_op *op,
                          const struct reduction_arguments *arguments);

#endif
