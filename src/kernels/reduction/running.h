/* Running sums and products of floats; maxima, minima and bitwise results of integers and bools. */
#ifndef NUMC_RUNNING_H
#define NUMC_RUNNING_H

#include "kernels/kernels.h"

/* A loop for out[k] = before op in[0] op ... op in[k], whose operands are `before`, `in` and `out`: it does not
 * look at the step of `before`. NULL: none of ours. */
elementwise_kernel *running_kernel_find(const char *op, char kind, size_t item_size);

#endif
