/* Arguments initial= and where= of reductions by kernels. */
#ifndef NUMC_REDUCTION_START_H
#define NUMC_REDUCTION_START_H

#include "reduction_plan.h"

/* Completes a plan for kernels by what results begin with, and by the mask; false if the call is to be
 * NumPy's. */
bool reduction_plan_start(struct reduction_plan *plan);

#endif
