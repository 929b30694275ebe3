/* Half precision to float and back, in vectors, with NumPy's rounding and flags: to even, whatever
 * the rounding mode; no flag for inexact results that are normal numbers. */
#ifndef NUMC_HALF_H
#define NUMC_HALF_H

#include "vector.h"

#include <fenv.h>

INLINE float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Without branches, so that the compiler can make vectors of it. */
INLINE float half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7fffu;
    /* The exponent's bias grows by 112, and once more to become that of infinities and NaNs. */
    const uint32_t special = magnitude >= 0x7c00u ? 112u << 23 : 0;
    const uint32_t normal = (magnitude << 13) + (112u << 23) + special;
    const float tiny = (float)(int32_t)magnitude * 0x1p-24f;
    uint32_t subnormal;
    memcpy(&subnormal, &tiny, sizeof subnormal);
    return float_of_bits((magnitude < 0x400u ? subnormal : normal) | sign);
}

/* Any value, and the flags that NumPy raises for it. */
static inline uint16_t float_to_half(uint32_t bits)
{
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { /* a NaN keeps what fits of its payload, and stays one */
        const uint32_t nan = 0x7c00u | (magnitude >> 13 & 0x3ffu);
        return (uint16_t)(sign | (nan == 0x7c00u ? nan + 1 : nan));
    }
    if (magnitude >= 0x477ff000u) {
        if (magnitude < 0x7f800000u) {
            feraiseexcept(FE_OVERFLOW);
        }
        return (uint16_t)(sign | 0x7c00u);
    }
    if (magnitude >= 0x38800000u) {
        return (uint16_t)(sign | ((magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1)) >> 13));
    }
    /* Below the normal numbers: multiples of 2^-24. */
    const uint32_t exponent = magnitude >> 23;
    if (exponent < 102) {
        if (magnitude != 0) {
            feraiseexcept(FE_UNDERFLOW);
        }
        return (uint16_t)sign;
    }
    const uint32_t significand = 0x800000u | (magnitude & 0x7fffffu), shift = 126 - exponent;
    const uint32_t lost = significand & ((1u << shift) - 1), tie = 1u << (shift - 1);
    uint32_t half = significand >> shift;
    if (lost != 0) {
        feraiseexcept(FE_UNDERFLOW);
        half += lost > tie || (lost == tie && (half & 1) != 0);
    }
    return (uint16_t)(sign | half);
}

enum { HALF_BLOCK = 16 };

/* HALF_BLOCK values: normal ones and zeros in vectors, others one by one. */
INLINE void floats_to_halves(const float *from, uint16_t *to)
{
    uint32_t bits[HALF_BLOCK];
    uint32_t special = 0;
    memcpy(bits, from, sizeof bits);
    for (int i = 0; i < HALF_BLOCK; i++) {
        const uint32_t magnitude = bits[i] & 0x7fffffffu;
        special |= (magnitude - 0x38800000u >= 0x477ff000u - 0x38800000u) & (magnitude != 0);
    }
    for (int i = 0; special == 0 && i < HALF_BLOCK; i++) {
        const uint32_t magnitude = bits[i] & 0x7fffffffu;
        const uint32_t rounded = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1)) >> 13;
        to[i] = (uint16_t)((bits[i] >> 16 & 0x8000u) | (magnitude != 0 ? rounded : 0));
    }
    for (int i = 0; special != 0 && i < HALF_BLOCK; i++) {
        to[i] = float_to_half(bits[i]);
    }
}

#endif
