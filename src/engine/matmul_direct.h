/* Products without packing: small and thin ones. */
#ifndef NUMC_MATMUL_DIRECT_H
#define NUMC_MATMUL_DIRECT_H

#include "kernels/matmul/matmul_kernels.h"
#include "threads/policy.h"

/* The first product of a stack. */
void matmul_direct(const struct matmul_kernel *kernel, const struct product *product);

/* The same by ranges of rows, or of columns where there are more of them, on up to `threads` threads. */
void matmul_ranges(const struct policy *policy, const struct matmul_kernel *kernel,
                   const struct product *product, int threads);

#endif
