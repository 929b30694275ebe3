/* Panels and tiles of one dtype on AMX; included by matmul_amx.c once per dtype. Parameters:
 *   DTYPE, ELEMENT, LIMBS      suffix of the names, C type, and its bytes
 *   TILES_DOWN, TILES_ACROSS   the processor's in a tile of c
 * Together with places, of which up to four are summed at a time, there are four tiles of sums. */

enum { JOIN(PLACES, DTYPE) = LIMBS < 4 ? LIMBS : 4 };
#define PLACES JOIN(PLACES, DTYPE)

static void JOIN(pack_a, DTYPE)(char *panel, const char *from, ptrdiff_t row, ptrdiff_t k_step,
                                ptrdiff_t count, ptrdiff_t k)
{
    pack_panel(panel, from, row, k_step, count, k, TILES_DOWN, LIMBS, true);
}

static void JOIN(pack_b, DTYPE)(char *panel, const char *from, ptrdiff_t column, ptrdiff_t k_step,
                                ptrdiff_t count, ptrdiff_t k)
{
    pack_panel(panel, from, column, k_step, count, k, TILES_ACROSS, LIMBS, false);
}

/* Of an element, given the sums of its first place. */
INLINE ELEMENT JOIN(join_places, DTYPE)(const uint32_t *sums)
{
    enum { STEP = TILE_ROWS * TILE_ROWS };
    ELEMENT joined = 0;
    for (int place = 0; place < PLACES; place++) {
        joined += (ELEMENT)((ELEMENT)sums[place * STEP] << 8 * place);
    }
    uint32_t upper = 0; /* vectors of these are half as many */
    for (int place = PLACES; place < LIMBS; place++) {
        upper += sums[place * STEP] << 8 * (place - PLACES);
    }
    return (ELEMENT)(joined + (LIMBS > PLACES ? (uint64_t)upper << 32 : 0));
}

INLINE void JOIN(add_sums, DTYPE)(const uint32_t *sums, char *c, ptrdiff_t c_row, bool accumulate)
{
    for (int down = 0; down < TILES_DOWN; down++) {
        for (int across = 0; across < TILES_ACROSS; across++) {
            for (int row = 0; row < TILE_ROWS; row++) {
                ELEMENT *to =
                    (ELEMENT *)(c + (down * TILE_ROWS + row) * c_row) + across * TILE_ROWS;
                for (int column = 0; column < TILE_ROWS; column++) {
                    const ELEMENT sum = JOIN(join_places, DTYPE)(sums + row * TILE_ROWS + column);
                    to[column] = (ELEMENT)(sum + (accumulate ? to[column] : 0));
                }
            }
            sums += LIMBS * TILE_ROWS * TILE_ROWS;
        }
    }
}

/* Sums of a place are below 2^32 where bits beyond would count: four of 4096 products of bytes are. */
static void JOIN(tile, DTYPE)(const char *a, const char *b, ptrdiff_t groups, char *c,
                              ptrdiff_t c_row, bool accumulate)
{
    enum {
        PASSES = LIMBS / PLACES,
        A_BYTES = TILES_DOWN * LIMBS * TILE_BYTES,
        B_BYTES = TILES_ACROSS * LIMBS * TILE_BYTES,
    };
    _Alignas(64) uint32_t sums[PASSES][SUM_TILES][TILE_ROWS][TILE_ROWS];
#pragma GCC unroll 2
    for (int pass = 0; pass < PASSES; pass++) {
        zero_sums();
        for (ptrdiff_t group = 0; group < groups; group++) {
            multiply(a + group * A_BYTES, b + group * B_BYTES, PLACES * (pass + 1));
        }
        store_sums(sums[pass]);
    }
    JOIN(add_sums, DTYPE)(&sums[0][0][0][0], c, c_row, accumulate);
}

static const struct matmul_kernel JOIN(matmul, DTYPE) = {
    .kind = 'i',
    .item_size = sizeof(ELEMENT),
    .sum_size = sizeof(ELEMENT),
    .rows = TILES_DOWN * TILE_ROWS,
    .columns = TILES_ACROSS * TILE_ROWS,
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

#undef PLACES
#undef DTYPE
#undef ELEMENT
#undef LIMBS
#undef TILES_DOWN
#undef TILES_ACROSS
