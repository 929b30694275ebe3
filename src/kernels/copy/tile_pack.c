/* Copies the elements of a tile next to each other, whatever lay between them. */
#include "tile_pack.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum {
    SIDE = 8, /* columns that are transposed together: their lines stay in the cache */
    VECTOR = 16,
};

typedef uint64_t pair64 __attribute__((vector_size(16)));
typedef uint32_t quad32 __attribute__((vector_size(16)));
typedef uint16_t eight16 __attribute__((vector_size(16)));
typedef uint8_t sixteen8 __attribute__((vector_size(16)));

/* Inlined with a constant size, so that each memcpy becomes one load or store. */
INLINE void pack_elements(size_t size, const struct tile *tile, char *to)
{
    const ptrdiff_t row_bytes = tile->columns * (ptrdiff_t)size;
    for (ptrdiff_t r = 0; r < tile->rows; r++) {
        const char *row = tile->data + r * tile->row_step;
        for (ptrdiff_t c = 0; c < tile->columns; c++) {
            memcpy(to + r * row_bytes + c * (ptrdiff_t)size, row + c * tile->column_step, size);
        }
    }
}

/* Rows of one element each, repeated: vectors of it, of which the last may overlap the one before. */
INLINE void pack_repeated(size_t size, const struct tile *tile, char *to)
{
    const ptrdiff_t row_bytes = tile->columns * (ptrdiff_t)size;
    for (ptrdiff_t r = 0; r < tile->rows; r++) {
        char vector[VECTOR];
        for (size_t i = 0; i < VECTOR; i += size) {
            memcpy(vector + i, tile->data + r * tile->row_step, size);
        }
        if (row_bytes < VECTOR) {
            for (ptrdiff_t i = 0; i < row_bytes; i += (ptrdiff_t)size) {
                memcpy(to + i, vector, size);
            }
        } else {
            for (ptrdiff_t i = 0; i + VECTOR < row_bytes; i += VECTOR) {
                memcpy(to + i, vector, VECTOR);
            }
            memcpy(to + row_bytes - VECTOR, vector, VECTOR);
        }
        to += row_bytes;
    }
}

#define INTERLEAVE_8(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_8_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define INTERLEAVE_4(a, b) __builtin_shufflevector((quad32)(a), (quad32)(b), 0, 4, 1, 5)
#define INTERLEAVE_4_HIGH(a, b) __builtin_shufflevector((quad32)(a), (quad32)(b), 2, 6, 3, 7)
#define INTERLEAVE_2(a, b) __builtin_shufflevector((pair64)(a), (pair64)(b), 0, 2)
#define INTERLEAVE_2_HIGH(a, b) __builtin_shufflevector((pair64)(a), (pair64)(b), 1, 3)

/* Two rows of two columns that lie next to each other row by row. */
INLINE void transpose_2x2(const char *from, ptrdiff_t column_step, char *to, ptrdiff_t row_bytes)
{
    pair64 a, b;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + column_step, sizeof b);
    const pair64 first = INTERLEAVE_2(a, b), second = INTERLEAVE_2_HIGH(a, b);
    memcpy(to, &first, sizeof first);
    memcpy(to + row_bytes, &second, sizeof second);
}

INLINE void transpose_4x4(const char *from, ptrdiff_t column_step, char *to, ptrdiff_t row_bytes)
{
    quad32 column[4];
    for (int c = 0; c < 4; c++) {
        memcpy(&column[c], from + c * column_step, sizeof column[c]);
    }
    const quad32 top_01 = INTERLEAVE_4(column[0], column[1]);
    const quad32 top_23 = INTERLEAVE_4(column[2], column[3]);
    const quad32 end_01 = INTERLEAVE_4_HIGH(column[0], column[1]);
    const quad32 end_23 = INTERLEAVE_4_HIGH(column[2], column[3]);
    const pair64 row[4] = {INTERLEAVE_2(top_01, top_23), INTERLEAVE_2_HIGH(top_01, top_23),
                           INTERLEAVE_2(end_01, end_23), INTERLEAVE_2_HIGH(end_01, end_23)};
    for (int r = 0; r < 4; r++) {
        memcpy(to + r * row_bytes, &row[r], sizeof row[r]);
    }
}

/* Each step makes pieces of a row twice as long: of 1 column, 2, 4, 8. */
INLINE void transpose_8x8_of_16_bits(const char *from, ptrdiff_t column_step, char *to,
                                     ptrdiff_t row_bytes)
{
    eight16 column[8];
    for (int c = 0; c < 8; c++) {
        memcpy(&column[c], from + c * column_step, sizeof column[c]);
    }
    eight16 twos[2][4]; /* of rows 0 to 3, and 4 to 7 */
    for (int i = 0; i < 4; i++) {
        twos[0][i] = INTERLEAVE_8(column[2 * i], column[2 * i + 1]);
        twos[1][i] = INTERLEAVE_8_HIGH(column[2 * i], column[2 * i + 1]);
    }
    for (int half = 0; half < 2; half++) {
        const eight16 *two = twos[half];
        const quad32 left = INTERLEAVE_4(two[0], two[1]), right = INTERLEAVE_4(two[2], two[3]);
        const quad32 left_2 = INTERLEAVE_4_HIGH(two[0], two[1]);
        const quad32 right_2 = INTERLEAVE_4_HIGH(two[2], two[3]);
        const pair64 row[4] = {INTERLEAVE_2(left, right), INTERLEAVE_2_HIGH(left, right),
                               INTERLEAVE_2(left_2, right_2), INTERLEAVE_2_HIGH(left_2, right_2)};
        for (int r = 0; r < 4; r++) {
            memcpy(to + (4 * half + r) * row_bytes, &row[r], sizeof row[r]);
        }
    }
}

