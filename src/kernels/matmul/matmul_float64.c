/* Products of float64 that are too small or too thin for BLAS. */
#include "matmul_kernels.h"

#include "kernels/vector.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

typedef double element;
typedef double wide;
typedef double short_lane;

#if defined(__FMA__) || defined(__aarch64__)
#define FUSED 1

INLINE double add_product(double c, double a, double b)
{
    return __builtin_fma(a, b, c);
}

typedef double vector_16 __attribute__((vector_size(16)));

INLINE vector_16 add_products_16(vector_16 c, vector_16 a, vector_16 b)
{
#if defined(__aarch64__)
    return (vector_16)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    return (vector_16)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
#endif
}
#endif

#if defined(__FMA__)
typedef double vector_32 __attribute__((vector_size(32)));

INLINE vector_32 add_products_32(vector_32 c, vector_32 a, vector_32 b)
{
    return (vector_32)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
#endif

#if defined(__AVX512F__)
typedef double vector_64 __attribute__((vector_size(64)));

INLINE vector_64 add_products_64(vector_64 c, vector_64 a, vector_64 b)
{
    return (vector_64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
#endif

#define NARROWEST 16
#if defined(__AVX512F__)
#define WIDEST 64
#else
#define WIDEST VECTOR_BYTES
#endif
#include "direct_template.h"
#include "thin_template.h"

const struct matmul_kernel KERNEL = {
    .kind = 'f',
    .item_size = sizeof(element),
    .direct = compute_directly,
    .stack_row_bytes = VECTOR_BYTES,
    .stack = compute_stack,
    .thin = &thin_kernel,
};
