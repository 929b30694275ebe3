/* A stack in which one operand is repeated is one product of more rows or columns. */
#ifndef NUMC_MATMUL_JOIN_H
#define NUMC_MATMUL_JOIN_H

#include "matmul.h"

/* Joins the products of a stack where rows of a and of c follow each other along it as they do in a
 * matrix, or columns of b and of c. False: the stack remains as it is. */
bool matmul_join(const struct matmul_dtype *dtype, struct product *x);

/* Computes a stack that matmul_join() left as one product after the other of copied rows, each by
 * compute(context, product), on the calling thread. False if that does not pay, or there is no memory. */
typedef void matmul_compute(const void *context, const struct product *product);
bool matmul_join_copies(const struct policy *policy, const struct matmul_dtype *dtype,
                        const struct product *product, matmul_compute *compute,
                        const void *context);

#endif
