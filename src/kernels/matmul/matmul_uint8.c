/* Products of 8-bit integers, modulo 2^8: signed and unsigned ones are the same, so an instruction may take
 * either factor as signed. */
#include "matmul_kernels.h"

#include "register_tile.h"

typedef uint8_t element;

#if defined(AMX)
enum { LIMBS = 1, TILES_DOWN = 2, TILES_ACROSS = 2 };
#include "amx_template.h"
#else

typedef uint8_t sum_element;
enum { VECTORS = TILE_VECTORS, B_WORDS = 1, SUMS = 1, STEPS = 1, WINOGRAD = 0 };

#if defined(__x86_64__)
typedef uint32_t lane;
#else
typedef uint8_t lane;
#endif
typedef lane lanes __attribute__((vector_size(TILE_BYTES)));

#if defined(__AVX512VNNI__)

/* Four k per lane: vpdpbusd. */
enum { ROWS = TILE_ROWS, GROUP = 4, A_WORDS = 1, A_AS_WORDS = 1, B_AS_WORDS = 1 };

INLINE void encode_b(const element *e, lane *word)
{
    word[0] = e[0] | (lane)e[1] << 8 | (lane)e[2] << 16 | (lane)e[3] << 24;
}

INLINE void encode_a(const element *e, lane *word)
{
    encode_b(e, word);
}

INLINE void add_products(int step, lanes *sum, const lanes *a, const lanes *b)
{
    (void)step;
    sum[0] = (lanes)_mm512_dpbusd_epi32((__m512i)sum[0], (__m512i)a[0], (__m512i)b[0]);
}

#elif defined(__AVX2__) && !defined(__AVX512F__)

/* Four k per lane: vpmaddubsw of |a| <= 128 and b with the sign of a. The sum of two such products fits
 * 16 bits. */
enum { ROWS = 5, GROUP = 4, A_WORDS = 2, A_AS_WORDS = 0, B_AS_WORDS = 1 };

INLINE lane magnitude(element e)
{
    return e < 128 ? e : 256u - e;
}

INLINE void encode_b(const element *e, lane *word)
{
    word[0] = e[0] | (lane)e[1] << 8 | (lane)e[2] << 16 | (lane)e[3] << 24;
}

INLINE void encode_a(const element *e, lane *word)
{
    encode_b(e, word);
    word[1] =
        magnitude(e[0]) | magnitude(e[1]) << 8 | magnitude(e[2]) << 16 | magnitude(e[3]) << 24;
}

INLINE void add_products(int step, lanes *sum, const lanes *a, const lanes *b)
{
    (void)step;
    const __m256i signed_b = _mm256_sign_epi8((__m256i)b[0], (__m256i)a[0]);
    sum[0] =
        (lanes)_mm256_add_epi16((__m256i)sum[0], _mm256_maddubs_epi16((__m256i)a[1], signed_b));
}

#elif defined(__x86_64__)

/* Two k per lane: pmaddwd. */
enum { ROWS = TILE_ROWS, GROUP = 2, A_WORDS = 1, A_AS_WORDS = 0, B_AS_WORDS = 0 };

INLINE void encode_b(const element *e, lane *word)
{
    word[0] = e[0] | (lane)e[1] << 16;
}

INLINE void encode_a(const element *e, lane *word)
{
    encode_b(e, word);
}

INLINE void add_products(int step, lanes *sum, const lanes *a, const lanes *b)
{
    (void)step;
    sum[0] = add_pairs(sum[0], a[0], b[0]);
}

#else
#include "plain_tile.h"
#endif

#if defined(__AVX512F__) || !defined(__x86_64__)
INLINE lanes total(const lanes *sum)
{
    return sum[0];
}
#else
/* Narrow to 16 bits first: GCC converts 32 bits to 8 one lane at a time. */
typedef uint16_t half_lanes __attribute__((vector_size(TILE_BYTES / 2)));

INLINE half_lanes total(const lanes *sum)
{
#if defined(__AVX2__)
    return __builtin_convertvector(sum[0] + (sum[0] >> 16), half_lanes);
#else
    return __builtin_convertvector(sum[0], half_lanes);
#endif
}
#endif

typedef unsigned wide;
typedef uint16_t short_lane; /* x86 cannot multiply bytes */
#define NARROWEST 3
#define WIDEST VECTOR_BYTES
#include "integer_template.h"
#endif
