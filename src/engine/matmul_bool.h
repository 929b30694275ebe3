/* Products of truth values, packed to bits where that pays. */
#ifndef NUMC_MATMUL_BOOL_H
#define NUMC_MATMUL_BOOL_H

#include "kernels/matmul/matmul_kernels.h"
#include "threads/policy.h"

#include <stdbool.h>

/* Whether kernels take less time than the inner loop, for so many multiplications. */
bool matmul_bool_suits(const struct product *product, double muls);

bool matmul_bool_wants_transposition(const struct product *product);

/* Whether one call of the kernel does it, for a whole stack, too. */
bool matmul_bool_is_direct(const struct product *product);

/* What a product takes on one thread, roughly. */
double matmul_bool_ns(const struct product *product);

/* The first product of a stack, on up to `threads` threads. */
void matmul_bool(const struct policy *policy, const struct matmul_bits *kernel,
                 const struct product *product, int threads);

#endif
