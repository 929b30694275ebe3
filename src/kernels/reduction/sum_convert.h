/* Conversions of elements to the dtype in which they are added, as NumPy casts them: all are exact, but
 * for 64-bit integers, which are rounded. For sum_float32.c, sum_float64.c and sum_complex128.c, which
 * define CONVERSIONS, a list of
 *   FROM(kind, C type of a part) */
#ifndef NUMC_SUM_CONVERT_H
#define NUMC_SUM_CONVERT_H

#include "reduction_kernels.h"

#if HAS_HALF_SUMS && PARTS == 1
#if defined(__F16C__)
typedef uint16_t float16;

INLINE void widen_eight(const float16 *from, float to[8])
{
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const void *)from)));
}
#else
typedef __fp16 float16;

INLINE void widen_eight(const float16 *from, float to[8])
{
    for (int i = 0; i < 8; i++) {
        to[i] = from[i];
    }
}
#endif

INLINE void convert_some(const float16 from[8], stored *to, ptrdiff_t n, bool onto)
{
    float single[8];
    widen_eight(from, single);
    for (ptrdiff_t i = 0; i < n; i++) {
        to[i] = onto ? to[i] + single[i] : single[i];
    }
}

static void convert_halves(const char *from, ptrdiff_t step, void *to, ptrdiff_t n, bool onto)
{
    stored *y = to;
    for (; n >= 8 && step == sizeof(float16); n -= 8, y += 8, from += 8 * sizeof(float16)) {
        convert_some((const float16 *)from, y, 8, onto);
    }
    for (; n > 0; n -= 8, y += 8, from += 8 * step) {
        const ptrdiff_t taken = n < 8 ? n : 8;
        float16 some[8] = {0};
        for (ptrdiff_t i = 0; i < taken; i++) {
            some[i] = *(const float16 *)(from + i * step);
        }
        convert_some(some, y, taken, onto);
    }
}
#endif

#if PARTS == 1
static void convert_bools(const char *from, ptrdiff_t step, void *to, ptrdiff_t n, bool onto)
{
    stored *y = to;
    for (ptrdiff_t i = 0; i < n; i++) {
        const stored x = from[i * step] != 0;
        y[i] = onto ? y[i] + x : x;
    }
}
#endif

#define CONVERT(c_type) JOIN(convert, c_type)
#define FROM(kind, c_type)                                                                         \
    /* Inlined with constants: contiguous elements get loops of vectors. */                        \
    INLINE void JOIN(convert_step, c_type)(const char *from, ptrdiff_t step, stored *restrict y,   \
                                           ptrdiff_t n, bool onto)                                 \
    {                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            for (int part = 0; part < PARTS; part++) {                                             \
                const stored x = (stored)((const c_type *)(from + i * step))[part];                \
                y[i * PARTS + part] = onto ? y[i * PARTS + part] + x : x;                          \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void CONVERT(c_type)(const char *from, ptrdiff_t step, void *to, ptrdiff_t n,           \
                                bool onto)                                                         \
    {                                                                                              \
        const ptrdiff_t next = PARTS * sizeof(c_type);                                             \
        if (step == next && onto) {                                                                \
            JOIN(convert_step, c_type)(from, next, to, n, true);                                   \
        } else if (step == next) {                                                                 \
            JOIN(convert_step, c_type)(from, next, to, n, false);                                  \
        } else {                                                                                   \
            JOIN(convert_step, c_type)(from, step, to, n, onto);                                   \
        }                                                                                          \
    }
CONVERSIONS
#undef FROM

static const struct conversion_kernel conversions[] = {
#define FROM(kind, c_type) {kind, PARTS * sizeof(c_type), CONVERT(c_type)},
    CONVERSIONS
#undef FROM
#if PARTS == 1
    {'b', 1, convert_bools},
#endif
#if HAS_HALF_SUMS && PARTS == 1
    {'f', 2, convert_halves},
#endif
    {0, 0, NULL},
};

#endif
