/* Products without packing: small and thin ones. */
#ifndef NUMC_MATMUL_DIRECT_H
#define NUMC_MATMUL_DIRECT_H

#include "kernels/matmul/matmul_kernels.h"
#include "threads/policy.h"

#include <stdbool.h>

/* The first product of a stack. */
void matmul_direct(const struct matmul_kernel *kernel, const struct product *product);

/* Whether integers of `size` bytes are so thin that packing them would not pay. */
bool matmul_direct_gains(ptrdiff_t size, const struct product *x);

/* By ranges of rows, or of columns where there are more of them, on up to `threads` threads. */
void matmul_ranges(const struct policy *policy, const struct matmul_kernel *kernel,
                   const struct product *product, int threads);

#endif
