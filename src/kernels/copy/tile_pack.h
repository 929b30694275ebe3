/* Packing of two-dimensional strided operands. */
#ifndef NUMC_TILE_PACK_H
#define NUMC_TILE_PACK_H

#include <stdbool.h>
#include <stddef.h>

/* Elements in two dimensions: (r, c) lies at data + r * row_step + c * column_step. */
struct tile {
    const char *data;
    ptrdiff_t rows, columns, row_step, column_step;
};

/* Copies them to `to`: contiguous rows, `to_row` bytes apart. */
void tile_pack_rows(size_t item_size, const struct tile *tile, char *to, ptrdiff_t to_row);

/* Copies them to `to`, contiguous in row-major order. */
static inline void tile_pack(size_t item_size, const struct tile *tile, char *to)
{
    tile_pack_rows(item_size, tile, to, tile->columns * (ptrdiff_t)item_size);
}

/* Copies the first row of a packed tile to the others. */
void tile_repeat_row(size_t row_bytes, ptrdiff_t rows, char *to);

/* Whether a tile of so many rows, with contiguous columns, is transposed by vectors. */
bool tile_has_vectors(size_t item_size, ptrdiff_t rows);

#endif
