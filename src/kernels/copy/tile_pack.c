/* Packs the elements of a strided tile. */
#include "tile_pack.h"

#include "transpose.h"

#include <stdlib.h>

enum {
    SIDE = 8, /* columns that are transposed together: their lines stay in the cache */
    VECTOR = 16,
    MOST_IN_LINES = 512, /* bytes of a row */
    COLUMNS = 96,        /* whose lines stay in the cache while rows are packed */
};

/* Along the side where elements are closer, but not in rows of a few: a loop takes as long to begin and to end.
 * Inlined with a constant size, so that each memcpy becomes one load or store. */
INLINE void pack_lines(size_t size, ptrdiff_t lines, ptrdiff_t n, const char *from,
                       ptrdiff_t line_step, ptrdiff_t step, char *to, ptrdiff_t to_line,
                       ptrdiff_t to_step)
{
    for (ptrdiff_t line = 0; line < lines; line++) {
        const char *next = from + line * line_step;
        char *to_next = to + line * to_line;
        _Pragma("GCC unroll 4") for (ptrdiff_t i = 0; i < n; i++)
        {
            memcpy(to_next, next, size);
            to_next += to_step;
            next += step;
        }
    }
}

/* Down many columns, in which elements are closer, but lie apart, too: along rows that stay in the cache, so that each
 * line is written once, not for each of its columns. */
INLINE void pack_columns(size_t size, const struct tile *tile, char *to, ptrdiff_t to_row)
{
    const ptrdiff_t item = (ptrdiff_t)size, step = tile->column_step;
    for (ptrdiff_t first = 0; first < tile->columns; first += COLUMNS) {
        const ptrdiff_t left = tile->columns - first;
        pack_lines(size, tile->rows, left < COLUMNS ? left : COLUMNS, tile->data + first * step,
                   tile->row_step, step, to + first * item, to_row, item);
    }
}

INLINE void pack_elements(size_t size, const struct tile *tile, char *to, ptrdiff_t to_row)
{
    const ptrdiff_t item = (ptrdiff_t)size;
    const bool down = tile->columns < tile->rows &&
                      (tile->columns < SIDE || labs(tile->row_step) < labs(tile->column_step));
    if (tile->row_step == tile->columns * tile->column_step && to_row == tile->columns * item) {
        pack_lines(size, 1, tile->rows * tile->columns, tile->data, 0, tile->column_step, to, 0,
                   item);
    } else if (down && tile->columns >= SIDE) {
        pack_columns(size, tile, to, to_row);
    } else if (down) {
        pack_lines(size, tile->columns, tile->rows, tile->data, tile->column_step, tile->row_step,
                   to, item, to_row);
    } else {
        pack_lines(size, tile->rows, tile->columns, tile->data, tile->row_step, tile->column_step,
                   to, to_row, item);
    }
}

/* Rows of one element each, repeated: vectors of it, of which the last may overlap the one before. */
INLINE void pack_repeated(size_t size, const struct tile *tile, char *to, ptrdiff_t to_row)
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
            _Pragma("GCC unroll 4") for (ptrdiff_t i = 0; i + VECTOR < row_bytes; i += VECTOR)
            {
                memcpy(to + i, vector, VECTOR);
            }
            memcpy(to + row_bytes - VECTOR, vector, VECTOR);
        }
        to += to_row;
    }
}

/* `side` columns, in blocks of `block` by `block` elements, of which the last ones may overlap those before.
 * Both are constants where this is inlined: fewer instructions keep more cache misses in flight. */
INLINE void transpose_columns(size_t size, int block, int side,
                              void (*transpose)(const char *, ptrdiff_t, char *, ptrdiff_t),
                              const struct tile *tile, ptrdiff_t first, char *to, ptrdiff_t to_row)
{
    const ptrdiff_t step = tile->column_step;
    const char *from = tile->data + first * step;
    to += first * (ptrdiff_t)size;
    ptrdiff_t r = 0;
    for (; r + block <= tile->rows; r += block) {
        for (int c = 0; c < side; c += block) {
            transpose(from + r * (ptrdiff_t)size + c * step, step,
                      to + r * to_row + c * (ptrdiff_t)size, to_row);
        }
    }
    if (r < tile->rows) {
        r = tile->rows - block;
        for (int c = 0; c < side; c += block) {
            transpose(from + r * (ptrdiff_t)size + c * step, step,
                      to + r * to_row + c * (ptrdiff_t)size, to_row);
        }
    }
}

INLINE void transpose_blocks(size_t size, int block,
                             void (*transpose)(const char *, ptrdiff_t, char *, ptrdiff_t),
                             const struct tile *tile, char *to, ptrdiff_t to_row)
{
    if (tile->rows < block || tile->columns < block) {
        pack_elements(size, tile, to, to_row);
        return;
    }
    const int side = tile->columns < SIDE ? block : SIDE;
    for (ptrdiff_t next = 0; next < tile->columns; next += side) {
        const ptrdiff_t first = next + side <= tile->columns ? next : tile->columns - side;
        if (side == SIDE) {
            transpose_columns(size, block, SIDE, transpose, tile, first, to, to_row);
        } else {
            transpose_columns(size, block, block, transpose, tile, first, to, to_row);
        }
    }
}

