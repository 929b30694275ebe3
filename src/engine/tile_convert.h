/* Packs a tile of an operand whose dtype is not the loop's. */
#ifndef NUMC_TILE_CONVERT_H
#define NUMC_TILE_CONVERT_H

#include "kernels/copy/tile_pack.h"
#include "kernels/kernels.h"

/* How items of one size become those of another. */
struct tile_conversion {
    convert_elements *convert;
    size_t from_size, to_size;
};

/* Converts the elements to `to`, contiguous in row-major order. */
void tile_convert(const struct tile_conversion *conversion, const struct tile *tile, char *to);

#endif
