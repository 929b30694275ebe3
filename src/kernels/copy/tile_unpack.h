/* Unpacking to two-dimensional strided operands; a test for infinities and NaNs. */
#ifndef NUMC_TILE_UNPACK_H
#define NUMC_TILE_UNPACK_H

#include "tile_pack.h"

/* The inverse of tile_pack: tile->data is contiguous, the steps are those of `to`. */
void tile_unpack(size_t item_size, const struct tile *tile, char *to);

/* Whether none of n contiguous floats of 2, 4 or 8 bytes is infinite or a NaN. */
bool floats_are_finite(size_t size, const char *data, ptrdiff_t n);

#endif
