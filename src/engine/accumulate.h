/* Running results along one line, by kernels of integers. */
#ifndef NUMC_ACCUMULATE_H
#define NUMC_ACCUMULATE_H

#include "kernels/kernels.h"

struct policy;

/* out[k] = before combined with in[0] ... in[k], for kernels that can; `in` and `out` coincide or share
 * no byte. */
struct accumulation {
    const struct policy *policy;
    const struct reduction_kernel *kernel;
    convert_elements *convert; /* of elements of another dtype than the kernel's; NULL: of that */
    const char *before, *in;
    char *out;
    ptrdiff_t in_step, out_step, n;
};

/* On several threads where that pays. */
void accumulate_compute(const struct accumulation *accumulation);

#endif
