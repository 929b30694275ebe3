/* Zeros in the results of a reduction, where NumPy's order decides which of both signs they have. */
#ifndef NUMC_SIGNED_ZEROS_H
#define NUMC_SIGNED_ZEROS_H

#include "reduction.h"

/* Whether a result is zero, and an element is a negative zero. `minimum` reduces signed integers of the
 * size of an element to the least. Also true if memory was refused. */
bool zeros_may_tie(const struct reduction *reduction, const struct reduction_kernel *minimum);

#endif