/* Through a whole vector in memory, a load would wait for two stores. */
INLINE sixteen8 load_8_bytes(const char *from)
{
    uint64_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    return (sixteen8)(pair64){bytes, 0};
}

INLINE void transpose_8x8_of_8_bits(const char *from, ptrdiff_t column_step, char *to,
                                    ptrdiff_t row_bytes)
{
    eight16 twos[4];
    for (int i = 0; i < 4; i++) {
        const sixteen8 a = load_8_bytes(from + 2 * i * column_step),
                       b = load_8_bytes(from + (2 * i + 1) * column_step);
        twos[i] = (eight16)__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                                   6, 22, 7, 23);
    }
    for (int half = 0; half < 2; half++) {
        const eight16 left =
            half == 0 ? INTERLEAVE_8(twos[0], twos[1]) : INTERLEAVE_8_HIGH(twos[0], twos[1]);
        const eight16 right =
            half == 0 ? INTERLEAVE_8(twos[2], twos[3]) : INTERLEAVE_8_HIGH(twos[2], twos[3]);
        const quad32 rows[2] = {INTERLEAVE_4(left, right), INTERLEAVE_4_HIGH(left, right)};
        for (int r = 0; r < 4; r++) {
            memcpy(to + (4 * half + r) * row_bytes, (const char *)&rows[r / 2] + 8 * (r % 2), 8);
        }
    }
}

/* `side` columns, in blocks of `block` by `block` elements, of which the last ones may overlap those before.
 * Both are constants where this is inlined: the fewer instructions, the more lines are on their way. */
INLINE void transpose_columns(size_t size, int block, int side,
                              void (*transpose)(const char *, ptrdiff_t, char *, ptrdiff_t),
                              const struct tile *tile, ptrdiff_t first, char *to)
{
    const ptrdiff_t row_bytes = tile->columns * (ptrdiff_t)size, step = tile->column_step;
    const char *from = tile->data + first * step;
    to += first * (ptrdiff_t)size;
    ptrdiff_t r = 0;
    for (; r + block <= tile->rows; r += block) {
        for (int c = 0; c < side; c += block) {
            transpose(from + r * (ptrdiff_t)size + c * step, step,
                      to + r * row_bytes + c * (ptrdiff_t)size, row_bytes);
        }
    }
    if (r < tile->rows) {
        r = tile->rows - block;
        for (int c = 0; c < side; c += block) {
            transpose(from + r * (ptrdiff_t)size + c * step, step,
                      to + r * row_bytes + c * (ptrdiff_t)size, row_bytes);
        }
    }
}

INLINE void transpose_blocks(size_t size, int block,
                             void (*transpose)(const char *, ptrdiff_t, char *, ptrdiff_t),
                             const struct tile *tile, char *to)
{
    if (tile->rows < block || tile->columns < block) {
        pack_elements(size, tile, to);
        return;
    }
    const int side = tile->columns < SIDE ? block : SIDE;
    for (ptrdiff_t next = 0; next < tile->columns; next += side) {
        const ptrdiff_t first = next + side <= tile->columns ? next : tile->columns - side;
        if (side == SIDE) {
            transpose_columns(size, block, SIDE, transpose, tile, first, to);
        } else {
            transpose_columns(size, block, block, transpose, tile, first, to);
        }
    }
}

static void pack_rows(size_t row_bytes, const struct tile *tile, char *to)
{
    for (ptrdiff_t r = 0; r < tile->rows; r++) {
        memcpy(to + r * (ptrdiff_t)row_bytes, tile->data + r * tile->row_step, row_bytes);
    }
}

/* Inlined for each size of an element. */
INLINE void pack_items(size_t size, const struct tile *tile, char *to)
{
    if (tile->column_step == 0) {
        pack_repeated(size, tile, to);
    } else if (tile->row_step != (ptrdiff_t)size) {
        pack_elements(size, tile, to);
    } else if (size == 1) {
        transpose_blocks(1, 8, transpose_8x8_of_8_bits, tile, to);
    } else if (size == 2) {
        transpose_blocks(2, 8, transpose_8x8_of_16_bits, tile, to);
    } else if (size == 4) {
        transpose_blocks(4, 4, transpose_4x4, tile, to);
    } else {
        transpose_blocks(8, 2, transpose_2x2, tile, to);
    }
}

bool tile_has_vectors(size_t item_size, ptrdiff_t rows)
{
    return item_size <= 2 ? rows >= 8 : item_size == 4 ? rows >= 4 : item_size == 8 && rows >= 2;
}

void tile_pack(size_t item_size, const struct tile *tile, char *to)
{
    if (tile->column_step == (ptrdiff_t)item_size) {
        pack_rows((size_t)tile->columns * item_size, tile, to);
        return;
    }
    switch (item_size) {
    case 1:
        pack_items(1, tile, to);
        break;
    case 2:
        pack_items(2, tile, to);
        break;
    case 4:
        pack_items(4, tile, to);
        break;
    case 8:
        pack_items(8, tile, to);
        break;
    default:
        pack_elements(item_size, tile, to);
    }
}
