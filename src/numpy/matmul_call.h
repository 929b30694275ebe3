/* Calls of matmul and its relatives. */
#ifndef NUMC_MATMUL_CALL_H
#define NUMC_MATMUL_CALL_H

#include "operands.h"

/* Computes a product of matrices or vectors, or of stacks of them; as call_directly(). */
bool matmul_call(const struct ufunc_call *call, PyObject **result);

/* How many of this thread so far. */
extern _Thread_local unsigned long long matmul_calls;

#endif
