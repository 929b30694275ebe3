/* Element-wise calls: one plan each, by the layout of their operands. */
#ifndef NUMC_ELEMENTWISE_CALL_H
#define NUMC_ELEMENTWISE_CALL_H

#include "operands.h"

/* As call_directly(). */
bool elementwise_call(const struct ufunc_call *call, PyObject **result);

/* Calls of this thread so far: one loop, several axes, ranges of an iterator on threads, a whole iterator on this
 * thread. */
extern _Thread_local struct elementwise_calls {
    unsigned long long one_loop, nested, ranged, whole;
} elementwise_calls;

#endif
