/* Panels and the micro-kernel of one dtype; included once per dtype. Parameters:
 *   DTYPE                 suffix of the names, ELEMENT its C type, unsigned for integers
 *   LANE, GROUP           what a vector consists of, and how many k share a lane
 *   ROWS, VECTORS         the tile, VECTORS vectors of TILE_BYTES wide
 *   A_WORDS, B_WORDS      lanes per row and per column of a group, made by
 *   ENCODE_A, ENCODE_B    (e, w), of elements e[GROUP], or by another file than matmul_pack.h: PACKING
 *   SUMS, STEPS, STEP     vectors that are one sum; STEP(step, sum, a, b) adds what the words a and b
 *                         of a step contribute, which has 1 / STEPS of those of a group
 *   TOTAL                 the low bits of TOTAL(sum) are the result
 *   SUM                   element of a tile, as wide as a lane or narrower
 *   A_AS_WORDS, B_...     1: a group is packed as the one word that its bytes are
 *   IN_PAIRS              1: by Winograd's inner product, see matmul_pack.h
 *   IN_ORDER              1: a tile goes on from the sums before, 0: it is added to them
 *   KIND, FINISH, STACK   as in struct matmul_kernel; matmul_direct.h came before */
enum { JOIN(COLUMNS, DTYPE) = VECTORS * (TILE_BYTES / sizeof(LANE)) };

#ifndef STACK
#define STACK JOIN(stack, DTYPE)
#endif
#ifndef PACKING
#define PACKING "matmul_pack.h"
#endif

#define PACK JOIN(pack_a, DTYPE)
#define UNIT ROWS
#define WORDS A_WORDS
#define ENCODE ENCODE_A
#define FACTOR 1
#define AS_WORDS A_AS_WORDS
#include PACKING

#define PACK JOIN(pack_b, DTYPE)
#define UNIT JOIN(COLUMNS, DTYPE)
#define WORDS B_WORDS
#define ENCODE ENCODE_B
#define FACTOR 0
#define AS_WORDS B_AS_WORDS
#include PACKING

#define lanes JOIN(lanes, DTYPE)
#define totals JOIN(totals, DTYPE)

typedef LANE lanes __attribute__((vector_size(TILE_BYTES)));
typedef SUM totals __attribute__((vector_size(TILE_BYTES / sizeof(LANE) * sizeof(SUM))));

/* All sums of a tile stay in registers. */
static void JOIN(tile, DTYPE)(const char *a, const char *b, ptrdiff_t groups, char *c,
                              ptrdiff_t c_row, bool accumulate)
{
    lanes sum[ROWS][VECTORS][SUMS];
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
#pragma GCC unroll 2
            for (int s = 0; s < SUMS; s++) {
                sum[r][v][s] = (lanes){0};
            }
            if (IN_ORDER && accumulate) {
                memcpy(&sum[r][v][0], c + r * c_row + v * (ptrdiff_t)sizeof(totals),
                       sizeof(totals));
            }
        }
    }
    /* Short groups are held up by what surrounds them, long ones run out of registers. */
    enum { groups_at_once = B_WORDS == 1 ? 2 : 1 };
#pragma GCC unroll groups_at_once
    for (ptrdiff_t group = 0; group < groups; group++) {
#pragma GCC unroll 4
        for (int step = 0; step < STEPS; step++) {
            const LANE *rows = (const LANE *)a + step * (A_WORDS / STEPS) * ROWS;
            const char *columns = b + step * (B_WORDS / STEPS) * VECTORS * TILE_BYTES;
            lanes column[VECTORS][B_WORDS / STEPS];
#pragma GCC unroll 4
            for (int v = 0; v < VECTORS; v++) {
#pragma GCC unroll 4
                for (int w = 0; w < B_WORDS / STEPS; w++) {
                    memcpy(&column[v][w], columns + (w * VECTORS + v) * TILE_BYTES, TILE_BYTES);
                }
            }
#pragma GCC unroll 16
            for (int r = 0; r < ROWS; r++) {
                lanes row[A_WORDS / STEPS];
#pragma GCC unroll 4
                for (int w = 0; w < A_WORDS / STEPS; w++) {
                    row[w] = rows[w * ROWS + r] - (lanes){0};
                }
#pragma GCC unroll 4
                for (int v = 0; v < VECTORS; v++) {
                    STEP(step, sum[r][v], row, column[v]);
                }
            }
        }
        a += ROWS * A_WORDS * sizeof(LANE);
        b += VECTORS * B_WORDS * TILE_BYTES;
    }
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; v++) {
            char *to = c + r * c_row + v * (ptrdiff_t)sizeof(totals);
            totals total = __builtin_convertvector(TOTAL(sum[r][v]), totals);
            if (!IN_ORDER && accumulate) {
                totals before;
                memcpy(&before, to, sizeof before);
                total += before;
            }
            memcpy(to, &total, sizeof total);
        }
    }
}

static const struct matmul_kernel JOIN(matmul, DTYPE) = {
    .kind = KIND,
    .item_size = sizeof(ELEMENT),
    .sum_size = sizeof(SUM),
    .rows = ROWS,
    .columns = JOIN(COLUMNS, DTYPE),
    .group = GROUP,
    .extra_groups = IN_PAIRS,
    .a_group_bytes = A_WORDS * sizeof(LANE),
    .b_group_bytes = B_WORDS * sizeof(LANE),
    .pack_a = JOIN(pack_a, DTYPE),
    .pack_b = JOIN(pack_b, DTYPE),
    .tile = JOIN(tile, DTYPE),
    .finish = FINISH,
    .direct = JOIN(direct, DTYPE),
    .stack_row_bytes = VECTOR_BYTES,
    .stack = STACK,
};

#undef lanes
#undef totals
#undef DTYPE
#undef ELEMENT
#undef LANE
#undef GROUP
#undef ROWS
#undef VECTORS
#undef A_WORDS
#undef B_WORDS
#undef ENCODE_A
#undef ENCODE_B
#undef PACKING
#undef SUMS
#undef STEPS
#undef STEP
#undef TOTAL
#undef SUM
#undef A_AS_WORDS
#undef B_AS_WORDS
#undef IN_PAIRS
#undef IN_ORDER
#undef KIND
#undef FINISH
#undef STACK
