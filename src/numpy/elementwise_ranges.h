/* NumPy's inner loop on threads, which get ranges of NumPy's iterator: the steps and buffers that NumPy's own
 * path has. */
#ifndef NUMC_ELEMENTWISE_RANGES_H
#define NUMC_ELEMENTWISE_RANGES_H

#include "operand_iterator.h"

struct ranged_call {
    const char *name; /* of the ufunc */
    struct elementwise *engine;
    struct iterator_operands operands;
    npy_intp n;
    int threads;
};

/* How many threads n elements should run on. */
int ranges_threads(const struct elementwise *engine, npy_intp n);

/* False: nothing was done, NumPy has to. Otherwise *result is the output, or a tuple of them, or NULL with an
 * exception. */
bool ranges_run(const struct ranged_call *call, PyObject **result);

#endif
