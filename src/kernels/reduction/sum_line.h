/* The eight running sums of a leaf, as NumPy has them: one, two or four vectors. For sum_kernel.h. */
#ifndef NUMC_SUM_LINE_H
#define NUMC_SUM_LINE_H

#include "reduction_kernels.h"

enum {
    SUMS = 8,
    LANES = VECTOR_BYTES / ACCUMULATOR_BYTES,
    STORED_BYTES = LANES * sizeof(stored), /* of a vector in memory */
    LINE_STORED_BYTES = SUMS * sizeof(stored),
};
_Static_assert(sizeof(accumulator) == ACCUMULATOR_BYTES, "ACCUMULATOR_BYTES is of accumulators");

#define LINE_VECTORS (8 * ACCUMULATOR_BYTES / VECTOR_BYTES)

INLINE accumulator load_part(const char *from)
{
    return widen(*(const stored *)from);
}

INLINE vector load_accumulators(const accumulator *from)
{
    vector loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

INLINE void store_accumulators(accumulator *to, vector sum)
{
    memcpy(to, &sum, sizeof sum);
}

/* A struct because compilers keep arrays in memory; and copied one vector at a time, because GCC
 * copies a whole struct by half vectors, which stalls store forwarding. */
#if LINE_VECTORS == 1
typedef struct {
    vector a;
} line;

INLINE line load(const char *from)
{
    return (line){load_vector(from)};
}

INLINE line plus(line x, line y)
{
    return (line){x.a + y.a};
}

INLINE void store_line(accumulator *to, line x)
{
    store_accumulators(to, x.a);
}
#elif LINE_VECTORS == 2
typedef struct {
    vector a, b;
} line;

INLINE line load(const char *from)
{
    return (line){load_vector(from), load_vector(from + STORED_BYTES)};
}

INLINE line plus(line x, line y)
{
    return (line){x.a + y.a, x.b + y.b};
}

INLINE void store_line(accumulator *to, line x)
{
    store_accumulators(to, x.a);
    store_accumulators(to + LANES, x.b);
}
#else
typedef struct {
    vector a, b, c, d;
} line;

INLINE line load(const char *from)
{
    return (line){load_vector(from), load_vector(from + STORED_BYTES),
                  load_vector(from + 2 * STORED_BYTES), load_vector(from + 3 * STORED_BYTES)};
}

INLINE line plus(line x, line y)
{
    return (line){x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d};
}

INLINE void store_line(accumulator *to, line x)
{
    store_accumulators(to, x.a);
    store_accumulators(to + LANES, x.b);
    store_accumulators(to + 2 * LANES, x.c);
    store_accumulators(to + 3 * LANES, x.d);
}
#endif

/* A sum: one accumulator, or the real and the imaginary one. */
typedef struct {
    accumulator part[PARTS];
} sum;

INLINE sum plus_sum(sum x, sum y)
{
    for (int i = 0; i < PARTS; i++) {
        x.part[i] += y.part[i];
    }
    return x;
}

/* ---- eight running sums to one, in NumPy's order ---- */

INLINE sum fold_in_memory(line of)
{
    accumulator r[SUMS];
    store_line(r, of);
    sum result;
    if (PARTS == 1) {
        result.part[0] = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    } else {
        result.part[0] = (r[0] + r[2]) + (r[4] + r[6]);
        result.part[PARTS - 1] = (r[1] + r[3]) + (r[5] + r[7]);
    }
    return result;
}

#if defined(__AVX2__) && ACCUMULATOR_BYTES == 8 && LINE_VECTORS == 2
INLINE sum fold(line of)
{
    if (PARTS == 2) {
        const __m128d first =
            _mm256_castpd256_pd128((__m256d)of.a) + _mm256_extractf128_pd((__m256d)of.a, 1);
        const __m128d all = first + (_mm256_castpd256_pd128((__m256d)of.b) +
                                     _mm256_extractf128_pd((__m256d)of.b, 1));
        sum result = {{all[0]}};
        result.part[PARTS - 1] = all[1];
        return result;
    }
    /* r0 + r1, r4 + r5, r2 + r3, r6 + r7 */
    const __m256d pairs = _mm256_hadd_pd((__m256d)of.a, (__m256d)of.b);
    const __m128d quads = _mm256_castpd256_pd128(pairs) + _mm256_extractf128_pd(pairs, 1);
    return (sum){{quads[0] + quads[1]}};
}

#elif defined(__AVX2__) && ACCUMULATOR_BYTES == 4 && LINE_VECTORS == 1
INLINE sum fold(line of)
{
    const __m128 low = _mm256_castps256_ps128((__m256)of.a);
    const __m128 high = _mm256_extractf128_ps((__m256)of.a, 1);
    if (PARTS == 2) {
        const __m128 pairs = _mm_movelh_ps(low, high) + _mm_movehl_ps(high, low);
        sum result = {{pairs[0] + pairs[2]}};
        result.part[PARTS - 1] = pairs[1] + pairs[3];
        return result;
    }
    const __m128 pairs = _mm_hadd_ps(low, high);
    const __m128 quads = _mm_hadd_ps(pairs, pairs);
    return (sum){{quads[0] + quads[1]}};
}

#else
INLINE sum fold(line of)
{
    return fold_in_memory(of);
}

#endif

#endif
