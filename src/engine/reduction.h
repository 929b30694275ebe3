/* Reductions of whole operands, on all cores. */
#ifndef NUMC_REDUCTION_H
#define NUMC_REDUCTION_H

#include <stdbool.h>
#include <stddef.h>

struct policy;
struct reduction_kernel;

/* outer * inner results, each of groups * n elements. Steps are in bytes. */
struct reduction {
    const struct policy *policy;
    const struct reduction_kernel *kernel;
    const char *data;
    char *out;
    ptrdiff_t outer, inner, groups, n;
    ptrdiff_t outer_step, inner_step, group_step, step;
    ptrdiff_t out_outer_step, out_inner_step;
    size_t out_size;
    bool onto; /* results are combined with what is in `out` */
};

/* The bits of the results do not depend on the number of threads. False if memory was refused: nothing
 * is written then. */
bool reduction_compute(const struct reduction *reduction);

#endif
