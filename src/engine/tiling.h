/* How a call over operands in several dimensions is cut into tiles. */
#ifndef NUMC_TILING_H
#define NUMC_TILING_H

#include "nested_operands.h"

/* A tile reaches over the last two axes; over three where all of these are short. */
enum { TILE_AXES = 3 };

struct tiling {
    struct elementwise *loop;
    const struct nested *nested;
    /* Inputs, or a mask, that are copied, or converted, for each tile; of those that are packed once, a single
     * row. Never the output. */
    bool packed[PIECES_MOST_OPERANDS], packed_once[PIECES_MOST_OPERANDS];
    bool joined;       /* the rows of a tile are one, or those of each plane: */
    bool planes_apart; /* an input lies closest along the planes, which do not follow each other */
    /* A tile's, at most. Several planes only if their rows are joined, or nothing is packed. */
    ptrdiff_t planes, rows, columns;
    /* Tiles by axis, the fastest first: those that follow each other in the output. */
    int steps;
    struct tile_step {
        int axis;
        ptrdiff_t tiles, elements; /* elements of one along the axis */
    } step[NESTED_MOST_AXES];
    ptrdiff_t tiles;
};

/* Whether so few elements are converted that all operands are gathered first, for one call of the loop for each TILE_AXES
 * of them, in the order in which the output lies, without gaps. */
bool tiling_is_whole(const struct elementwise *loop, const struct nested *nested);

/* Puts the axes in order, at least TILE_AXES of them, and cuts. */
void tiling_make(struct elementwise *loop, struct nested *nested, struct tiling *tiling);

static inline ptrdiff_t tiling_elements(const struct tiling *tiling)
{
    return tiling->planes * tiling->rows * tiling->columns;
}

/* Where a tile begins, and its planes, rows and columns. */
void tiling_find(const struct tiling *tiling, ptrdiff_t index, char *data[],
                 ptrdiff_t extent[TILE_AXES]);

#endif
