/* One reduction, as its plan describes it. */
#ifndef NUMC_REDUCTION_TASK_H
#define NUMC_REDUCTION_TASK_H

#include "gather.h"

#include <stdbool.h>

struct policy;
struct reduction_kernel;

/* A reduction as NumPy computes it: by inner calls, each over the elements of the `inner` axes, which are
 * reduced in halves; to each result of the `kept` axes they are added one after the other, in the order
 * of the `repeated` axes. Without inner axes, elements are added to the results one by one. */
struct reduction {
    const struct policy *policy;
    const struct reduction_kernel *kernel;
    const char *data;
    char *out;
    struct axes kept, repeated, inner;
    ptrdiff_t inner_call;         /* steps along the last inner axis in one inner call */
    struct conversion conversion; /* to the kernel's type */
    size_t out_size;
    bool onto;   /* results are combined with what is in `out` */
    int threads; /* that may share it: as reduction_threads() says */
};

/* Whether each result is of one element. */
static inline bool reduction_is_copy(const struct reduction *reduction)
{
    return size_from(&reduction->inner, 0) == 1 && size_from(&reduction->repeated, 0) == 1;
}

#endif
