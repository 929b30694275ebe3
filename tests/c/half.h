/* float16 in plain C, with the flags of NumPy's conversions in software: what is tiny is judged
 * before it is rounded. */
#ifndef NUMC_TEST_HALF_H
#define NUMC_TEST_HALF_H

#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { HALF_SIGN = 0x8000, HALF_INFINITY = 0x7c00, HALF_LEAST_EXPONENT = -24 };

static inline float float_of_half(uint16_t half)
{
    const unsigned exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    const float sign = half & HALF_SIGN ? -1 : 1;
    if (exponent != 0x1f) {
        return sign * (exponent == 0 ? ldexpf((float)mantissa, HALF_LEAST_EXPONENT)
                                     : ldexpf((float)(mantissa + 0x400), (int)exponent - 25));
    }
    /* A signalling NaN remains one: multiplying it by the sign would make it quiet. */
    const uint32_t bits = (uint32_t)(half & HALF_SIGN) << 16 | 0x7f800000u | mantissa << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t half_of_float(float value)
{
    const uint16_t sign = signbit(value) ? HALF_SIGN : 0;
    if (isnan(value)) {
        return sign | 0x7e00;
    }
    if (isinf(value) || value == 0) {
        return sign | (value == 0 ? 0 : HALF_INFINITY);
    }
    const double magnitude = fabs((double)value);
    int exponent; /* of the last bit that is kept */
    frexp(magnitude, &exponent);
    exponent = exponent - 11 < HALF_LEAST_EXPONENT ? HALF_LEAST_EXPONENT : exponent - 11;
    const double exact = ldexp(magnitude, -exponent);
    const double rounded = rint(exact);
    if (ldexp(rounded, exponent) >= 65536) {
        feraiseexcept(FE_OVERFLOW | FE_INEXACT);
        return sign | HALF_INFINITY;
    }
    if (rounded != exact) {
        feraiseexcept(magnitude < 0x1p-14 ? FE_UNDERFLOW | FE_INEXACT : FE_INEXACT);
    }
    /* A mantissa of 11 bits adds its first to the exponent, one that was rounded up to 2048 two. */
    return (uint16_t)(sign | (((exponent - HALF_LEAST_EXPONENT) << 10) + (int)rounded));
}

/* Operands whose results lie where flags or bits begin to differ; each pair should be tried among
 * operands that raise nothing. */
static const uint16_t critical_halves[][2] = {
    {0x21a8, 0x1da8}, /* a product below 2^-14 that 11 bits round up to it */
    {0xa1a8, 0x1da8}, /* and above -2^-14 */
    {0x03ff, 0x3c01}, /* of a subnormal */
    {0x23ff, 0x1c00}, /* a product that 10 bits round up to it, but 11 do not */
    {0x23ff, 0x1bff}, /* nor 10 */
    {0x2001, 0x2000}, /* above 2^-14, exact */
    {0x2001, 0x2001}, /* above 2^-14, inexact */
    {0x0400, 0x3c01}, /* a quotient as close to 2^-14 as they come */
    {0x03ff, 0x0001}, /* a sum that is 2^-14 */
    {0x0400, 0x8001}, /* a sum that is just below */
    {0x0001, 0x3800}, /* half of the least subnormal: to even, which is 0 */
    {0x0001, 0x3801}, /* a little more than half of it */
    {0x0001, 0x0001}, /* 2^-48, which float32 still has */
    {0x0001, 0x7bff}, /* the least quotient */
    {0x7bff, 0x0001}, /* the greatest */
    {0x7bff, 0x4bff}, /* 65504 + 15.99, the most that does not overflow */
    {0x7bff, 0x4c00}, /* 65504 + 16 */
    {0xfbff, 0xcc00}, {0x7bff, 0x3c01}, {0x7bff, 0x3bff}, {0x7bff, 0x7bff}, {0x7c00, 0x7c00},
    {0x7c00, 0xfc00}, {0x7c00, 0x0000}, {0x0000, 0x0000}, {0x3c00, 0x0000}, {0x3c00, 0x8000},
    {0x7e00, 0x3c00}, {0x3c00, 0x7e00}, {0x7d00, 0x3c00}, /* signalling */
    {0x3c00, 0xfd00},
};

#endif
