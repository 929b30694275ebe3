/* Halves are added as float32, and rounded after each inner call. */
#include "reduction_kernels.h"

#if HAS_HALF_SUMS

#define DTYPE float16
#define ACCUMULATOR_BYTES 4
typedef float accumulator;
typedef accumulator vector __attribute__((vector_size(VECTOR_BYTES)));
#define PARTS 1

#if defined(__F16C__)
typedef uint16_t stored;

INLINE vector load_vector(const char *from)
{
    return (vector)_mm256_cvtph_ps(_mm_loadu_si128((const void *)from));
}

INLINE float widen(uint16_t x)
{
    return _cvtsh_ss(x);
}

INLINE uint16_t narrow(float x)
{
    return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
}

INLINE vector round_vector(vector x)
{
    return (vector)_mm256_cvtph_ps(_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
}
#else
#include <arm_neon.h>

typedef __fp16 stored;

INLINE vector load_vector(const char *from)
{
    float16x4_t loaded;
    memcpy(&loaded, from, sizeof loaded);
    return (vector)vcvt_f32_f16(loaded);
}

INLINE float widen(__fp16 x)
{
    return x;
}

INLINE __fp16 narrow(float x)
{
    return (__fp16)x;
}

INLINE vector round_vector(vector x)
{
    return (vector)vcvt_f32_f16(vcvt_f16_f32((float32x4_t)x));
}
#endif

#include "sum_kernel.h"

#endif
