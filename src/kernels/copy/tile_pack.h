/* Copies of elements in two dimensions to a place without gaps. */
#ifndef NUMC_TILE_PACK_H
#define NUMC_TILE_PACK_H

#include <stdbool.h>
#include <stddef.h>

/* Elements in two dimensions: (r, c) lies at data + r * row_step + c * column_step. */
struct tile {
    const char *data;
    ptrdiff_t rows, columns, row_step, column_step;
};

/* Copies them to `to`, row by row, without gaps. */
void tile_pack(size_t item_size, const struct tile *tile, char *to);

/* Whether so many rows, whose columns are without gaps, are enough to be transposed by vectors. */
bool tile_has_vectors(size_t item_size, ptrdiff_t rows);

#endif
