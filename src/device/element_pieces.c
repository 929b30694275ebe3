#include "element_pieces.h"

#include "kernels/copy/tile_pack.h"
#include "kernels/copy/tile_unpack.h"
#include "resources.h"

#include <string.h>

enum { ROUND_RANGE = 64, LEAST_PIECE_BYTES = 64 << 10 };

void element_pieces_make(struct element_pieces *pieces, const struct elementwise_work *work,
                         ptrdiff_t bytes)
{
    const ptrdiff_t size = (ptrdiff_t)work->type.size;
    const ptrdiff_t wanted = bytes < LEAST_PIECE_BYTES ? LEAST_PIECE_BYTES : bytes;
    const ptrdiff_t most = (wanted < SLOT_BYTES ? wanted : SLOT_BYTES) / size;
    ptrdiff_t within = 1;
    int axis = work->axes - 1;
    while (axis > 0 && within * work->axis[axis].n <= most) {
        within *= work->axis[axis--].n;
    }
    const ptrdiff_t n = work->axis[axis].n;
    ptrdiff_t range = most / within < n ? most / within : n;
    if (range > ROUND_RANGE) {
        range -= range % ROUND_RANGE; /* operands of all pieces are aligned alike */
    }
    *pieces = (struct element_pieces){
        .work = work, .axis = axis, .range = range, .ranges = (n + range - 1) / range};
    pieces->count = pieces->ranges;
    for (int i = 0; i < axis; i++) {
        pieces->count *= work->axis[i].n;
    }
}

void element_pieces_get(const struct element_pieces *pieces, ptrdiff_t index,
                        struct elementwise_work *work)
{
    const struct elementwise_work *whole = pieces->work;
    const ptrdiff_t first = index % pieces->ranges * pieces->range;
    const ptrdiff_t left = whole->axis[pieces->axis].n - first;
    *work = *whole;
    work->axes = whole->axes - pieces->axis;
    memmove(work->axis, whole->axis + pieces->axis, (size_t)work->axes * sizeof *work->axis);
    work->axis[0].n = left < pieces->range ? left : pieces->range;
    ptrdiff_t place = first;
    index /= pieces->ranges;
    for (int i = pieces->axis; i >= 0; i--) {
        for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
            if (work->at[op] != 0) {
                work->at[op] += (device_address)(place * whole->axis[i].step[op]);
            }
        }
        if (i > 0) {
            place = index % whole->axis[i - 1].n;
            index /= whole->axis[i - 1].n;
        }
    }
}

/* ---- between operands and slots ---- */

/* The axes of an operand along which it is not repeated, as few as possible; the innermost last. */
struct operand_axes {
    int count;
    struct {
        ptrdiff_t n, step;
    } axis[ELEMENTWISE_MOST_AXES];
};

static void read_axes(const struct elementwise_work *work, int operand, struct operand_axes *axes)
{
    axes->count = 0;
    for (int i = 0; i < work->axes; i++) {
        const ptrdiff_t n = work->axis[i].n, step = work->axis[i].step[operand];
        if (n == 1 || step == 0) {
            continue;
        }
        if (axes->count > 0 && axes->axis[axes->count - 1].step == n * step) {
            axes->axis[axes->count - 1].n *= n;
        } else {
            axes->axis[axes->count++].n = n;
        }
        axes->axis[axes->count - 1].step = step;
    }
}

/* The two innermost axes of an operand, from `data` on. */
static struct tile tile_of(const struct operand_axes *axes, size_t size, const char *data)
{
    const int last = axes->count - 1;
    struct tile tile = {.data = data, .rows = 1, .columns = 1, .column_step = (ptrdiff_t)size};
    if (last >= 0) {
        tile.columns = axes->axis[last].n;
        tile.column_step = axes->axis[last].step;
    }
    if (last >= 1) {
        tile.rows = axes->axis[last - 1].n;
        tile.row_step = axes->axis[last - 1].step;
    }
    return tile;
}

/* Steps to the next tile; false after the last one. */
static bool next_tile(const struct operand_axes *axes, ptrdiff_t index[], const char **data)
{
    for (int i = axes->count - 3; i >= 0; i--) {
        *data += axes->axis[i].step;
        if (++index[i] < axes->axis[i].n) {
            return true;
        }
        *data -= axes->axis[i].n * axes->axis[i].step;
        index[i] = 0;
    }
    return false;
}

static void pack_tile(const struct tile *tile, size_t size, char *to)
{
    if (tile->column_step != (ptrdiff_t)size) {
        tile_pack(size, tile, to);
        return;
    }
    const size_t row = (size_t)tile->columns * size;
    for (ptrdiff_t r = 0; r < tile->rows; r++) {
        memcpy(to + (size_t)r * row, tile->data + r * tile->row_step, row);
    }
}

void element_piece_pack(const struct elementwise_work *piece, int operand, char *slot)
{
    const size_t size = piece->type.size;
    const char *data = (const char *)piece->at[operand];
    ptrdiff_t index[ELEMENTWISE_MOST_AXES] = {0};
    struct operand_axes axes;
    read_axes(piece, operand, &axes);
    do {
        const struct tile tile = tile_of(&axes, size, data);
        pack_tile(&tile, size, slot);
        slot += (size_t)(tile.rows * tile.columns) * size;
    } while (next_tile(&axes, index, &data));
}

void element_piece_unpack(const struct elementwise_work *piece, const char *slot)
{
    const size_t size = piece->type.size;
    const char *data = (const char *)piece->at[ELEMENTWISE_INPUTS];
    ptrdiff_t index[ELEMENTWISE_MOST_AXES] = {0};
    struct operand_axes axes;
    read_axes(piece, ELEMENTWISE_INPUTS, &axes);
    do {
        struct tile tile = tile_of(&axes, size, data);
        const size_t bytes = (size_t)(tile.rows * tile.columns) * size;
        tile.data = slot;
        if (axes.count <= 1 && tile.column_step == (ptrdiff_t)size) {
            memcpy((char *)data, slot, bytes);
        } else {
            tile_unpack(size, &tile, (char *)data);
        }
        slot += bytes;
    } while (next_tile(&axes, index, &data));
}

void element_piece_place(struct elementwise_work *work, int operand, const char *slot)
{
    ptrdiff_t step = (ptrdiff_t)work->type.size;
    work->at[operand] = device_address_of(slot);
    for (int i = work->axes - 1; i >= 0; i--) {
        struct elementwise_axis *axis = &work->axis[i];
        if (axis->n > 1 && axis->step[operand] != 0) {
            axis->step[operand] = step;
            step *= axis->n;
        }
    }
}

/* ---- axes ---- */

static bool are_one(const struct elementwise_axis *outer, const struct elementwise_axis *inner)
{
    bool one = true;
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        one = one && outer->step[op] == inner->n * inner->step[op];
    }
    return one;
}

void element_axes_join(struct elementwise_work *work)
{
    int count = 0;
    for (int i = 0; i < work->axes; i++) {
        const struct elementwise_axis axis = work->axis[i];
        if (count > 0 && (axis.n == 1 || work->axis[count - 1].n == 1)) {
            work->axis[count - 1] = axis.n == 1 ? work->axis[count - 1] : axis;
        } else if (count > 0 && are_one(&work->axis[count - 1], &axis)) {
            const ptrdiff_t n = work->axis[count - 1].n * axis.n;
            work->axis[count - 1] = axis;
            work->axis[count - 1].n = n;
        } else {
            work->axis[count++] = axis;
        }
    }
    work->axes = count;
}
