/* The kernel of one integer dtype on AMX, for large products. The file that includes it defines:
 *   element, LIMBS             the dtype, and its bytes
 *   TILES_DOWN, TILES_ACROSS   AMX tiles in a register tile of c
 * TILES_DOWN * TILES_ACROSS * PLACES is 4, the number of AMX tiles for sums. */
#include "amx_pack.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { PLACES = LIMBS < 4 ? LIMBS : 4 };

static void pack_a(char *panel, const char *from, ptrdiff_t row, ptrdiff_t k_step, ptrdiff_t count,
                   ptrdiff_t k)
{
    pack_panel(panel, from, row, k_step, count, k, TILES_DOWN, LIMBS, true);
}

static void pack_b(char *panel, const char *from, ptrdiff_t column, ptrdiff_t k_step,
                   ptrdiff_t count, ptrdiff_t k)
{
    pack_panel(panel, from, column, k_step, count, k, TILES_ACROSS, LIMBS, false);
}

/* One element of c from the sums of its places; `sums` points to that of place 0. */
INLINE element join_places(const uint32_t *sums)
{
    enum { STEP = AMX_ROWS * AMX_ROWS };
    element joined = 0;
    for (int place = 0; place < PLACES; place++) {
        joined += (element)((element)sums[place * STEP] << 8 * place);
    }
    uint32_t upper = 0; /* 32 bits suffice, and take half the vectors */
    for (int place = PLACES; place < LIMBS; place++) {
        upper += sums[place * STEP] << 8 * (place - PLACES);
    }
    return (element)(joined + (LIMBS > 4 ? (uint64_t)upper << 32 : 0));
}

INLINE void add_sums(const uint32_t *sums, char *c, ptrdiff_t c_row, bool accumulate)
{
    for (int down = 0; down < TILES_DOWN; down++) {
        for (int across = 0; across < TILES_ACROSS; across++) {
            for (int row = 0; row < AMX_ROWS; row++) {
                element *to = (element *)(c + (down * AMX_ROWS + row) * c_row) + across * AMX_ROWS;
                for (int column = 0; column < AMX_ROWS; column++) {
                    const element sum = join_places(sums + row * AMX_ROWS + column);
                    to[column] = (element)(sum + (accumulate ? to[column] : 0));
                }
            }
            sums += LIMBS * AMX_ROWS * AMX_ROWS;
        }
    }
}

/* No overflow where it would count: places 0 to 3 hold at most 4 * 4096 * 255^2 < 2^32. */
static void compute_tile(const char *a, const char *b, ptrdiff_t groups, char *c, ptrdiff_t c_row,
                         bool accumulate)
{
    enum {
        PASSES = LIMBS / PLACES,
        A_BYTES = TILES_DOWN * LIMBS * AMX_BYTES,
        B_BYTES = TILES_ACROSS * LIMBS * AMX_BYTES,
    };
    _Alignas(64) uint32_t sums[PASSES][SUM_TILES][AMX_ROWS][AMX_ROWS];
#pragma GCC unroll 2
    for (int pass = 0; pass < PASSES; pass++) {
        zero_sums();
        for (ptrdiff_t group = 0; group < groups; group++) {
            multiply(a + group * A_BYTES, b + group * B_BYTES, PLACES * (pass + 1));
        }
        store_sums(sums[pass]);
    }
    add_sums(&sums[0][0][0][0], c, c_row, accumulate);
}

/* Linux grants AMX registers, 8 KiB of state per thread, to processes that ask. */
static bool ask_for_tiles(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    static _Atomic signed char granted; /* 0: not asked */
    if (granted == 0) {
        granted = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 ? 1 : -1;
    }
    return granted > 0;
}

const struct matmul_kernel KERNEL = {
    .prepare = ask_for_tiles,
    .kind = 'i',
    .item_size = sizeof(element),
    .sum_size = sizeof(element),
    .rows = TILES_DOWN * AMX_ROWS,
    .columns = TILES_ACROSS * AMX_ROWS,
    .group = GROUP_K,
    .a_group_bytes = LIMBS * GROUP_K,
    .b_group_bytes = LIMBS * GROUP_K,
    .panel_bytes = PANEL_BYTES,
    .begin = load_tiles,
    .end = release_tiles,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .tile = compute_tile,
};
