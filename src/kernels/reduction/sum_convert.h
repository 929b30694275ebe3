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

INLINE void convert_some(const float16 *from, stored *to, ptrdiff_t n, bool onto)
{
    float single[8];
    widen_eight(from, single);
    for (ptrdiff_t i = 0; i < n; i++) {
        to[i] = onto ? to[i] + single[i] : single[i];
    }
}

static void convert_halves(const void *from, void *to, ptrdiff_t n, bool onto)
{
    const float16 *x = from;
    stored *y = to;
    for (; n >= 8; n -= 8) {
        convert_some(x, y, 8, onto);
        x += 8;
        y += 8;
    }
    float16 last[8] = {0};
    memcpy(last, x, (size_t)n * sizeof *last);
    convert_some(last, y, n, onto);
}
#endif

#define CONVERT(c_type) JOIN(convert, c_type)
#define FROM(kind, c_type)                                                                         \
    static void CONVERT(c_type)(const void *from, void *to, ptrdiff_t n, bool onto)                \
    {                                                                                              \
        const c_type *restrict x = from;                                                           \
        stored *restrict y = to;                                                                   \
        for (ptrdiff_t i = 0; i < n * PARTS && onto; i++) {                                        \
            y[i] += (stored)x[i];                                                                  \
        }                                                                                          \
        for (ptrdiff_t i = 0; i < n * PARTS && !onto; i++) {                                       \
            y[i] = (stored)x[i];                                                                   \
        }                                                                                          \
    }
CONVERSIONS
#undef FROM

static const struct conversion_kernel conversions[] = {
#define FROM(kind, c_type) {kind, PARTS * sizeof(c_type), CONVERT(c_type)},
    CONVERSIONS
#undef FROM
#if HAS_HALF_SUMS && PARTS == 1
    {'f', 2, convert_halves},
#endif
    {0, 0, NULL},
};

#endif
