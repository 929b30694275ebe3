/* The register tile of the instruction set being compiled. Why: docs/decisions/0009-matmul.md. */
#ifndef NUMC_REGISTER_TILE_H
#define NUMC_REGISTER_TILE_H

#include "kernels/vector.h"

/* Vector size, and the largest tile that leaves registers for the operands. */
#if defined(__AVX512F__)
enum { TILE_BYTES = 64, TILE_ROWS = 12, TILE_VECTORS = 2 };
#elif defined(__AVX2__)
enum { TILE_BYTES = 32, TILE_ROWS = 6, TILE_VECTORS = 2 };
#elif defined(__x86_64__)
enum { TILE_BYTES = 16, TILE_ROWS = 5, TILE_VECTORS = 2 };
#else
enum { TILE_BYTES = 16, TILE_ROWS = 8, TILE_VECTORS = 2 };
#endif

#if defined(__x86_64__)
/* sum += a.low * b.low + a.high * b.high, for the signed 16-bit halves of each lane. */
typedef uint32_t lanes_of_pairs __attribute__((vector_size(TILE_BYTES)));

INLINE lanes_of_pairs add_pairs(lanes_of_pairs sum, lanes_of_pairs a, lanes_of_pairs b)
{
#if defined(__AVX512VNNI__)
    return (lanes_of_pairs)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif defined(__AVX512F__)
    return sum + (lanes_of_pairs)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return sum + (lanes_of_pairs)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#else
    return sum + (lanes_of_pairs)_mm_madd_epi16((__m128i)a, (__m128i)b);
#endif
}
#endif

#endif
