/* Sums of one floating dtype, with NumPy's bits. The file that includes it defines DTYPE and
 *   stored       the C type of a part in memory; PARTS 2 of complex elements, else 1
 *   accumulator  the type in which parts are added; ACCUMULATOR_BYTES its size
 *   vector       of accumulators; load_vector(), widen() and narrow() convert
 *   round_vector()  rounds to the values of the stored type */
#ifndef NUMC_SUM_KERNEL_H
#define NUMC_SUM_KERNEL_H

#include "sum_columns.h"
#if defined(CONVERSIONS)
#include "sum_convert.h"
#endif
#include "sum_segments.h"

static void combine(const struct reduction_kernel *kernel, void *into, const void *later,
                    size_t bytes)
{
    (void)kernel;
    accumulator *restrict x = into;
    const accumulator *restrict y = later;
    for (size_t i = 0; i < bytes / sizeof *x; i++) {
        x[i] += y[i];
    }
}

/* In registers: each addition waits for the one before. */
INLINE void store_onto_one(const accumulator *x, ptrdiff_t n, stored *out)
{
    accumulator total[PARTS];
    for (int part = 0; part < PARTS; part++) {
        total[part] = widen(out[part]);
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        for (int part = 0; part < PARTS; part++) {
            total[part] = round_part(total[part] + x[k * PARTS + part]);
        }
    }
    for (int part = 0; part < PARTS; part++) {
        out[part] = narrow(total[part]);
    }
}

/* NumPy's sums begin with a positive zero. */
static void store(const struct reduction_kernel *kernel, const void *sums, ptrdiff_t n, char *out,
                  ptrdiff_t step, size_t out_size, bool onto)
{
    (void)kernel, (void)out_size;
    const accumulator *x = sums;
    if (step == PARTS * (ptrdiff_t)sizeof(stored) && !onto) {
        for (ptrdiff_t k = 0; k < n * PARTS; k++) {
            ((stored *)out)[k] = narrow(x[k] + 0);
        }
        return;
    }
    if (step == 0 && onto) {
        store_onto_one(x, n, (stored *)out);
        return;
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        for (int part = 0; part < PARTS; part++) {
            stored *to = (stored *)(out + k * step) + part;
            *to = narrow((onto ? widen(*to) : 0) + x[k * PARTS + part]);
        }
    }
}

const struct reduction_kernel REDUCTION(add, DTYPE) = {
    .op = "add",
    .kind = PARTS == 2 ? 'c' : 'f',
    .item_size = PARTS * sizeof(stored),
    .sum_size = PARTS * sizeof(accumulator),
    .final = -1,
#if defined(CONVERSIONS)
    .conversions = conversions,
#endif
    .reduce_each = reduce_each,
    .reduce_rows = reduce_rows,
    .reduce_segments = reduce_segments,
    .reduce_runs = reduce_runs,
    .combine = combine,
    .store = store,
};

#endif
