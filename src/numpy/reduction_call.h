/* Reductions of whole arrays, and those that NumPy hands to an inner loop. */
#ifndef NUMC_UFUNCS_REDUCE_H
#define NUMC_UFUNCS_REDUCE_H

#include "numpy_api.h"

#include <stdbool.h>
#include <stdint.h>

struct reduction;

int reduce_initialize(void);

/* The methods reduce and accumulate, as METH_FASTCALL | METH_KEYWORDS. */
typedef PyObject *reduce_method(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                PyObject *keywords);
reduce_method reduce_by_add, reduce_by_multiply, reduce_by_other;
reduce_method accumulate_by_add, accumulate_by_multiply, accumulate_by_other;

/* The kernel for items of a type, or NULL. */
const struct reduction *reduction_of_type(const char *op, int type);

/* The kernel for a row such as `ff->f` of a ufunc's table, or NULL. */
const struct reduction *reduction_of_row(const char *op, const char types[], int operands);

/* A call of an inner loop, if it reduces or accumulates: whether it has been computed. */
bool reduce_in_loop(const struct reduction *kernel, char **args, npy_intp n, const npy_intp *steps);

/* How often that happened so far, and how often a whole array was reduced above the loop. */
uint64_t reduce_loops(void);
uint64_t reduce_arrays(void);

#endif
