/* Sums of one floating dtype. The file that includes it defines DTYPE and
 *   stored       the C type of a part in memory; PARTS 2 of complex elements, else 1
 *   accumulator  the type in which parts are added, accumulator_bits unsigned of that size
 *   vector       of accumulators; load_vector_of_parts(), widen() and narrow() convert
 *   negative_zero()  adding it changes nothing, and raises nothing */
#ifndef NUMC_SUM_KERNEL_H
#define NUMC_SUM_KERNEL_H

#include "sum_columns.h"
#include "sum_elements.h"

INLINE void fold_line(line of, accumulator sum[PARTS])
{
    accumulator all[ACCUMULATORS];
    store_line(all, of);
    for (int width = ACCUMULATORS / 2; width >= PARTS; width /= 2) {
        for (int i = 0; i < width; i++) {
            all[i] += all[i + width];
        }
    }
    memcpy(sum, all, PARTS * sizeof *sum);
}

static void reduce(const char *data, ptrdiff_t step, ptrdiff_t n, void *result)
{
    store_line(result, sum_any(data, step, n));
}

static void reduce_each(const char *data, ptrdiff_t step, ptrdiff_t n, ptrdiff_t next,
                        ptrdiff_t count, void *sums)
{
    accumulator *sum = sums;
    for (ptrdiff_t k = 0; k < count && n * PARTS < ACCUMULATORS; k++) {
        for (int part = 0; part < PARTS; part++) {
            const char *first = data + k * next + part * (ptrdiff_t)sizeof(stored);
            sum[k * PARTS + part] = sum_short(first, step, n);
        }
    }
    for (ptrdiff_t k = 0; k < count && n * PARTS >= ACCUMULATORS; k++) {
        fold_line(sum_any(data + k * next, step, n), sum + k * PARTS);
    }
}

static void fold(const void *of, void *sum)
{
    fold_line(load_accumulators(of), sum);
}

static void store(const void *sums, ptrdiff_t n, char *out, ptrdiff_t step, size_t out_size,
                  bool onto)
{
    (void)out_size;
    const accumulator *sum = sums;
    if (step == PARTS * (ptrdiff_t)sizeof(stored) && !onto) {
        for (ptrdiff_t k = 0; k < n * PARTS; k++) {
            ((stored *)out)[k] = narrow(sum[k] + 0);
        }
        return;
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        for (int part = 0; part < PARTS; part++) {
            stored *to = (stored *)(out + k * step) + part;
            *to = narrow(sum[k * PARTS + part] + (onto ? widen(*to) : 0));
        }
    }
}

const struct reduction_kernel REDUCTION(add, DTYPE) = {
    .op = "add",
    .kind = PARTS == 2 ? 'c' : 'f',
    .item_size = PARTS * sizeof(stored),
    .sum_size = PARTS * sizeof(accumulator),
    .leaf = LEAF_PARTS / PARTS,
    .reduce = reduce,
    .reduce_each = reduce_each,
    .reduce_rows = reduce_rows,
    .combine = combine,
    .fold = fold,
    .store = store,
};

#endif
