/* Reductions of whole operands, on all cores. */
#ifndef NUMC_REDUCTION_H
#define NUMC_REDUCTION_H

#include "reduction_task.h"

/* How many threads a reduction should run on now. */
int reduction_threads(const struct reduction *reduction);

/* The bits of the results do not depend on the number of threads. False if memory was refused: nothing
 * is written then. */
bool reduction_compute(const struct reduction *reduction);

#endif
