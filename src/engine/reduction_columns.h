/* Reductions without inner axes: elements that lie one below the other. */
#ifndef NUMC_REDUCTION_COLUMNS_H
#define NUMC_REDUCTION_COLUMNS_H

#include "reduction_split.h"

struct reduction_split reduction_split_columns(const struct reduction *reduction);

/* Combines the results of cuts, if there are several. */
void reduction_finish_columns(const struct reduction_split *split);

#endif
