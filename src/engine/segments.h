/* Reductions of segments along an axis (reduceat), on all cores. */
#ifndef NUMC_SEGMENTS_H
#define NUMC_SEGMENTS_H

#include "gather.h"

#include <stdbool.h>

struct policy;
struct reduction_kernel;

/* Segment k along an axis of n elements begins at indices[k], and ends before indices[k + 1], the last one
 * with the axis; where that is no element, it is the one at indices[k]. Its result is the first element,
 * to which the reduction of the others is added: one inner call, wherever elements lie. */
struct segments {
    const struct policy *policy;
    const struct reduction_kernel *kernel;
    const char *data;
    char *out;
    ptrdiff_t n, step;
    const ptrdiff_t *indices;
    ptrdiff_t count, out_step;
    struct axes kept;             /* the other axes */
    struct conversion conversion; /* to the kernel's type */
    size_t out_size;
    int threads; /* that may share them: as segments_threads() says */
};

/* What segments add up to. */
struct segment_lengths {
    bool are_within; /* no index is out of bounds */
    ptrdiff_t longest, total;
};
struct segment_lengths segments_measure(const struct segments *segments);

/* How many threads segments should be reduced on now. */
int segments_threads(const struct segments *segments, const struct segment_lengths *lengths);

/* The bits of the results do not depend on the number of threads. False if memory was refused, or if
 * converted segments would take too much of it. */
bool segments_compute(const struct segments *segments, const struct segment_lengths *lengths);

#endif
