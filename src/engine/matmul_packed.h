/* Products by packed blocks. */
#ifndef NUMC_MATMUL_PACKED_H
#define NUMC_MATMUL_PACKED_H

#include "kernels/matmul/matmul_kernels.h"
#include "threads/policy.h"

/* On the stack, for when allocation fails: panels of the smallest blocks fit. */
enum { LAST_RESORT_BYTES = 20 << 10 };

/* The first product of a stack, on up to `threads` threads. Without memory for large blocks it takes
 * smaller ones. */
void matmul_packed(const struct policy *policy, const struct matmul_kernel *kernel,
                   const struct product *product, int threads);

#endif
