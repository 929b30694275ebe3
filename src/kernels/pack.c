/* Copies the elements of a tile next to each other, whatever lay between them. */
#include "kernels.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { SIDE = 8 }; /* columns that are transposed together: their lines stay in the cache */

typedef uint64_t pair64 __attribute__((vector_size(16)));
typedef uint32_t quad32 __attribute__((vector_size(16)));

/* Inlined with a constant size, so that each memcpy becomes one load or store. */
INLINE void pack_elements(size_t size, const struct tile *tile, ptrdiff_t first_column, char *to)
{
    const ptrdiff_t row_bytes = tile->columns * (ptrdiff_t)size;
    for (ptrdiff_t r = 0; r < tile->rows; r++) {
        const char *row = tile->data + r * tile->row_step;
        for (ptrdiff_t c = first_column; c < tile->columns; c++) {
            memcpy(to + r * row_bytes + c * (ptrdiff_t)size, row + c * tile->column_step, size);
        }
    }
}

/* Two rows of two columns that lie next to each other row by row. */
INLINE void transpose_2x2(const char *from, ptrdiff_t column_step, char *to, ptrdiff_t row_bytes)
{
    pair64 a, b;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + column_step, sizeof b);
    const pair64 first = __builtin_shufflevector(a, b, 0, 2);
    const pair64 second = __builtin_shufflevector(a, b, 1, 3);
    memcpy(to, &first, sizeof first);
    memcpy(to + row_bytes, &second, sizeof second);
}

INLINE void transpose_4x4(const char *from, ptrdiff_t column_step, char *to, ptrdiff_t row_bytes)
{
    quad32 column[4];
    for (int c = 0; c < 4; c++) {
        memcpy(&column[c], from + c * column_step, sizeof column[c]);
    }
    const quad32 top_01 = __builtin_shufflevector(column[0], column[1], 0, 4, 1, 5);
    const quad32 top_23 = __builtin_shufflevector(column[2], column[3], 0, 4, 1, 5);
    const quad32 end_01 = __builtin_shufflevector(column[0], column[1], 2, 6, 3, 7);
    const quad32 end_23 = __builtin_shufflevector(column[2], column[3], 2, 6, 3, 7);
    const quad32 row[4] = {
        __builtin_shufflevector(top_01, top_23, 0, 1, 4, 5),
        __builtin_shufflevector(top_01, top_23, 2, 3, 6, 7),
        __builtin_shufflevector(end_01, end_23, 0, 1, 4, 5),
        __builtin_shufflevector(end_01, end_23, 2, 3, 6, 7),
    };
    for (int r = 0; r < 4; r++) {
        memcpy(to + r * row_bytes, &row[r], sizeof row[r]);
    }
}

/* Transposes what divides into blocks of `block` by `block` elements, and copies the rest. */
INLINE void transpose_blocks(size_t size, int block,
                             void (*transpose)(const char *, ptrdiff_t, char *, ptrdiff_t),
                             const struct tile *tile, char *to)
{
    const ptrdiff_t row_bytes = tile->columns * (ptrdiff_t)size;
    const ptrdiff_t rows = tile->rows / block * block, columns = tile->columns / SIDE * SIDE;
    for (ptrdiff_t c = 0; c < columns; c += SIDE) {
        for (ptrdiff_t r = 0; r < rows; r += block) {
            for (ptrdiff_t k = c; k < c + SIDE; k += block) {
                transpose(tile->data + r * (ptrdiff_t)size + k * tile->column_step,
                          tile->column_step, to + r * row_bytes + k * (ptrdiff_t)size, row_bytes);
            }
        }
    }
    struct tile rest = *tile;
    pack_elements(size, &rest, columns, to);
    rest.data += rows * (ptrdiff_t)size;
    rest.rows -= rows;
    pack_elements(size, &rest, 0, to + rows * row_bytes);
}

static void pack_rows(size_t row_bytes, const struct tile *tile, char *to)
{
    for (ptrdiff_t r = 0; r < tile->rows; r++) {
        memcpy(to + r * (ptrdiff_t)row_bytes, tile->data + r * tile->row_step, row_bytes);
    }
}

void tile_pack(size_t item_size, const struct tile *tile, char *to)
{
    if (tile->column_step == (ptrdiff_t)item_size) {
        pack_rows((size_t)tile->columns * item_size, tile, to);
        return;
    }
    const bool transposed = tile->row_step == (ptrdiff_t)item_size;
    switch (item_size) {
    case 1:
        pack_elements(1, tile, 0, to);
        break;
    case 2:
        pack_elements(2, tile, 0, to);
        break;
    case 4:
        if (transposed) {
            transpose_blocks(4, 4, transpose_4x4, tile, to);
        } else {
            pack_elements(4, tile, 0, to);
        }
        break;
    case 8:
        if (transposed) {
            transpose_blocks(8, 2, transpose_2x2, tile, to);
        } else {
            pack_elements(8, tile, 0, to);
        }
        break;
    default:
        pack_elements(item_size, tile, 0, to);
    }
}
