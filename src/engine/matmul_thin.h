/* Products of a matrix and few columns, or of few rows and a matrix: as fast as that one is read. */
#ifndef NUMC_MATMUL_THIN_H
#define NUMC_MATMUL_THIN_H

#include "kernels/matmul/matmul_kernels.h"
#include "threads/policy.h"

/* The first product of a stack, where n is the thin side. */
struct thin_task {
    const struct thin_kernels *kernel;
    struct product product;
    bool is_complex;
    bool conjugates_a, conjugates_b;
};

/* On up to `threads` threads. Results do not depend on how many. */
void thin_run(const struct policy *policy, const struct thin_task *task, int threads);

#endif
