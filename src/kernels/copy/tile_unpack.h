/* Copies from a place without gaps to elements in two dimensions, and a look at floats. */
#ifndef NUMC_TILE_UNPACK_H
#define NUMC_TILE_UNPACK_H

#include "tile_pack.h"

/* The other way round: tile->data is without gaps, the steps are those of `to`. */
void tile_unpack(size_t item_size, const struct tile *tile, char *to);

/* Whether none of n floats of 2, 4 or 8 bytes, next to each other, is infinite or not a number. */
bool floats_are_finite(size_t size, const char *data, ptrdiff_t n);

#endif
