/* Reductions whose results have short rows in several places, such as those along the first and the last axis: a
 * call for each row would take longer than its elements. */
#ifndef NUMC_SCATTERED_ROWS_H
#define NUMC_SCATTERED_ROWS_H

#include "reduction_task.h"

/* In two steps: all places are reduced to one, and then its rows. False if it is not such a reduction, if the
 * order of its elements matters, or without memory: nothing of the output is final then. */
bool scattered_rows_reduce(const struct reduction *reduction);

#endif
