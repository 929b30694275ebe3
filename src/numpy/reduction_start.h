/* Arguments initial= and where= of reductions by kernels. */
#ifndef NUMC_REDUCTION_START_H
#define NUMC_REDUCTION_START_H

#include "reduction_plan.h"

/* Whether where= is a mask that kernels take, and its steps; looked at before all else. */
bool reduction_mask_suits(const struct reduction_arguments *arguments,
                          struct masked_reduction *masked);

/* Completes a plan for kernels by what results begin with, and by the mask; false if the call is to be
 * NumPy's. */
bool reduction_plan_start(struct reduction_plan *plan);

#endif
