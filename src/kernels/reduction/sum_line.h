/* A line of accumulators: 64 bytes, which are two or four vectors. For sum_kernel.h. */
#ifndef NUMC_SUM_LINE_H
#define NUMC_SUM_LINE_H

#include "reduction_kernels.h"

enum {
    ACCUMULATORS = ACCUMULATORS_BYTES / sizeof(accumulator),
    STORED_BYTES = ACCUMULATORS * sizeof(stored), /* of as many parts (real numbers) in memory */
};

#define ACCUMULATOR_VECTORS (64 / VECTOR_BYTES)
_Static_assert(ACCUMULATOR_VECTORS *VECTOR_BYTES == ACCUMULATORS_BYTES, "whole vectors");

typedef accumulator_bits bit_vector __attribute__((vector_size(VECTOR_BYTES)));

INLINE accumulator load_part(const char *from)
{
    return widen(*(const stored *)from);
}

/* x where the mask is set, else negative zero, the neutral element. */
INLINE vector keep_vector(vector x, vector mask)
{
    const accumulator_bits zero = (accumulator_bits)1 << (8 * sizeof(accumulator_bits) - 1);
    return (vector)(((bit_vector)x & (bit_vector)mask) | (zero & ~(bit_vector)mask));
}

/* One vector at a time: GCC copies a whole line by half vectors, which stalls store forwarding. */
INLINE vector load_vector(const void *from)
{
    vector loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

INLINE void store_vector(accumulator *to, vector sum)
{
    memcpy(to, &sum, sizeof sum);
}

/* A struct because compilers keep arrays in memory. */
#if ACCUMULATOR_VECTORS == 2
typedef struct {
    vector a, b;
} line;

INLINE line load(const char *from)
{
    return (line){load_vector_of_parts(from), load_vector_of_parts(from + STORED_BYTES / 2)};
}

INLINE line plus(line x, line y)
{
    return (line){x.a + y.a, x.b + y.b};
}

INLINE line keep(line x, line mask)
{
    return (line){keep_vector(x.a, mask.a), keep_vector(x.b, mask.b)};
}

INLINE line load_accumulators(const void *from)
{
    const accumulator *sum = from;
    return (line){load_vector(sum), load_vector(sum + ACCUMULATORS / 2)};
}

INLINE void store_line(accumulator *to, line sum)
{
    store_vector(to, sum.a);
    store_vector(to + ACCUMULATORS / 2, sum.b);
}
#else
typedef struct {
    vector a, b, c, d;
} line;

INLINE line load(const char *from)
{
    return (line){load_vector_of_parts(from), load_vector_of_parts(from + STORED_BYTES / 4),
                  load_vector_of_parts(from + STORED_BYTES / 2),
                  load_vector_of_parts(from + STORED_BYTES / 4 * 3)};
}

INLINE line plus(line x, line y)
{
    return (line){x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d};
}

INLINE line keep(line x, line mask)
{
    return (line){keep_vector(x.a, mask.a), keep_vector(x.b, mask.b), keep_vector(x.c, mask.c),
                  keep_vector(x.d, mask.d)};
}

INLINE line load_accumulators(const void *from)
{
    const accumulator *sum = from;
    return (line){load_vector(sum), load_vector(sum + ACCUMULATORS / 4),
                  load_vector(sum + ACCUMULATORS / 2), load_vector(sum + ACCUMULATORS / 4 * 3)};
}

INLINE void store_line(accumulator *to, line sum)
{
    store_vector(to, sum.a);
    store_vector(to + ACCUMULATORS / 4, sum.b);
    store_vector(to + ACCUMULATORS / 2, sum.c);
    store_vector(to + ACCUMULATORS / 4 * 3, sum.d);
}
#endif

/* Fewer parts than accumulators, padded with negative zeros at the end. */
INLINE line load_some(const char *from, ptrdiff_t parts)
{
    stored padded[ACCUMULATORS];
    for (int i = 0; i < ACCUMULATORS; i++) {
        padded[i] = negative_zero();
    }
    for (ptrdiff_t i = 0; i < parts; i++) {
        padded[i] = ((const stored *)from)[i];
    }
    return load((const char *)padded);
}

/* The last parts before `end`, padded with negative zeros in front; reads a whole line. */
INLINE line load_last(const char *end, ptrdiff_t parts)
{
    static const accumulator_bits mask[2 * ACCUMULATORS] = {[ACCUMULATORS... 2 * ACCUMULATORS - 1] =
                                                                (accumulator_bits)-1};
    const line loaded = load(end - STORED_BYTES), kept = load_accumulators(mask + parts);
    return keep(loaded, kept);
}

#endif
