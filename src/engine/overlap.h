/* The order guard: may the elements of a call be computed in any order? */
#ifndef NUMC_OVERLAP_H
#define NUMC_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the elements of a call may be computed in any order: every output coincides exactly with
 * an operand or shares no byte with it, and does not overlap itself. */
bool elements_commute(int inputs, int operands, char *const data[], const ptrdiff_t step[],
                      const size_t item_size[], ptrdiff_t n);

#endif
