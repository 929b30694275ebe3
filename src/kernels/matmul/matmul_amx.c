/* Large products of integers on AMX, which multiplies 16 rows of 64 bytes by 16 columns at a time. The
 * bytes of an element are its limbs; products of limbs count whose place lies within the element. */
#include "matmul_kernels.h"

#include "kernels/vector.h"

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    GROUP_K = 64,
    TILE_ROWS = 16, /* from here on the processor's tiles */
    TILE_ROW_BYTES = 64,
    TILE_BYTES = TILE_ROWS * TILE_ROW_BYTES,
    SUM_TILES = 4, /* of which a chain of additions each can be under way */
    /* Sums are added to c once for each panel; both panels come from the second level of cache. */
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

INLINE void store_sums(uint32_t sums[SUM_TILES][TILE_ROWS][TILE_ROWS])
{
    _tile_stored(0, sums[0], TILE_ROW_BYTES);
    _tile_stored(1, sums[1], TILE_ROW_BYTES);
    _tile_stored(2, sums[2], TILE_ROW_BYTES);
    _tile_stored(3, sums[3], TILE_ROW_BYTES);
}

/* ---- products of one group of k, from tiles 4 to 7; panels have a tile for each limb ---- */

#define LOAD(tile, panel, at) _tile_loadd(tile, (panel) + (at)*TILE_BYTES, TILE_ROW_BYTES)

/* Each of two tiles of a, the first one and another, by each of the first two of b. */
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

/* Sums of 2 x 2 tiles. */
INLINE void multiply_1(const char *a, const char *b)
{
    multiply_pairs(a, 1, b);
}

/* Sums of places 0 and 1, for two tiles below each other. */
INLINE void multiply_2(const char *a, const char *b)
{
    multiply_pairs(a, 2, b);
    LOAD(4, a, 1);
    LOAD(5, a, 3);
    _tile_dpbuud(1, 4, 6);
    _tile_dpbuud(3, 5, 6);
}

/* A limb of a meets those of b that make four places, the highest first. Those of b but the first are
 * what the next limb of a begins with: three tiles are enough for all of them. */
#define MEET_3(a_limb, first, second, third)                                                       \
    LOAD(4, a, a_limb);                                                                            \
    _tile_dpbuud(3, 4, first);                                                                     \
    _tile_dpbuud(2, 4, second);                                                                    \
    _tile_dpbuud(1, 4, third)
#define MEET_4(a_limb, first, second, third, b_limb)                                               \
    MEET_3(a_limb, first, second, third);                                                          \
    LOAD(first, b, b_limb);                                                                        \
    _tile_dpbuud(0, 4, first)
/* The last three limbs of a, which meet the lowest ones of b. */
#define MEET_THE_LAST(a_limb, third, second, first)                                                \
    MEET_3(a_limb, third, second, first);                                                          \
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
    MEET_4(0, 5, 6, 7, 0);
    MEET_THE_LAST(1, 6, 7, 5);
}

/* Sums of places 4 to 7. */
INLINE void multiply_8(const char *a, const char *b)
{
    LOAD(5, b, 7);
    LOAD(6, b, 6);
    LOAD(7, b, 5);
    MEET_4(0, 5, 6, 7, 4);
    MEET_4(1, 6, 7, 5, 3);
    MEET_4(2, 7, 5, 6, 2);
    MEET_4(3, 5, 6, 7, 1);
    MEET_4(4, 6, 7, 5, 0);
    MEET_THE_LAST(5, 7, 5, 6);
}

/* All products of that many limbs; with 8, only those that 4 do not have. */
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

/* ---- transpositions, for packing ---- */

typedef uint8_t bytes __attribute__((vector_size(64), may_alias));
typedef uint32_t words __attribute__((vector_size(64), may_alias));
typedef uint32_t half_words __attribute__((vector_size(32), may_alias));
typedef uint32_t quarter_words __attribute__((vector_size(16), may_alias));

/* 16 numbers of words of two vectors: those of the first, but where bit `distance` is set, those of the
 * second that lie `distance` before; and those of the second, but where it is not set. */
#define WORD_OF_16(f, d)                                                                           \
    f(0, d), f(1, d), f(2, d), f(3, d), f(4, d), f(5, d), f(6, d), f(7, d), f(8, d), f(9, d),      \
        f(10, d), f(11, d), f(12, d), f(13, d), f(14, d), f(15, d)
