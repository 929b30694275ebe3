/* Running results of whole operands, on all cores. */
#ifndef NUMC_ACCUMULATE_H
#define NUMC_ACCUMULATE_H

#include <stddef.h>

struct policy;
struct reduction_kernel;

/* out[k] = before combined with in[0] ... in[k], for kernels that can; `in` and `out` coincide or share
 * no byte. */
struct accumulation {
    const struct policy *policy;
    const struct reduction_kernel *kernel;
    const char *before, *in;
    char *out;
    ptrdiff_t in_step, out_step, n;
};
void accumulate_compute(const struct accumulation *accumulation);

#endif