INLINE void pack_short_rows(size_t half, size_t row_bytes, const struct tile *tile, char *to,
                            ptrdiff_t to_row)
{
    for (ptrdiff_t r = 0; r < tile->rows; r++) {
        copy_ends(half, row_bytes, tile->data + r * tile->row_step, to + r * to_row);
    }
}

/* At least one line; the last one may overlap the one before. memcpy() takes twice as long on a Zen 3. */
INLINE void copy_in_lines(size_t bytes, const char *from, char *to)
{
    for (size_t at = 0; at + LINE_BYTES <= bytes; at += LINE_BYTES) {
        memcpy(to + at, from + at, LINE_BYTES);
    }
    memcpy(to + bytes - LINE_BYTES, from + bytes - LINE_BYTES, LINE_BYTES);
}

static void pack_rows(size_t row_bytes, const struct tile *tile, char *to, ptrdiff_t to_row)
{
    const bool follow = to_row == (ptrdiff_t)row_bytes;
    if (follow && tile->row_step == to_row) {
        memcpy(to, tile->data, (size_t)tile->rows * row_bytes);
    } else if (follow && tile->row_step == 0) {
        memcpy(to, tile->data, row_bytes);
        tile_repeat_row(row_bytes, tile->rows, to);
    } else if (row_bytes < 2) {
        pack_short_rows(1, row_bytes, tile, to, to_row);
    } else if (row_bytes <= 4) {
        pack_short_rows(2, row_bytes, tile, to, to_row);
    } else if (row_bytes <= 8) {
        pack_short_rows(4, row_bytes, tile, to, to_row);
    } else if (row_bytes <= 16) {
        pack_short_rows(8, row_bytes, tile, to, to_row);
    } else if (row_bytes <= 32) {
        pack_short_rows(16, row_bytes, tile, to, to_row);
    } else if (row_bytes <= 64) {
        pack_short_rows(32, row_bytes, tile, to, to_row);
    } else if (row_bytes <= 128) {
        pack_short_rows(64, row_bytes, tile, to, to_row);
    } else if (row_bytes <= MOST_IN_LINES) {
        for (ptrdiff_t r = 0; r < tile->rows; r++) {
            copy_in_lines(row_bytes, tile->data + r * tile->row_step, to + r * to_row);
        }
    } else {
        for (ptrdiff_t r = 0; r < tile->rows; r++) {
            memcpy(to + r * to_row, tile->data + r * tile->row_step, row_bytes);
        }
    }
}

/* Inlined for each size of an element. */
INLINE void pack_items(size_t size, const struct tile *tile, char *to, ptrdiff_t to_row)
{
    if (tile->column_step == 0) {
        pack_repeated(size, tile, to, to_row);
    } else if (tile->row_step != (ptrdiff_t)size || size == VECTOR) {
        pack_elements(size, tile, to, to_row);
    } else if (size == 1) {
        transpose_blocks(1, 8, transpose_8x8_of_8_bits, tile, to, to_row);
    } else if (size == 2) {
        transpose_blocks(2, 8, transpose_8x8_of_16_bits, tile, to, to_row);
    } else if (size == 4) {
        transpose_blocks(4, 4, transpose_4x4_of_32_bits, tile, to, to_row);
    } else {
        transpose_blocks(8, 2, transpose_2x2_of_64_bits, tile, to, to_row);
    }
}

void tile_repeat_row(size_t row_bytes, ptrdiff_t rows, char *to)
{
    enum { REPEATED_BYTES = 4096 }; /* which are read from the nearest cache */
    const size_t all = (size_t)rows * row_bytes;
    for (size_t done = row_bytes, block = done; done < all; done += block) {
        block = block < REPEATED_BYTES ? done : block;
        memcpy(to + done, to, block < all - done ? block : all - done);
    }
}

bool tile_has_vectors(size_t item_size, ptrdiff_t rows)
{
    return item_size <= 2 ? rows >= 8 : item_size == 4 ? rows >= 4 : item_size == 8 && rows >= 2;
}

void tile_pack_rows(size_t item_size, const struct tile *tile, char *to, ptrdiff_t to_row)
{
    if (tile->column_step == (ptrdiff_t)item_size) {
        pack_rows((size_t)tile->columns * item_size, tile, to, to_row);
        return;
    }
    switch (item_size) {
    case 1:
        pack_items(1, tile, to, to_row);
        break;
    case 2:
        pack_items(2, tile, to, to_row);
        break;
    case 4:
        pack_items(4, tile, to, to_row);
        break;
    case 8:
        pack_items(8, tile, to, to_row);
        break;
    case VECTOR:
        pack_items(VECTOR, tile, to, to_row);
        break;
    default:
        pack_elements(item_size, tile, to, to_row);
    }
}