#define LOWER(i, d) ((i) & (d) ? 16 + (i) - (d) : (i))
#define UPPER(i, d) ((i) & (d) ? 16 + (i) : (i) + (d))
#define EXCHANGE(d)                                                                                \
    *first = __builtin_shufflevector(x, y, WORD_OF_16(LOWER, d));                                  \
    *second = __builtin_shufflevector(x, y, WORD_OF_16(UPPER, d))

INLINE void exchange(words *first, words *second, int distance)
{
    const words x = *first, y = *second;
    switch (distance) {
    case 1:
        EXCHANGE(1);
        break;
    case 2:
        EXCHANGE(2);
        break;
    case 4:
        EXCHANGE(4);
        break;
    default:
        EXCHANGE(8);
    }
}

/* Block i of vector j becomes block j of vector i, of as many as fill a vector. */
INLINE void transpose_blocks(words vectors[], int count)
{
    const int width = TILE_ROWS / count;
#pragma GCC unroll 4
    for (int distance = 1; distance < count; distance *= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < count; i++) {
            if ((i & distance) == 0) {
                exchange(&vectors[i], &vectors[i + distance], distance * width);
            }
        }
    }
}

/* Within a vector, byte i * count + j goes to j * (64 / count) + i. */
#define BYTE(i, count) ((i) % (64 / (count)) * (count) + (i) / (64 / (count)))
#define BYTES_OF_4(i, n) BYTE(i, n), BYTE((i) + 1, n), BYTE((i) + 2, n), BYTE((i) + 3, n)
#define BYTES_OF_16(i, n)                                                                          \
    BYTES_OF_4(i, n), BYTES_OF_4((i) + 4, n), BYTES_OF_4((i) + 8, n), BYTES_OF_4((i) + 12, n)
#define SORTED(v, n)                                                                               \
    (words) __builtin_shufflevector((bytes)(v), (bytes)(v), BYTES_OF_16(0, n), BYTES_OF_16(16, n), \
                                    BYTES_OF_16(32, n), BYTES_OF_16(48, n))

/* Of 64 elements, vector i comes to hold limb i. */
INLINE void separate_limbs(words vectors[], int limbs)
{
    for (int i = 0; i < limbs; i++) {
        switch (limbs) {
        case 2:
            vectors[i] = SORTED(vectors[i], 2);
            break;
        case 4:
            vectors[i] = SORTED(vectors[i], 4);
            break;
        case 8:
            vectors[i] = SORTED(vectors[i], 8);
        }
    }
    transpose_blocks(vectors, limbs);
}

/* ---- packing ---- */

/* Loads `limbs` vectors from four places. */
INLINE void load_quarters(words vectors[], const char *from, ptrdiff_t step, int limbs)
{
    if (limbs >= 4) {
        for (int i = 0; i < 4; i++) {
            memcpy(vectors + i * limbs / 4, from + i * step, (size_t)(16 * limbs));
        }
        return;
    }
    half_words halves[4];
    for (int i = 0; i < 2 * limbs; i++) {
        if (limbs == 2) {
            memcpy(&halves[i], from + i * step, sizeof halves[i]);
        } else {
            quarter_words quarters[2];
            memcpy(&quarters[0], from + 2 * i * step, sizeof quarters[0]);
            memcpy(&quarters[1], from + (2 * i + 1) * step, sizeof quarters[1]);
            halves[i] = __builtin_shufflevector(quarters[0], quarters[1], 0, 1, 2, 3, 4, 5, 6, 7);
        }
    }
    for (int i = 0; i < limbs; i++) {
        vectors[i] = __builtin_shufflevector(halves[2 * i], halves[2 * i + 1], 0, 1, 2, 3, 4, 5, 6,
                                             7, 8, 9, 10, 11, 12, 13, 14, 15);
    }
}

/* A row of a tile for each of 16 units, 64 k in it next to each other. */
INLINE void pack_along_k(char *to, const char *from, ptrdiff_t unit_step, int limbs)
{
    for (int unit = 0; unit < TILE_ROWS; unit++) {
        words vectors[8];
        memcpy(vectors, from + unit * unit_step, (size_t)(TILE_ROW_BYTES * limbs));
        separate_limbs(vectors, limbs);
        for (int limb = 0; limb < limbs; limb++) {
            memcpy(to + limb * TILE_BYTES + unit * TILE_ROW_BYTES, &vectors[limb], TILE_ROW_BYTES);
        }
    }
}

