/* Packs panels for AMX: separates limbs and transposes tiles, by permutations of bytes and words. */
#include "amx_tiles.h"

/* ---- transpositions ---- */

typedef uint8_t bytes __attribute__((vector_size(64), may_alias));
typedef uint32_t words __attribute__((vector_size(64), may_alias));
typedef uint32_t half_words __attribute__((vector_size(32), may_alias));
typedef uint32_t quarter_words __attribute__((vector_size(16), may_alias));

/* Butterfly of a transposition: swaps the words of `first` whose index has bit d with the words of `second`
 * whose index has not. Shuffle indices: 0 to 15 are words of `first`, 16 to 31 of `second`. */
#define INDICES_OF_16(f, d)                                                                        \
    f(0, d), f(1, d), f(2, d), f(3, d), f(4, d), f(5, d), f(6, d), f(7, d), f(8, d), f(9, d),      \
        f(10, d), f(11, d), f(12, d), f(13, d), f(14, d), f(15, d)
#define LOWER(i, d) ((i) & (d) ? 16 + (i) - (d) : (i))
#define UPPER(i, d) ((i) & (d) ? 16 + (i) : (i) + (d))
#define EXCHANGE(d)                                                                                \
    *first = __builtin_shufflevector(x, y, INDICES_OF_16(LOWER, d));                               \
    *second = __builtin_shufflevector(x, y, INDICES_OF_16(UPPER, d))

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

/* Transposes count x count blocks of words: block i of vector j and block j of vector i are swapped. */
INLINE void transpose_blocks(words vectors[], int count)
{
    const int width = AMX_ROWS / count;
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

/* De-interleaves the bytes of a vector: byte i * count + j moves to j * (64 / count) + i. */
#define BYTE(i, count) ((i) % (64 / (count)) * (count) + (i) / (64 / (count)))
#define BYTES_OF_4(i, n) BYTE(i, n), BYTE((i) + 1, n), BYTE((i) + 2, n), BYTE((i) + 3, n)
#define BYTES_OF_16(i, n)                                                                          \
    BYTES_OF_4(i, n), BYTES_OF_4((i) + 4, n), BYTES_OF_4((i) + 8, n), BYTES_OF_4((i) + 12, n)
#define DEINTERLEAVED(v, n)                                                                        \
    (words) __builtin_shufflevector((bytes)(v), (bytes)(v), BYTES_OF_16(0, n), BYTES_OF_16(16, n), \
                                    BYTES_OF_16(32, n), BYTES_OF_16(48, n))

/* Splits 64 elements into limbs: afterwards vector i holds limb i of all of them. */
INLINE void separate_limbs(words vectors[], int limbs)
{
    for (int i = 0; i < limbs; i++) {
        switch (limbs) {
        case 2:
            vectors[i] = DEINTERLEAVED(vectors[i], 2);
            break;
        case 4:
            vectors[i] = DEINTERLEAVED(vectors[i], 4);
            break;
        case 8:
            vectors[i] = DEINTERLEAVED(vectors[i], 8);
        }
    }
    transpose_blocks(vectors, limbs);
}

/* ---- packing ---- */

/* Loads `limbs` vectors, a quarter from each of four addresses `step` apart. */
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

/* Elements contiguous along k: a row of a tile is one unit, 64 k long. */
INLINE void pack_along_k(char *to, const char *from, ptrdiff_t unit_step, int limbs)
{
    for (int unit = 0; unit < AMX_ROWS; unit++) {
        words vectors[8];
        memcpy(vectors, from + unit * unit_step, (size_t)(AMX_ROW_BYTES * limbs));
        separate_limbs(vectors, limbs);
        for (int limb = 0; limb < limbs; limb++) {
            memcpy(to + limb * AMX_BYTES + unit * AMX_ROW_BYTES, &vectors[limb], AMX_ROW_BYTES);
        }
    }
}

/* Units contiguous: a row of a tile is four k; each of its words holds those of one unit. */
INLINE void pack_along_units(char *to, const char *from, ptrdiff_t k_step, int limbs)
{
    for (int row = 0; row < AMX_ROWS; row++) {
        words vectors[8];
        load_quarters(vectors, from + 4 * row * k_step, k_step, limbs);
        separate_limbs(vectors, limbs);
        for (int limb = 0; limb < limbs; limb++) {
            const words row_words = DEINTERLEAVED(vectors[limb], 16);
            memcpy(to + limb * AMX_BYTES + row * AMX_ROW_BYTES, &row_words, AMX_ROW_BYTES);
        }
    }
}

/* Converts between tiles whose rows are units and tiles whose rows are four k. */
INLINE void transpose_tiles(char *tile, int limbs)
{
    for (int limb = 0; limb < limbs; limb++) {
        words rows[AMX_ROWS];
        memcpy(rows, tile + limb * AMX_BYTES, sizeof rows);
        transpose_blocks(rows, AMX_ROWS);
        memcpy(tile + limb * AMX_BYTES, rows, sizeof rows);
    }
}

/* Packs up to 16 units by 64 k, padded with zeros, into one tile for each limb. */
INLINE void pack_tiles(char *to, const char *from, ptrdiff_t unit_step, ptrdiff_t k_step,
                       ptrdiff_t units, ptrdiff_t depth, int limbs, bool rows_are_units)
{
    char block[AMX_BYTES * 8];
    if (units < AMX_ROWS || depth < GROUP_K || (unit_step != limbs && k_step != limbs)) {
        memset(block, 0, (size_t)(AMX_BYTES * limbs));
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

/* Packs `count` units, 16 to a tile. */
INLINE void pack_panel(char *panel, const char *from, ptrdiff_t unit_step, ptrdiff_t k_step,
                       ptrdiff_t count, ptrdiff_t k, int tiles_across, int limbs,
                       bool rows_are_units)
{
    for (ptrdiff_t first = 0; first < k; first += GROUP_K) {
        const ptrdiff_t depth = k - first < GROUP_K ? k - first : GROUP_K;
        for (ptrdiff_t unit = 0; unit < tiles_across * AMX_ROWS; unit += AMX_ROWS) {
            const ptrdiff_t units = count - unit < AMX_ROWS ? count - unit : AMX_ROWS;
            pack_tiles(panel, from + unit * unit_step + first * k_step, unit_step, k_step, units,
                       depth, limbs, rows_are_units);
            panel += limbs * AMX_BYTES;
        }
    }
}
