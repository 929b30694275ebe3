/* Element-wise calls whose axes are known. */
#ifndef NUMC_NESTED_CALL_H
#define NUMC_NESTED_CALL_H

#include "operands.h"

#include "engine/nested.h"

/* Computes a call of one element or more, of which `nested` has the axes, the data and `hook_data`. The result, NULL
 * with an exception, takes over the reference to the output. False, with nothing done, if only NumPy's own path can. */
bool nested_call_run(const struct ufunc_call *call, struct nested *nested, PyArrayObject *out,
                     PyObject **result);

#endif