/* A row of a tile for each four k, the units next to each other; a word holds what a unit has of it. */
INLINE void pack_along_units(char *to, const char *from, ptrdiff_t k_step, int limbs)
{
    for (int row = 0; row < TILE_ROWS; row++) {
        words vectors[8];
        load_quarters(vectors, from + 4 * row * k_step, k_step, limbs);
        separate_limbs(vectors, limbs);
        for (int limb = 0; limb < limbs; limb++) {
            const words sorted = SORTED(vectors[limb], 16);
            memcpy(to + limb * TILE_BYTES + row * TILE_ROW_BYTES, &sorted, TILE_ROW_BYTES);
        }
    }
}

/* Turns rows for units into rows for four k, or back. */
INLINE void transpose_tiles(char *tile, int limbs)
{
    for (int limb = 0; limb < limbs; limb++) {
        words rows[TILE_ROWS];
        memcpy(rows, tile + limb * TILE_BYTES, sizeof rows);
        transpose_blocks(rows, TILE_ROWS);
        memcpy(tile + limb * TILE_BYTES, rows, sizeof rows);
    }
}

/* Packs up to 16 units and 64 k, filled up with zeros, to a tile for each limb. */
INLINE void pack_tiles(char *to, const char *from, ptrdiff_t unit_step, ptrdiff_t k_step,
                       ptrdiff_t units, ptrdiff_t depth, int limbs, bool rows_are_units)
{
    char block[TILE_BYTES * 8];
    if (units < TILE_ROWS || depth < GROUP_K || (unit_step != limbs && k_step != limbs)) {
        memset(block, 0, (size_t)(TILE_BYTES * limbs));
        for (ptrdiff_t unit = 0; unit < units; unit++) {
            for (ptrdiff_t k = 0; k < depth; k++) {
                memcpy(block + (unit * GROUP_K + k) * limbs, from + unit * unit_step + k * k_step,
                       (size_t)limbs);
            }
        }
        from = block;
        k_step = limbs;
        unit_step = GROUP_K * limbs;
    }
    if (k_step == limbs) {
        pack_along_k(to, from, unit_step, limbs);
    } else {
        pack_along_units(to, from, k_step, limbs);
    }
    if (rows_are_units != (k_step == limbs)) {
        transpose_tiles(to, limbs);
    }
}

/* Packs `count` units of up to 16 for each tile. */
INLINE void pack_panel(char *panel, const char *from, ptrdiff_t unit_step, ptrdiff_t k_step,
                       ptrdiff_t count, ptrdiff_t k, int tiles_across, int limbs,
                       bool rows_are_units)
{
    for (ptrdiff_t first = 0; first < k; first += GROUP_K) {
        const ptrdiff_t depth = k - first < GROUP_K ? k - first : GROUP_K;
        for (ptrdiff_t unit = 0; unit < tiles_across * TILE_ROWS; unit += TILE_ROWS) {
            const ptrdiff_t units = count - unit < TILE_ROWS ? count - unit : TILE_ROWS;
            pack_tiles(panel, from + unit * unit_step + first * k_step, unit_step, k_step, units,
                       depth, limbs, rows_are_units);
            panel += limbs * TILE_BYTES;
        }
    }
}

#define DTYPE uint8
#define ELEMENT uint8_t
#define LIMBS 1
#define TILES_DOWN 2
#define TILES_ACROSS 2
#include "matmul_limbs.h"

#define DTYPE uint16
#define ELEMENT uint16_t
#define LIMBS 2
#define TILES_DOWN 2
#define TILES_ACROSS 1
#include "matmul_limbs.h"

#define DTYPE uint32
#define ELEMENT uint32_t
#define LIMBS 4
#define TILES_DOWN 1
#define TILES_ACROSS 1
#include "matmul_limbs.h"

#define DTYPE uint64
#define ELEMENT uint64_t
#define LIMBS 8
#define TILES_DOWN 1
#define TILES_ACROSS 1
#include "matmul_limbs.h"

static const struct matmul_kernel *const all_rows[] = {
    &matmul_uint8, &matmul_uint16, &matmul_uint32, &matmul_uint64, NULL,
};

/* A process has to ask Linux for the registers, 8 KiB of every thread that uses them. */
static bool ask_for_tiles(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

const struct matmul_kernels JOIN(matmul, ISA) = {
    .rows = all_rows, .only_large = true, .prepare = ask_for_tiles};
