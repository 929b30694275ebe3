/* Products of 16-bit integers, modulo 2^16: signed and unsigned ones are the same. */
#include "matmul_kernels.h"

#include "register_tile.h"

typedef uint16_t element;

#if defined(AMX)
enum { LIMBS = 2, TILES_DOWN = 2, TILES_ACROSS = 1 };
#include "amx_template.h"
#else

typedef uint16_t sum_element;
enum { VECTORS = TILE_VECTORS, B_WORDS = 1, SUMS = 1, STEPS = 1, WINOGRAD = 0 };

#if defined(__x86_64__)

/* Two k per lane: vpdpwssd or pmaddwd. */
typedef uint32_t lane;
typedef lane lanes __attribute__((vector_size(TILE_BYTES)));
enum { ROWS = TILE_ROWS, GROUP = 2, A_WORDS = 1, A_AS_WORDS = 1, B_AS_WORDS = 1 };

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
typedef uint16_t lane;
typedef lane lanes __attribute__((vector_size(TILE_BYTES)));
#include "plain_tile.h"
#endif

INLINE lanes total(const lanes *sum)
{
    return sum[0];
}

typedef unsigned wide;
typedef uint16_t short_lane;
#define NARROWEST 4
#define WIDEST VECTOR_BYTES
#include "integer_template.h"
#endif
