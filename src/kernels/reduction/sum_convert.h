/* Conversions of elements to the dtype in which they are added, as NumPy casts them: all are exact, but
 * for 64-bit integers, which are rounded. For sum_float32.c, sum_float64.c and sum_complex128.c, which
 * define CONVERSIONS, a list of
 *   FROM(kind, C type of a part, value of a part x in vectors) */
#ifndef NUMC_SUM_CONVERT_H
#define NUMC_SUM_CONVERT_H

#include "kernels/integer_convert.h"

#include "reduction_kernels.h"

#if HAS_HALF_SUMS && PARTS == 1
#if defined(__F16C__)
typedef uint16_t float16;

INLINE float widen_half(float16 x)
{
    return _cvtsh_ss(x);
}

INLINE void widen_eight(const float16 *from, float to[8])
{
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const void *)from)));
}
#else
typedef __fp16 float16;

INLINE float widen_half(float16 x)
{
    return x;
}

INLINE void widen_eight(const float16 *from, float to[8])
{
    for (int i = 0; i < 8; i++) {
        to[i] = from[i];
    }
}
#endif

static void convert_halves(const char *from, ptrdiff_t step, void *to, ptrdiff_t n, bool onto)
{
    stored *y = to;
    for (; n >= 8 && step == sizeof(float16); n -= 8, y += 8, from += 8 * sizeof(float16)) {
        float single[8];
        widen_eight((const float16 *)from, single);
        for (int i = 0; i < 8; i++) {
            y[i] = onto ? y[i] + single[i] : single[i];
        }
    }
    /* One by one: a vector that is loaded from what was just stored in parts would wait. */
    for (ptrdiff_t i = 0; i < n; i++) {
        const stored x = widen_half(*(const float16 *)(from + i * step));
        y[i] = onto ? y[i] + x : x;
    }
}
#endif

#if PARTS == 1
INLINE void convert_bools_step(const char *from, ptrdiff_t step, stored *restrict y, ptrdiff_t n,
                               bool onto)
{
#pragma GCC unroll 4
    for (ptrdiff_t i = 0; i < n; i++) {
        const stored x = (stored)truth((uint8_t)from[i * step]);
        y[i] = onto ? y[i] + x : x;
    }
}

static void convert_bools(const char *from, ptrdiff_t step, void *to, ptrdiff_t n, bool onto)
{
    if (step == 1 && !onto) {
        convert_bools_step(from, 1, to, n, false);
    } else {
        convert_bools_step(from, step, to, n, onto);
    }
}
#endif

#define CONVERT(c_type) JOIN(convert, c_type)
#define FROM(kind, c_type, value)                                                                  \
    /* Inlined with constants: contiguous elements get loops of vectors. */                        \
    INLINE void JOIN(convert_step, c_type)(const char *from, ptrdiff_t step, stored *restrict y,   \
                                           ptrdiff_t n, bool onto)                                 \
    {                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            for (int part = 0; part < PARTS; part++) {                                             \
                const c_type x = ((const c_type *)(from + i * step))[part];                        \
                const stored converted = step == PARTS * sizeof x ? (value) : (stored)x;           \
                y[i * PARTS + part] = onto ? y[i * PARTS + part] + converted : converted;          \
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
#define FROM(kind, c_type, value) {kind, PARTS * sizeof(c_type), CONVERT(c_type)},
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
