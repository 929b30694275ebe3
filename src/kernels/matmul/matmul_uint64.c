/* Products of 64-bit integers, modulo 2^64: signed and unsigned ones are the same. */
#include "matmul_kernels.h"

#include "register_tile.h"

typedef uint64_t element;
#if !defined(__AVX512DQ__)
#define SCALAR_DOTS
#endif

#if defined(AMX)
enum { LIMBS = 8, TILES_DOWN = 1, TILES_ACROSS = 1 };
#include "amx_template.h"
#else

typedef uint64_t sum_element;
typedef uint64_t lane;
typedef lane lanes __attribute__((vector_size(TILE_BYTES)));

#if defined(__AVX512DQ__)

enum { ROWS = 10, VECTORS = TILE_VECTORS, B_WORDS = 2, SUMS = 1 };
#include "winograd.h"

INLINE void add_products(int step, lanes *sum, const lanes *a, const lanes *b)
{
    (void)step;
    sum[0] += (a[0] + b[0]) * (a[1] + b[1]);
}

INLINE lanes total(const lanes *sum)
{
    return sum[0];
}

#elif defined(__AVX2__)

/* No 64-bit multiplication: x = 2^32 h + l, x y = l l' + 2^32 (l h' + h l'). Both cross terms are computed at
 * once, in the two halves of a lane of the second accumulator. */
enum { ROWS = 4, VECTORS = 1, B_WORDS = 2, SUMS = 2 };
#include "winograd.h"

INLINE void add_products(int step, lanes *sum, const lanes *a, const lanes *b)
{
    (void)step;
    const __m256i x = (__m256i)(a[0] + b[0]), y = (__m256i)(a[1] + b[1]);
    sum[0] += (lanes)_mm256_mul_epu32(x, y);
    sum[1] = (lanes)_mm256_add_epi32((__m256i)sum[1],
                                     _mm256_mullo_epi32(x, _mm256_shuffle_epi32(y, 0xb1)));
}

INLINE lanes total(const lanes *sum)
{
    return sum[0] + ((sum[1] + (sum[1] >> 32)) << 32);
}

#elif defined(__x86_64__)

/* The same with one 32-bit product at a time; a packed element is the element and its upper half. */
enum { ROWS = 4, VECTORS = 1, GROUP = 1, A_WORDS = 2, B_WORDS = 2, SUMS = 2 };
enum { A_AS_WORDS = 0, B_AS_WORDS = 0, WINOGRAD = 0 };

INLINE void encode_a(const element *e, lane *word)
{
    word[0] = e[0];
    word[1] = e[0] >> 32;
}

INLINE void encode_b(const element *e, lane *word)
{
    encode_a(e, word);
}

INLINE void add_products(int step, lanes *sum, const lanes *a, const lanes *b)
{
    (void)step;
    sum[0] += (lanes)_mm_mul_epu32((__m128i)a[0], (__m128i)b[0]);
    sum[1] += (lanes)_mm_mul_epu32((__m128i)a[0], (__m128i)b[1]);
    sum[1] += (lanes)_mm_mul_epu32((__m128i)a[1], (__m128i)b[0]);
}

INLINE lanes total(const lanes *sum)
{
    return sum[0] + (sum[1] << 32);
}

#else

enum { VECTORS = TILE_VECTORS, B_WORDS = 1, SUMS = 1, WINOGRAD = 0 };
#include "plain_tile.h"

INLINE lanes total(const lanes *sum)
{
    return sum[0];
}

#endif

enum { STEPS = 1 };

typedef uint64_t wide;
typedef uint64_t short_lane;

#if defined(__AVX2__) && !defined(__AVX512DQ__)
#define CROSS_SUMS
typedef uint64_t lanes_16 __attribute__((vector_size(16)));
typedef uint64_t lanes_32 __attribute__((vector_size(32)));
INLINE lanes_16 low_products_16(lanes_16 a, lanes_16 b)
{
    return (lanes_16)_mm_mul_epu32((__m128i)a, (__m128i)b);
}
INLINE lanes_32 low_products_32(lanes_32 a, lanes_32 b)
{
    return (lanes_32)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
INLINE lanes_16 add_cross_products_16(lanes_16 sum, lanes_16 a, lanes_16 b)
{
    const __m128i halves_swapped = _mm_shuffle_epi32((__m128i)b, 0xb1);
    return (lanes_16)_mm_add_epi32((__m128i)sum, _mm_mullo_epi32((__m128i)a, halves_swapped));
}
INLINE lanes_32 add_cross_products_32(lanes_32 sum, lanes_32 a, lanes_32 b)
{
    const __m256i halves_swapped = _mm256_shuffle_epi32((__m256i)b, 0xb1);
    return (lanes_32)_mm256_add_epi32((__m256i)sum, _mm256_mullo_epi32((__m256i)a, halves_swapped));
}
#endif

#define NARROWEST 16
#define WIDEST VECTOR_BYTES
#include "integer_template.h"
#endif
