/* Panels and tiles of one dtype on AMX; included by matmul_amx.c once per dtype. Parameters:
 *   DTYPE, ELEMENT, LIMBS   suffix of the names, C type, and its bytes
 * Two times 16 columns of sums belong to a tile: those of two places, or, if there is only one place, of
 * 32 columns. A word is the same limb of four k. Panels of b have, for four k after another, rows of
 * the words of each limb; panels of a, for 64 k, the limbs of 16 rows, all words of a row next to each
 * other. */

/* Word `limb` of elements of four k. */
INLINE void JOIN(encode, DTYPE)(const ELEMENT e[4], uint32_t w[LIMBS])
{
    for (int limb = 0; limb < LIMBS; limb++) {
        w[limb] = 0;
        for (int i = 0; i < 4; i++) {
            /* By halves of 32 bits, vectors of which are as long as those of words. */
            const uint32_t half = (uint32_t)((uint64_t)e[i] >> 32 * (limb / 4));
            w[limb] |= (half >> 8 * (limb % 4) & 0xff) << 8 * i;
        }
    }
}

enum { JOIN(COLUMNS, DTYPE) = LIMBS == 1 ? 2 * TILE_ROWS : TILE_ROWS };

#define LANE uint32_t
#define GROUP 4
#define IN_PAIRS 0

#define PACK JOIN(pack_b, DTYPE)
#define UNIT JOIN(COLUMNS, DTYPE)
#define WORDS LIMBS
#define ENCODE JOIN(encode, DTYPE)
#define FACTOR 0
#define AS_WORDS (LIMBS == 1)
#include "matmul_pack.h"

#define PACK JOIN(pack_rows, DTYPE)
#define UNIT ROWS
#define WORDS LIMBS
#define ENCODE JOIN(encode, DTYPE)
#define FACTOR 0
#define AS_WORDS (LIMBS == 1)
#include "matmul_pack.h"

#undef LANE
#undef GROUP
#undef IN_PAIRS

/* As columns of b are packed, group after group, and then turned. */
static void JOIN(pack_a, DTYPE)(char *panel, const char *from, ptrdiff_t row, ptrdiff_t k_step,
                                ptrdiff_t count, ptrdiff_t k)
{
    enum { LIMB_BYTES = ROWS * GROUP_K, WORD_ROW = LIMBS * ROWS };
    for (ptrdiff_t first = 0; first < k; first += GROUP_K) {
        uint32_t words[GROUP_K / 4][LIMBS][ROWS];
        ptrdiff_t depth = GROUP_K;
        if (k - first < GROUP_K) {
            depth = k - first;
            memset(words, 0, sizeof words);
        }
        JOIN(pack_rows, DTYPE)((char *)words, from + first * k_step, row, k_step, count, depth);
        for (int limb = 0; limb < LIMBS; limb++) {
            for (int i = 0; i < ROWS; i += 4) {
                for (int j = 0; j < GROUP_K / 4; j += 4) {
                    transpose_4x4_uint32(
                        (const char *)&words[j][limb][i], WORD_ROW * sizeof(uint32_t),
                        panel + limb * LIMB_BYTES + i * TILE_ROW_BYTES + j * 4, TILE_ROW_BYTES);
                }
            }
        }
        panel += LIMBS * LIMB_BYTES;
    }
}

/* Both sums stand for places or, if there is only one, for columns. */
INLINE void JOIN(add_sums, DTYPE)(const uint32_t first[ROWS][TILE_ROWS],
                                  const uint32_t second[ROWS][TILE_ROWS], int place, char *c,
                                  ptrdiff_t c_row, bool accumulate)
{
    for (int row = 0; row < ROWS; row++) {
        ELEMENT *to = (ELEMENT *)(c + row * c_row);
        for (int column = 0; column < TILE_ROWS; column++) {
            ELEMENT sum = (ELEMENT)((ELEMENT)first[row][column] << 8 * place);
            if (LIMBS > 1) {
                sum += (ELEMENT)((ELEMENT)second[row][column] << 8 * (place + 1));
            } else {
                ELEMENT *other = to + TILE_ROWS + column;
                *other = (ELEMENT)(second[row][column] + (accumulate ? *other : 0));
            }
            to[column] = (ELEMENT)(sum + (accumulate ? to[column] : 0));
        }
    }
}

/* Sums of a place are below 2^32 where bits beyond would count: four of 4096 products of bytes are. */
static void JOIN(tile, DTYPE)(const char *a, const char *b, ptrdiff_t groups, char *c,
                              ptrdiff_t c_row, bool accumulate)
{
    enum {
        LIMB_BYTES = ROWS * GROUP_K,
        WORD_ROW_BYTES = JOIN(COLUMNS, DTYPE) * sizeof(uint32_t),
        B_GROUP_BYTES = LIMBS * JOIN(COLUMNS, DTYPE) * GROUP_K,
    };
    _Alignas(64) uint32_t first[ROWS][TILE_ROWS], second[ROWS][TILE_ROWS];
    for (int place = 0; place < LIMBS; place += 2) {
        zero_sums();
        for (ptrdiff_t group = 0; group < groups; group++) {
            const char *of_a = a + group * LIMBS * LIMB_BYTES, *of_b = b + group * B_GROUP_BYTES;
#if LIMBS == 1
            multiply(of_a, of_b, of_b + TILE_ROW_BYTES, WORD_ROW_BYTES);
#else
            for (int limb = 0; limb <= place + 1; limb++) {
                const char *at = of_b + (place - limb) * WORD_ROW_BYTES;
                multiply(of_a + limb * LIMB_BYTES, limb <= place ? at : NULL, at + WORD_ROW_BYTES,
                         LIMBS * WORD_ROW_BYTES);
            }
#endif
        }
        store_sums(first, second);
        JOIN(add_sums, DTYPE)(first, second, place, c, c_row, accumulate || place > 0);
    }
}

static const struct matmul_kernel JOIN(matmul, DTYPE) = {
    .kind = 'i',
    .item_size = sizeof(ELEMENT),
    .sum_size = sizeof(ELEMENT),
    .rows = ROWS,
    .columns = JOIN(COLUMNS, DTYPE),
    .group = GROUP_K,
    .a_group_bytes = LIMBS * GROUP_K,
    .b_group_bytes = LIMBS * GROUP_K,
    .panel_bytes = PANEL_BYTES,
    .begin = load_tiles,
    .end = release_tiles,
    .pack_a = JOIN(pack_a, DTYPE),
    .pack_b = JOIN(pack_b, DTYPE),
    .tile = JOIN(tile, DTYPE),
};

#undef DTYPE
#undef ELEMENT
#undef LIMBS
