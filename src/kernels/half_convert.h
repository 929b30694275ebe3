/* Half precision to float and back, in vectors, with NumPy's rounding and flags: to even, whatever
 * the rounding mode; no flag for inexact results that are normal numbers. */
#ifndef NUMC_HALF_CONVERT_H
#define NUMC_HALF_CONVERT_H

#include "vector.h"

#include <fenv.h>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

INLINE float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE float half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7fffu;
    if (magnitude < 0x400u) {
        const float tiny = (float)magnitude * 0x1p-24f;
        return sign != 0 ? -tiny : tiny;
    }
    /* Rebias the exponent by 112; twice for infinities and NaNs, whose exponent is all ones. */
    const uint32_t special = magnitude >= 0x7c00u ? 112u << 23 : 0;
    return float_of_bits(sign | ((magnitude << 13) + (112u << 23) + special));
}

enum { HALF_BLOCK = 16 };

INLINE void halves_to_floats(const uint16_t *from, float *to)
{
#if defined(__AVX512F__)
    _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)from)));
#elif defined(__F16C__)
    for (int i = 0; i < HALF_BLOCK; i += 8) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + i))));
    }
#elif defined(__aarch64__)
    for (int i = 0; i < HALF_BLOCK; i += 4) {
        vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + i))));
    }
#else
    typedef int32_t four __attribute__((vector_size(16)));
    typedef uint32_t four_unsigned __attribute__((vector_size(16)));
    typedef float four_floats __attribute__((vector_size(16)));
    for (int i = 0; i < HALF_BLOCK; i += 4) {
        const four half = {from[i], from[i + 1], from[i + 2], from[i + 3]};
        const four magnitude = half & 0x7fff;
        const four tiny = (four)(__builtin_convertvector(magnitude, four_floats) * 0x1p-24f);
        const four special = (magnitude >= 0x7c00) & (112 << 23);
        const four normal = (magnitude << 13) + (112 << 23) + special;
        const four is_tiny = magnitude < 0x400;
        const four bits =
            (is_tiny & tiny) | (~is_tiny & normal) | (four)((four_unsigned)(half & 0x8000) << 16);
        memcpy(to + i, &bits, sizeof bits);
    }
#endif
}

#if defined(__F16C__)
/* 4 or 8 of them, which raises a flag for signaling NaNs, as what is computed with them does. */
INLINE void few_halves_to_floats(const uint16_t *from, float *to, int n)
{
    if (n == 8) {
        _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const void *)from)));
    } else {
        _mm_storeu_ps(to, _mm_cvtph_ps(_mm_loadl_epi64((const void *)from)));
    }
}
#endif

/* Rounds any float. The flags that NumPy raises are collected in `flags`: raising one takes ten times as
 * long as the conversion. */
static inline uint16_t float_to_half(uint32_t bits, int *flags)
{
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { /* a NaN keeps the upper payload bits, never becomes inf */
        const uint32_t nan = 0x7c00u | (magnitude >> 13 & 0x3ffu);
        return (uint16_t)(sign | (nan == 0x7c00u ? nan + 1 : nan));
    }
    if (magnitude >= 0x477ff000u) {
        if (magnitude < 0x7f800000u) {
            *flags |= FE_OVERFLOW;
        }
        return (uint16_t)(sign | 0x7c00u);
    }
    if (magnitude >= 0x38800000u) {
        return (uint16_t)(sign |
                          ((magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1)) >> 13));
    }
    /* Below the normal numbers: multiples of 2^-24. */
    const uint32_t exponent = magnitude >> 23;
    if (exponent < 102) {
        if (magnitude != 0) {
            *flags |= FE_UNDERFLOW;
        }
        return (uint16_t)sign;
    }
    const uint32_t significand = 0x800000u | (magnitude & 0x7fffffu), shift = 126 - exponent;
    const uint32_t lost = significand & ((1u << shift) - 1), tie = 1u << (shift - 1);
    uint32_t half = significand >> shift;
    if (lost != 0) {
        *flags |= FE_UNDERFLOW;
        half += lost > tie || (lost == tie && (half & 1) != 0);
    }
    return (uint16_t)(sign | half);
}

/* Converts normal values and zeros in vectors, others one by one. */
INLINE void floats_to_halves(const float *from, uint16_t *to, int *flags)
{
    enum { LANES = VECTOR_BYTES / sizeof(int32_t) };
    typedef int32_t words __attribute__((vector_size(VECTOR_BYTES)));
    typedef uint16_t halves __attribute__((vector_size(VECTOR_BYTES / 2)));
    words special = {0};
    for (int i = 0; i < HALF_BLOCK; i += LANES) {
        words bits;
        memcpy(&bits, from + i, sizeof bits);
        const words magnitude = bits & 0x7fffffff;
        const words is_zero = magnitude == 0;
        special |= ((magnitude < 0x38800000) & ~is_zero) | (magnitude >= 0x477ff000);
#if defined(__F16C__)
        /* Raises no flag that float_to_half() does not report. */
        const halves half = (halves)_mm256_cvtps_ph((__m256)bits, _MM_FROUND_TO_NEAREST_INT);
#else
        const words rounded = (magnitude - (112 << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
        const halves half =
            __builtin_convertvector((bits >> 16 & 0x8000) | (rounded & ~is_zero), halves);
#endif
        memcpy(to + i, &half, sizeof half);
    }
    uint64_t any[VECTOR_BYTES / 8];
    memcpy(any, &special, sizeof any);
    for (int i = 1; i < VECTOR_BYTES / 8; i++) {
        any[0] |= any[i];
    }
    for (int i = 0; any[0] != 0 && i < HALF_BLOCK; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        to[i] = float_to_half(bits, flags);
    }
}

#endif
