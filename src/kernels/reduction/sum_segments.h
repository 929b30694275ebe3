/* Sums of segments: the first element, to which the sum of the others is added. For sum_kernel.h. */
#ifndef NUMC_SUM_SEGMENTS_H
#define NUMC_SUM_SEGMENTS_H

#include "sum_pairwise.h"

/* The sum of n > 0 elements. */
INLINE sum sum_of(const char *data, ptrdiff_t step, ptrdiff_t n, bool is_contiguous)
{
    const ptrdiff_t parts = n * PARTS;
    if (is_contiguous) {
        return parts <= REDUCTION_LEAF_PARTS ? sum_leaf(data, parts, false)
                                             : sum_from_memory(data, parts);
    }
    if (parts >= SUMS) {
        return sum_strided(data, step, n);
    }
    sum few = load_sum(data);
    for (ptrdiff_t i = 1; i < n; i++) {
        few = plus_sum(few, load_sum(data + i * step));
    }
    return few;
}

INLINE void sum_segments(const char *data, ptrdiff_t step, const ptrdiff_t bounds[],
                         ptrdiff_t count, char *out, ptrdiff_t out_step, bool is_contiguous)
{
    for (ptrdiff_t k = 0; k < count; k++) {
        const char *first = data + bounds[k] * step;
        const ptrdiff_t n = bounds[k + 1] - bounds[k];
        if (is_contiguous) {
            prefetch_after(first, n * PARTS * (ptrdiff_t)sizeof(stored));
        }
        if (n <= 1) {
            memcpy(out + k * out_step, first, PARTS * sizeof(stored));
            continue;
        }
        const sum all = plus_sum(load_sum(first), sum_of(first + step, step, n - 1, is_contiguous));
        for (int part = 0; part < PARTS; part++) {
            ((stored *)(out + k * out_step))[part] = narrow(all.part[part]);
        }
    }
}

static void reduce_segments(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                            const ptrdiff_t bounds[], ptrdiff_t count, char *out,
                            ptrdiff_t out_step, size_t out_size)
{
    (void)kernel, (void)out_size;
    if (step == PARTS * (ptrdiff_t)sizeof(stored)) {
        sum_segments(data, PARTS * sizeof(stored), bounds, count, out, out_step, true);
    } else {
        sum_segments(data, step, bounds, count, out, out_step, false);
    }
}

#endif
