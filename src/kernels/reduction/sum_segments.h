/* Sums of segments: the first element, to which the sum of the others is added; and of the runs of a mask.
 * For sum_kernel.h. */
#ifndef NUMC_SUM_SEGMENTS_H
#define NUMC_SUM_SEGMENTS_H

#include "sum_pairwise.h"

#include "kernels/copy/find_bool.h"

/* The sum of n > 0 elements. */
INLINE sum sum_of(const char *data, ptrdiff_t step, ptrdiff_t n, bool is_contiguous,
                  bool from_memory)
{
    const ptrdiff_t parts = n * PARTS;
    if (is_contiguous) {
        return parts <= REDUCTION_LEAF_PARTS ? sum_leaf(data, parts, false)
                                             : sum_contiguous(data, parts, from_memory);
    }
    if (parts >= SUMS) {
        return sum_strided(data, step, n, from_memory);
    }
    sum few = load_sum(data);
    for (ptrdiff_t i = 1; i < n; i++) {
        few = plus_sum(few, load_sum(data + i * step));
    }
    return few;
}

INLINE void sum_segments(const char *data, ptrdiff_t step, const ptrdiff_t bounds[],
                         ptrdiff_t count, char *out, ptrdiff_t out_step, bool is_contiguous,
                         bool from_memory)
{
    for (ptrdiff_t k = 0; k < count; k++) {
        const char *first = data + bounds[k] * step;
        const ptrdiff_t n = bounds[k + 1] - bounds[k];
        if (n <= 1) {
            memcpy(out + k * out_step, first, PARTS * sizeof(stored));
            continue;
        }
        const sum all = plus_sum(load_sum(first),
                                 sum_of(first + step, step, n - 1, is_contiguous, from_memory));
        for (int part = 0; part < PARTS; part++) {
            ((stored *)(out + k * out_step))[part] = narrow(all.part[part]);
        }
    }
}

INLINE ptrdiff_t sum_runs(const char *data, ptrdiff_t step, const char *mask, ptrdiff_t mask_step,
                          ptrdiff_t n, bool is_contiguous, sum *sums)
{
    ptrdiff_t runs = 0;
    for (ptrdiff_t first, end = 0; (first = find_bool_from(true, mask, mask_step, end, n)) < n;) {
        end = find_bool_from(false, mask, mask_step, first, n);
        sums[runs++] = sum_of(data + first * step, step, end - first, is_contiguous, true);
    }
    return runs;
}

static ptrdiff_t reduce_runs(const struct reduction_kernel *kernel, const char *data,
                             ptrdiff_t step, const char *mask, ptrdiff_t mask_step, ptrdiff_t n,
                             void *sums)
{
    (void)kernel;
    const ptrdiff_t contiguous = PARTS * (ptrdiff_t)sizeof(stored);
    return step == contiguous && mask_step == 1
               ? sum_runs(data, contiguous, mask, 1, n, true, sums)
               : sum_runs(data, step, mask, mask_step, n, step == contiguous, sums);
}

static void reduce_segments(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                            const ptrdiff_t bounds[], ptrdiff_t count, bool from_memory, char *out,
                            ptrdiff_t out_step, size_t out_size)
{
    (void)kernel, (void)out_size;
    if (step == PARTS * (ptrdiff_t)sizeof(stored)) {
        sum_segments(data, PARTS * sizeof(stored), bounds, count, out, out_step, true, from_memory);
    } else {
        sum_segments(data, step, bounds, count, out, out_step, false, from_memory);
    }
}

#endif
