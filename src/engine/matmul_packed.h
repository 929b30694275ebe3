/* What the files of matrix products share, and nobody else needs. */
#ifndef NUMC_MATMUL_PACKED_H
#define NUMC_MATMUL_PACKED_H

#include "matmul.h"

/* The number of threads for work that takes `ns` on one. */
int matmul_threads(const struct policy *policy, double ns);

/* A product by packed blocks on up to `threads` threads; false if there is no memory for it. */
bool matmul_packed(const struct policy *policy, const struct matmul_kernel *kernel,
                   const struct matrices *x, int threads);

#endif
