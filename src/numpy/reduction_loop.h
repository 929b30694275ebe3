/* Calls of an inner loop by which NumPy reduces or accumulates. */
#ifndef NUMC_REDUCTION_LOOP_H
#define NUMC_REDUCTION_LOOP_H

#include "numpy_api.h"

#include <stdbool.h>
#include <stdint.h>

struct reduction_kernel;

/* The kernel for items of a type, or NULL. */
const struct reduction_kernel *reduction_of_type(const char *op, int type);

/* The kernel for a row such as `ff->f` of a ufunc's table, or NULL. */
const struct reduction_kernel *reduction_of_row(const char *op, const char types[], int operands);

/* A call of an inner loop, if it reduces or accumulates: whether it has been computed. */
bool reduction_in_loop(const struct reduction_kernel *kernel, char **args, npy_intp n,
                       const npy_intp *steps);

/* How often that happened so far. */
uint64_t reduction_loops(void);

#endif
