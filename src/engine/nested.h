/* One call over operands in several dimensions. */
#ifndef NUMC_NESTED_H
#define NUMC_NESTED_H

#include "nested_operands.h"

/* Computes all elements, in any order, on several threads where that pays; changes `nested`. Every output
 * element must coincide exactly with those of its inputs or share no byte with any. For operands
 * that suit the loop, see enum same_bits: those of a loop that is SAME_IN_LINE are one row, or
 * become one (tiling_is_whole()). */
void nested_run(struct elementwise *loop, struct nested *nested, bool is_tiny);

#endif
