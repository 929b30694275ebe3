/* NumPy's inner loops that have vectors for contiguous inputs only: `maximum` and the like of integers, logical ones of
 * bools, and arctan2. An input that is repeated, as in maximum(x, 0), is written out for them, a few cache lines at a
 * time. */
#ifndef NUMC_FILLED_LOOP_H
#define NUMC_FILLED_LOOP_H

#include "elementwise_loop.h"

/* Has the loop of NumPy's ufunc `op` for these dtypes called so, if it is one of them. */
void filled_loop_use(struct loop *loop, const char *op, const char types[]);

#endif
