/* Reductions without inner axes: elements that lie one below the other. */
#ifndef NUMC_REDUCTION_COLUMNS_H
#define NUMC_REDUCTION_COLUMNS_H

#include "reduction_split.h"

struct reduction_split reduction_split_columns(const struct reduction *reduction);

/* Before the blocks, if rows are cut. */
void reduction_begin_columns(struct reduction_split *split);

#endif
