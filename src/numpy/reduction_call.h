/* Carries out a planned reduction of a whole array by kernels. */
#ifndef NUMC_REDUCTION_CALL_H
#define NUMC_REDUCTION_CALL_H

#include "reduction_plan.h"

/* The result; NULL with an exception, or without one if NumPy is to do it: memory was refused, or
 * the order decides which zeros results are. */
PyObject *reduction_run(struct reduction_plan *plan);

#endif
