/* One call over operands in several dimensions. */
#ifndef NUMC_NESTED_H
#define NUMC_NESTED_H

#include "nested_operands.h"

/* Computes all elements, in any order, on several threads where that pays; changes `nested`. Every output
 * element must coincide exactly with those of its inputs or share no byte with any. For loops with a
 * kernel, or exact ones, whose results do not depend on steps; others may have one axis, and get
 * contiguous or repeated elements. */
void nested_run(struct elementwise *loop, struct nested *nested, bool is_tiny);

#endif
