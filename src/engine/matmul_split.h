/* A range of indices shared out over threads, for products and stacks of them. */
#ifndef NUMC_MATMUL_SPLIT_H
#define NUMC_MATMUL_SPLIT_H

#include "threads/policy.h"

#include <stddef.h>

/* The number of threads for work that takes `ns` on one. */
int matmul_threads(const struct policy *policy, double ns);

/* Calls run(context, first, count) for ranges that together are [0, count), on up to `threads` threads. */
typedef void matmul_range(void *context, ptrdiff_t first, ptrdiff_t count);
void matmul_split(const struct policy *policy, ptrdiff_t count, int threads, matmul_range *run,
                  void *context);

#endif
