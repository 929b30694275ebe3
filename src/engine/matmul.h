/* Matrix products over all cores: blocks, packing, stacks of matrices. */
#ifndef NUMC_MATMUL_H
#define NUMC_MATMUL_H

#include "kernels/matmul/matmul_kernels.h"
#include "threads/policy.h"

/* Computes `count` products that begin with `x`. The result of integers, halves and truth values
 * does not depend on the number of threads; no operand of c may overlap a or b. */
void matmul_run(const struct policy *policy, const struct matmul_kernel *kernel,
                const struct matrices *x, const struct stack *stack);
void matmul_bits_run(const struct policy *policy, const struct matmul_bits *kernel,
                     const struct matrices *x, const struct stack *stack);

/* Splits a stack of `count` pieces of work, of about `ns` each, over threads: each calls
 * run(context, first, count) for its parts. */
typedef void matmul_part(void *context, ptrdiff_t first, ptrdiff_t count);
void matmul_split(const struct policy *policy, ptrdiff_t count, double ns, matmul_part *run,
                  void *context);

#endif
