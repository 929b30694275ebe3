/* Products of 32-bit integers, modulo 2^32: signed and unsigned ones are the same. */
#include "matmul_kernels.h"

#include "register_tile.h"

typedef uint32_t element;

#if defined(AMX)
enum { LIMBS = 4, TILES_DOWN = 1, TILES_ACROSS = 1 };
#include "amx_template.h"
#else

typedef uint32_t sum_element;
typedef uint32_t lane;
typedef lane lanes __attribute__((vector_size(TILE_BYTES)));

#if defined(__AVX512VNNI__) || (defined(__x86_64__) && !defined(__AVX2__))

/* pmaddwd is faster than a 32-bit multiplication: x = 2^16 h + l with signed l, and
 * x y = l l' + 2^16 (l h' + h l'). Three pmaddwd for two k; the cross terms have their own accumulator. */
#if defined(__AVX512VNNI__)
enum { ROWS = 6, VECTORS = 2 };
#else
enum { ROWS = 4, VECTORS = 1 };
#endif
enum { GROUP = 2, A_WORDS = 3, B_WORDS = 3, SUMS = 2, STEPS = 3 };
enum { A_AS_WORDS = 0, B_AS_WORDS = 0, WINOGRAD = 0 };

INLINE lane low(element x)
{
    return x & 0xffff;
}

INLINE lane high(element x)
{
    return (x + 0x8000) & 0xffff0000;
}

INLINE void encode_a(const element *e, lane *word)
{
    word[0] = low(e[0]) | e[1] << 16;
    word[1] = low(e[0]) | high(e[0]);
    word[2] = low(e[1]) | high(e[1]);
}

INLINE void encode_b(const element *e, lane *word)
{
    word[0] = low(e[0]) | e[1] << 16;
    word[1] = high(e[0]) >> 16 | e[0] << 16;
    word[2] = high(e[1]) >> 16 | e[1] << 16;
}

INLINE void add_products(int step, lanes *sum, const lanes *a, const lanes *b)
{
    sum[step > 0] = add_pairs(sum[step > 0], a[0], b[0]);
}

INLINE lanes total(const lanes *sum)
{
    return sum[0] + (sum[1] << 16);
}

#else

#if defined(__AVX2__)
#if defined(__AVX512F__)
enum { ROWS = 10 };
#else
enum { ROWS = 4 };
#endif
#include "winograd.h"

INLINE void add_products(int step, lanes *sum, const lanes *a, const lanes *b)
{
    (void)step;
    sum[0] += (a[0] + b[0]) * (a[1] + b[1]);
}
#else
enum { WINOGRAD = 0 };
#include "plain_tile.h"
#endif
enum { VECTORS = TILE_VECTORS, B_WORDS = A_WORDS, SUMS = 1, STEPS = 1 };

INLINE lanes total(const lanes *sum)
{
    return sum[0];
}

#endif

typedef uint32_t wide;
typedef uint32_t short_lane;
#define NARROWEST 8
#define WIDEST VECTOR_BYTES
#include "integer_template.h"
#endif
