/* Calls of matmul and its relatives. */
#ifndef NUMC_MATMUL_CALL_H
#define NUMC_MATMUL_CALL_H

#include "operands.h"

/* Computes a product of matrices or vectors, or of stacks of them; as call_directly(). */
bool matmul_call(const struct ufunc_call *call, PyObject **result);

/* The function to register with NumPy for the calls that it keeps, with a struct gufunc_loop as its data. */
void gufunc_run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data);

/* How many of this thread so far. */
extern _Thread_local unsigned long long matmul_calls;

#endif
