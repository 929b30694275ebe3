/* Vectors of `element`, which the file that includes this defines as float or double, with lane_bits, the
 * signed integer of its size; FUSED says whether products are added with one rounding. */
#ifndef NUMC_LANE_ARITHMETIC_H
#define NUMC_LANE_ARITHMETIC_H

#include "linalg_kernels.h"

#include "kernels/vector.h"

#include <float.h>
#include <math.h>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

/* A loop over the lanes, whose vectors stay in registers only if it is unrolled. */
#define UNROLL _Pragma("GCC unroll 16")

#if !defined(LANE_BYTES)
#if defined(__AVX512F__)
#define LANE_BYTES 64
#else
#define LANE_BYTES VECTOR_BYTES
#endif
#endif

typedef element vector __attribute__((vector_size(LANE_BYTES)));
typedef lane_bits vector_mask __attribute__((vector_size(LANE_BYTES)));

#if IS_FLOAT
#define LANE_COUNT (LANE_BYTES / 4)
#else
#define LANE_COUNT (LANE_BYTES / 8)
#endif

enum {
    MANTISSA_BITS = sizeof(element) == sizeof(double) ? 52 : 23,
    EXPONENT_BIAS = sizeof(element) == sizeof(double) ? 1023 : 127
};

enum { LANES = LANE_BYTES / sizeof(element), IS_DOUBLE = sizeof(element) == sizeof(double) };

#define SMALLEST_NORMAL ((IS_DOUBLE ? (element)DBL_MIN : (element)FLT_MIN))
#define EPSILON (IS_DOUBLE ? (element)DBL_EPSILON : (element)FLT_EPSILON)

/* x86's intrinsics for this vector: OF_LANES(sqrt) is _mm256_sqrt_pd. */
#define NAME_(prefix, op, type) prefix##_##op##_##type
#define NAME(prefix, op, type) NAME_(prefix, op, type)
#if LANE_BYTES == 64
#define OF_LANES(op) NAME(_mm512, op, LANE_TYPE)
#elif LANE_BYTES == 32
#define OF_LANES(op) NAME(_mm256, op, LANE_TYPE)
#else
#define OF_LANES(op) NAME(_mm, op, LANE_TYPE)
#endif
#if IS_FLOAT
#define LANE_TYPE ps
#else
#define LANE_TYPE pd
#endif
#if defined(__aarch64__) && IS_FLOAT
#define NEON(op) op##_f32
#elif defined(__aarch64__)
#define NEON(op) op##_f64
#endif

INLINE vector splat(element x)
{
    return x - (vector){0};
}

INLINE vector_mask splat_bits(lane_bits x)
{
    return x - (vector_mask){0};
}

#if defined(__FMA__) || defined(__aarch64__)
#define FUSED 1
#else
#define FUSED 0
#endif

/* c + a * b */
INLINE vector plus_product(vector c, vector a, vector b)
{
#if defined(__FMA__)
    return (vector)OF_LANES(fmadd)(a, b, c);
#elif defined(__aarch64__)
    return (vector)NEON(vfmaq)(c, a, b);
#else
    return c + a * b;
#endif
}

/* c - a * b */
INLINE vector minus_product(vector c, vector a, vector b)
{
#if defined(__FMA__)
    return (vector)OF_LANES(fnmadd)(a, b, c);
#elif defined(__aarch64__)
    return (vector)NEON(vfmsq)(c, a, b);
#else
    return c - a * b;
#endif
}

INLINE vector root(vector x)
{
#if defined(__x86_64__)
    return (vector)OF_LANES(sqrt)(x);
#elif defined(__aarch64__)
    return (vector)NEON(vsqrtq)(x);
#else
    for (int lane = 0; lane < LANES; lane++) {
        x[lane] = IS_DOUBLE ? (element)sqrt(x[lane]) : (element)sqrtf((float)x[lane]);
    }
    return x;
#endif
}

/* if_true where the mask is set, if_false elsewhere. */
INLINE vector_mask select_bits(vector_mask mask, vector_mask if_true, vector_mask if_false)
{
#if LANE_BYTES == 64
    return (vector_mask)_mm512_ternarylogic_epi64((__m512i)mask, (__m512i)if_true,
                                                  (__m512i)if_false, 0xCA);
#elif LANE_BYTES == 32
    return (vector_mask)_mm256_blendv_epi8((__m256i)if_false, (__m256i)if_true, (__m256i)mask);
#elif defined(__aarch64__)
    return (vector_mask)vbslq_u8((uint8x16_t)mask, (uint8x16_t)if_true, (uint8x16_t)if_false);
#else
    return (mask & if_true) | (~mask & if_false);
#endif
}

INLINE vector select_lanes(vector_mask mask, vector if_true, vector if_false)
{
    return (vector)select_bits(mask, (vector_mask)if_true, (vector_mask)if_false);
}

/* Bit i: whether the mask is set in lane i. */
INLINE uint64_t mask_bits(vector_mask mask)
{
#if LANE_BYTES == 64 && IS_FLOAT
    return _mm512_movepi32_mask((__m512i)mask);
#elif LANE_BYTES == 64
    return _mm512_movepi64_mask((__m512i)mask);
#elif defined(__x86_64__) && IS_FLOAT
    return (uint64_t)OF_LANES(movemask)((vector)mask);
#elif defined(__x86_64__)
    return (uint64_t)OF_LANES(movemask)((vector)mask);
#else
    uint64_t bits = 0;
    for (int lane = 0; lane < LANES; lane++) {
        bits |= (uint64_t)(mask[lane] != 0) << lane;
    }
    return bits;
#endif
}

INLINE vector magnitude(vector x)
{
    return (vector)((vector_mask)x & ~(vector_mask)splat((element)-0.0));
}

/* Where x is NaN, infinite or subnormal. */
INLINE vector_mask is_irregular(vector x)
{
#if LANE_BYTES == 64 && IS_FLOAT
    return (vector_mask)_mm512_movm_epi32(_mm512_fpclass_ps_mask(x, 0xB9));
#elif LANE_BYTES == 64
    return (vector_mask)_mm512_movm_epi64(_mm512_fpclass_pd_mask(x, 0xB9));
#else
    const vector size = magnitude(x);
    return ((size < SMALLEST_NORMAL) & (x != 0)) | ~(size < (element)INFINITY);
#endif
}

/* Of positive normal x = m * 2^e, 1 <= m < 2: e, and 2^-e (0 where e is the largest). */
INLINE vector_mask exponent_of(vector x)
{
    return ((vector_mask)x >> MANTISSA_BITS) - splat_bits(EXPONENT_BIAS);
}

INLINE vector inverse_power(vector x)
{
    return (vector)((splat_bits(2 * EXPONENT_BIAS) - ((vector_mask)x >> MANTISSA_BITS))
                    << MANTISSA_BITS);
}

/* x / y, from `reciprocal` = 1 / y. As exact as a division: the remainder is, and corrects the product. */
INLINE vector vector_quotient(vector x, vector y, vector reciprocal)
{
#if FUSED
    const vector about = x * reciprocal;
    return plus_product(about, minus_product(x, about, y), reciprocal);
#else
    (void)reciprocal;
    return x / y;
#endif
}

#endif
