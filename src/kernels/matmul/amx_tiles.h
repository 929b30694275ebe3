/* AMX multiplies 16 rows of 64 bytes by 16 columns at a time. An element is split into limbs, its bytes; of the
 * products of limbs, only those whose place lies within the element count. */
#include "kernels/vector.h"

#include <immintrin.h>

enum {
    GROUP_K = 64,
    AMX_ROWS = 16, /* of a hardware tile */
    AMX_ROW_BYTES = 64,
    AMX_BYTES = AMX_ROWS * AMX_ROW_BYTES,
    SUM_TILES = 4, /* independent accumulators hide the latency of a multiplication */
    /* Panels of a and b come from the second-level cache; sums are added to c once per panel. */
    PANEL_BYTES = 64 << 10,
};

static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tiles = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

static void load_tiles(void)
{
    _tile_loadconfig(&tiles);
}

static void release_tiles(void)
{
    _tile_release();
}

/* ---- sums: tiles 0 to 3 ---- */

INLINE void zero_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

INLINE void store_sums(uint32_t sums[SUM_TILES][AMX_ROWS][AMX_ROWS])
{
    _tile_stored(0, sums[0], AMX_ROW_BYTES);
    _tile_stored(1, sums[1], AMX_ROW_BYTES);
    _tile_stored(2, sums[2], AMX_ROW_BYTES);
    _tile_stored(3, sums[3], AMX_ROW_BYTES);
}

/* ---- products of one group of k, operands in tiles 4 to 7; a panel has a tile for each limb ---- */

#define LOAD(tile, panel, at) _tile_loadd(tile, (panel) + (at)*AMX_BYTES, AMX_ROW_BYTES)

/* Tiles 0 and `other` of a by tiles 0 and 1 of b. */
INLINE void multiply_pairs(const char *a, int other, const char *b)
{
    LOAD(4, a, 0);
    LOAD(5, a, other);
    LOAD(6, b, 0);
    LOAD(7, b, 1);
    _tile_dpbuud(0, 4, 6);
    _tile_dpbuud(1, 4, 7);
    _tile_dpbuud(2, 5, 6);
    _tile_dpbuud(3, 5, 7);
}

/* One limb: 2 x 2 tiles of c. */
INLINE void multiply_1(const char *a, const char *b)
{
    multiply_pairs(a, 1, b);
}

/* Two limbs: places 0 and 1 of 2 x 1 tiles of c. */
INLINE void multiply_2(const char *a, const char *b)
{
    multiply_pairs(a, 2, b);
    LOAD(4, a, 1);
    LOAD(5, a, 3);
    _tile_dpbuud(1, 4, 6);
    _tile_dpbuud(3, 5, 6);
}

/* Multiplies one limb of a by the limbs of b that contribute to the four places, the highest place first. The
 * next limb of a needs all but one of the same limbs of b: three tiles in rotation hold them. */
#define MULTIPLY_BY_3(a_limb, first, second, third)                                                \
    LOAD(4, a, a_limb);                                                                            \
    _tile_dpbuud(3, 4, first);                                                                     \
    _tile_dpbuud(2, 4, second);                                                                    \
    _tile_dpbuud(1, 4, third)
#define MULTIPLY_BY_4(a_limb, first, second, third, b_limb)                                        \
    MULTIPLY_BY_3(a_limb, first, second, third);                                                   \
    LOAD(first, b, b_limb);                                                                        \
    _tile_dpbuud(0, 4, first)
/* The last three limbs of a, by the lowest limbs of b. */
#define MULTIPLY_LAST_3(a_limb, third, second, first)                                              \
    MULTIPLY_BY_3(a_limb, third, second, first);                                                   \
    LOAD(4, a, (a_limb) + 1);                                                                      \
    _tile_dpbuud(3, 4, second);                                                                    \
    _tile_dpbuud(2, 4, first);                                                                     \
    LOAD(4, a, (a_limb) + 2);                                                                      \
    _tile_dpbuud(3, 4, first)

/* Sums of places 0 to 3. */
INLINE void multiply_4(const char *a, const char *b)
{
    LOAD(5, b, 3);
    LOAD(6, b, 2);
    LOAD(7, b, 1);
    MULTIPLY_BY_4(0, 5, 6, 7, 0);
    MULTIPLY_LAST_3(1, 6, 7, 5);
}

/* Sums of places 4 to 7. */
INLINE void multiply_8(const char *a, const char *b)
{
    LOAD(5, b, 7);
    LOAD(6, b, 6);
    LOAD(7, b, 5);
    MULTIPLY_BY_4(0, 5, 6, 7, 4);
    MULTIPLY_BY_4(1, 6, 7, 5, 3);
    MULTIPLY_BY_4(2, 7, 5, 6, 2);
    MULTIPLY_BY_4(3, 5, 6, 7, 1);
    MULTIPLY_BY_4(4, 6, 7, 5, 0);
    MULTIPLY_LAST_3(5, 7, 5, 6);
}

/* All products that count for `limbs` limbs; for 8, only those of places 4 to 7. */
INLINE void multiply(const char *a, const char *b, int limbs)
{
    switch (limbs) {
    case 1:
        multiply_1(a, b);
        break;
    case 2:
        multiply_2(a, b);
        break;
    case 4:
        multiply_4(a, b);
        break;
    default:
        multiply_8(a, b);
    }
}
