/* Reductions by NumPy's own inner loops, of operations whose result is the same in any order. */
#ifndef NUMC_LOOP_REDUCTION_H
#define NUMC_LOOP_REDUCTION_H

#include "numpy_api.h"

#include "kernels/kernels.h"

struct loop_reduction {
    struct reduction_kernel kernel;
    PyUFuncGenericFunction function;
    void *data;
    bool from_zero; /* zero changes nothing */
};

/* Called once, at import. -1 with an exception. */
int loop_reduction_initialize(void);

/* Prepares the reduction by row `row` of a ufunc; false if there is none. */
bool loop_reduction_of_row(struct loop_reduction *reduction, const PyUFuncObject *ufunc, int row);

/* The least of signed integers of a size, which of floats finds a negative zero. */
const struct reduction_kernel *loop_reduction_minimum(size_t item_size);

#endif
