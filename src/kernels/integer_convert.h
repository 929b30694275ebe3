/* Integers of 32 bits without a sign and of 64 bits to double, rounded as by the scalar instruction, in code that
 * compilers turn into vectors. */
#ifndef NUMC_INTEGER_CONVERT_H
#define NUMC_INTEGER_CONVERT_H

#include "kernels/vector.h"

#if defined(__x86_64__)
/* 2^52 + x, less 2^52: of four elements, compilers would convert each by AVX-512's scalar instruction. */
INLINE double double_of_uint32(uint32_t x)
{
    const uint64_t bits = x | 0x4330000000000000u;
    double sum;
    memcpy(&sum, &bits, sizeof sum);
    return sum - 0x1p52;
}
#else
#define double_of_uint32(x) (double)(x)
#endif

/* int64 to double without AVX512DQ, by magic numbers: the upper half of x becomes the lowest bits of
 * 2^84, the lower half those of 2^52; the constants are subtracted exactly, only the last addition
 * rounds. (For signed x, 2^63 is added to the upper half and subtracted again.) */
#if defined(__x86_64__) && !defined(__AVX512DQ__)
INLINE double double_of_halves(uint64_t upper, uint64_t lower, double added)
{
    double high, low;
    memcpy(&high, &upper, sizeof high);
    memcpy(&low, &lower, sizeof low);
    return (high - added) + low;
}
INLINE double double_of_uint64(uint64_t x)
{
    return double_of_halves(x >> 32 | 0x4530000000000000u, (x & 0xffffffffu) | 0x4330000000000000u,
                            0x1p84 + 0x1p52);
}
INLINE double double_of_int64(int64_t x)
{
    return double_of_halves((uint64_t)x >> 32 ^ 0x4530000080000000u,
                            ((uint64_t)x & 0xffffffffu) | 0x4330000000000000u,
                            0x1p84 + 0x1p63 + 0x1p52);
}
/* Strided, those of 64 bits are converted one by one by the scalar instruction: gathering them costs more. */
#define SCALAR_CONVERSION_SIZE sizeof(uint64_t)
#else
#define double_of_uint64(x) (double)(x)
#define double_of_int64(x) (double)(x)
#define SCALAR_CONVERSION_SIZE 0
#endif

#endif
