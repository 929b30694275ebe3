/* The reductions of one instruction set: a file for each dtype, compiled once per ISA. Floats are not
 * multiplied: where a partial product overflows depends on the order. */
#ifndef NUMC_REDUCTION_KERNELS_H
#define NUMC_REDUCTION_KERNELS_H

#include "kernels/kernels.h"
#include "kernels/vector.h"

#if defined(__F16C__) || defined(__aarch64__)
#define HAS_HALF_SUMS 1
#else
#define HAS_HALF_SUMS 0
#endif

#define REDUCTION(op, dtype) JOIN(JOIN(JOIN(reduction, op), dtype), ISA)

extern const struct reduction_kernel REDUCTION(add, float16), REDUCTION(add, float32),
    REDUCTION(add, float64), REDUCTION(add, complex64), REDUCTION(add, complex128);
extern const struct reduction_kernel REDUCTION(add, bool8), REDUCTION(multiply, bool8);
extern const struct reduction_kernel REDUCTION(add, int8), REDUCTION(add, int16),
    REDUCTION(add, int32), REDUCTION(add, int64), REDUCTION(add, uint8), REDUCTION(add, uint16),
    REDUCTION(add, uint32), REDUCTION(add, uint64);
extern const struct reduction_kernel REDUCTION(multiply, int8), REDUCTION(multiply, int16),
    REDUCTION(multiply, int32), REDUCTION(multiply, int64), REDUCTION(multiply, uint8),
    REDUCTION(multiply, uint16), REDUCTION(multiply, uint32), REDUCTION(multiply, uint64);

enum {
    /* Up to here a row's accumulators stay in the first-level cache, and rows are added one at a time; */
    SHORT_ROW_BYTES = 8192,
    /* rows of columns that lie apart only from memory: prefetchers do not get ahead in several short rows at once. */
    SHORT_STRIDED_ROW_BYTES = 16384,
};

#endif
