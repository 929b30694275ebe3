/* float16 kernels, for instruction sets that convert it to float32 or compute with it. Rounding to
 * float32 and then to float16 gives the bits of one rounding: float32 has more than twice the precision.
 * Floating-point flags are those of NumPy, which converts in software. */
#include "kernels/vector.h"

#include <float.h>

#if defined(__AVX2__) && defined(__F16C__)
/* Underflow is a result below 2^-14 that is inexact. x86 detects it after rounding to 11 bits, NumPy
 * before: they differ where rounding goes up to 2^-14. Only products do: sums of such small halves are
 * exact, and quotients stay 1/2047 of 2^-14 away from it. */
enum { ALL_BUT_SIGN_AND_LAST_12 = 0x7ffff000, ROUNDS_UP_TO_LEAST_NORMAL = 0x387ff000 };

/* In the SSE unit: feraiseexcept() would raise it in the x87 unit. */
__attribute__((noinline, cold)) static void raise_underflow(void)
{
    volatile float least = FLT_MIN;
    least *= least;
}

INLINE void raise_of_product(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & ALL_BUT_SIGN_AND_LAST_12) == ROUNDS_UP_TO_LEAST_NORMAL) {
        raise_underflow();
    }
}

#define IS_PRODUCT(op) (strcmp(op, "multiply") == 0)
#endif

#if defined(__AVX512FP16__)
typedef _Float16 half;
typedef half halves __attribute__((vector_size(VECTOR_BYTES)));

__attribute__((noinline, cold)) static void raise_of_each_product(halves a, halves b)
{
    for (size_t lane = 0; lane < sizeof a / sizeof a[0]; lane++) {
        raise_of_product((float)a[lane] * (float)b[lane]);
    }
}

/* Rounding hides the underflow: products that became 2^-14 are computed again in float32. */
INLINE void raise_of_products(halves a, halves b, halves value)
{
    const __m256i twice = _mm256_slli_epi16((__m256i)value, 1); /* without the sign */
    if (_mm256_cmpeq_epi16_mask(twice, _mm256_set1_epi16(2 * 0x0400)) != 0) {
        raise_of_each_product(a, b);
    }
}

#define WIDE half
#define RAISE(op, a, b, value)                                                                     \
    (IS_PRODUCT(op) ? raise_of_product((float)(a) * (float)(b)) : (void)0)
#define RAISE_VECTOR(op, a, b, value) (IS_PRODUCT(op) ? raise_of_products(a, b, value) : (void)0)

#elif defined(__AVX2__) && defined(__F16C__)
typedef uint16_t half;

INLINE float widen_half(half x)
{
    return _cvtsh_ss(x);
}

INLINE half narrow_float(float x)
{
    return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
}

#if defined(__AVX512F__)
/* Vectors of 64 bytes, unlike for other dtypes: conversions are bound by one port that takes a vector per
 * cycle, however wide. */
typedef float floats __attribute__((vector_size(64)));
typedef half halves __attribute__((vector_size(32)));

INLINE floats widen_halves(halves x)
{
    return (floats)_mm512_cvtph_ps((__m256i)x);
}

INLINE halves narrow_floats(floats x)
{
    return (halves)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT);
}

INLINE bool any_rounds_up_to_least_normal(floats x)
{
    const __m512i bits = (__m512i)x & _mm512_set1_epi32(ALL_BUT_SIGN_AND_LAST_12);
    return _mm512_cmpeq_epi32_mask(bits, _mm512_set1_epi32(ROUNDS_UP_TO_LEAST_NORMAL)) != 0;
}
#else
typedef float floats __attribute__((vector_size(32)));
typedef half halves __attribute__((vector_size(16)));

INLINE floats widen_halves(halves x)
{
    return (floats)_mm256_cvtph_ps((__m128i)x);
}

INLINE halves narrow_floats(floats x)
{
    return (halves)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT);
}

INLINE bool any_rounds_up_to_least_normal(floats x)
{
    const __m256i bits = _mm256_and_si256((__m256i)x, _mm256_set1_epi32(ALL_BUT_SIGN_AND_LAST_12));
    const __m256i found = _mm256_cmpeq_epi32(bits, _mm256_set1_epi32(ROUNDS_UP_TO_LEAST_NORMAL));
    return _mm256_movemask_ps((__m256)found) != 0;
}
#endif

INLINE void raise_of_products(floats value)
{
    if (any_rounds_up_to_least_normal(value)) {
        raise_underflow();
    }
}

#define WIDE float
#define WIDEN(x) widen_half(x)
#define NARROW(x) narrow_float(x)
#define RAISE(op, a, b, value) (IS_PRODUCT(op) ? raise_of_product(value) : (void)0)
#define BYTES sizeof(halves)
#define WIDE_VECTOR floats
#define WIDEN_VECTOR(x) widen_halves(x)
#define NARROW_VECTOR(x) narrow_floats(x)
#define RAISE_VECTOR(op, a, b, value) (IS_PRODUCT(op) ? raise_of_products(value) : (void)0)

#elif defined(__aarch64__)
#include <arm_neon.h>

typedef __fp16
    half; /* C computes with it in float32; Arm detects underflow before rounding, as NumPy does */

#define WIDE float
#if !defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
typedef half halves __attribute__((vector_size(8)));
typedef float floats __attribute__((vector_size(16)));

INLINE floats widen_halves(halves x)
{
    return (floats)vcvt_f32_f16((float16x4_t)x);
}

INLINE halves narrow_floats(floats x)
{
    return (halves)vcvt_f16_f32((float32x4_t)x);
}

#define BYTES sizeof(halves)
#define WIDE_VECTOR floats
#define WIDEN_VECTOR(x) widen_halves(x)
#define NARROW_VECTOR(x) narrow_floats(x)
#endif
#endif

#if defined(WIDE)
#define HAS_HALF 1
#define DTYPE half
#define CLASS FLOAT
#define KIND 'f'
#define ELEMENT half
#include "binary_template.h"
#else
#define HAS_HALF 0
#endif
