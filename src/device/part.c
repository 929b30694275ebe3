/* Gathers and scatters pieces of a stack of matrices. */
#include "part.h"

#include "kernels/copy/stream_copy.h"
#include "kernels/copy/tile_pack.h"
#include "kernels/copy/tile_unpack.h"

#include <string.h>

ptrdiff_t part_elements(const struct part *part)
{
    return part->batch * part->rows * part->columns;
}

bool part_is_contiguous(const struct part *part, size_t size)
{
    const ptrdiff_t row = part->columns * (ptrdiff_t)size;
    return (part->from.column_step == (ptrdiff_t)size || part->columns == 1) &&
           (part->from.row_step == row || part->rows == 1) &&
           (part->from.batch_step == part->rows * row || part->batch == 1);
}

/* The longest piece from `first` on that is a tile: of one matrix, a part of a row or whole rows. */
static struct tile next_tile(const struct part *part, ptrdiff_t first, ptrdiff_t end)
{
    const struct strided *from = &part->from;
    const ptrdiff_t line = first / part->columns, column = first % part->columns;
    const ptrdiff_t row = line % part->rows;
    struct tile tile = {
        .data = from->data + line / part->rows * from->batch_step + row * from->row_step +
                column * from->column_step,
        .rows = 1,
        .columns = part->columns - column,
        .row_step = from->row_step,
        .column_step = from->column_step,
    };
    if (tile.columns > end - first) {
        tile.columns = end - first;
    } else if (column == 0) {
        const ptrdiff_t whole = (end - first) / part->columns;
        tile.rows = whole < part->rows - row ? whole : part->rows - row;
    }
    return tile;
}

static void copy(char *to, const char *from, size_t bytes, bool cached)
{
    if (cached) {
        memcpy(to, from, bytes);
    } else {
        copy_past_cache(to, from, bytes);
    }
}

static void gather_tile(const struct tile *tile, size_t size, char *to, bool cached)
{
    const size_t row_bytes = (size_t)tile->columns * size;
    if (tile->column_step != (ptrdiff_t)size && tile->columns > 1) {
        tile_pack(size, tile, to);
    } else if (tile->row_step == (ptrdiff_t)row_bytes) {
        copy(to, tile->data, (size_t)tile->rows * row_bytes, cached);
    } else {
        for (ptrdiff_t r = 0; r < tile->rows; r++) {
            copy(to + (size_t)r * row_bytes, tile->data + r * tile->row_step, row_bytes, cached);
        }
    }
}

void part_gather(const struct part *part, size_t size, ptrdiff_t first, ptrdiff_t end, char *to,
                 bool cached)
{
    if (part_is_contiguous(part, size)) {
        copy(to, part->from.data + first * (ptrdiff_t)size, (size_t)(end - first) * size, cached);
        return;
    }
    while (first < end) {
        const struct tile tile = next_tile(part, first, end);
        gather_tile(&tile, size, to, cached);
        to += (size_t)(tile.rows * tile.columns) * size;
        first += tile.rows * tile.columns;
    }
}

void part_scatter(const struct part *part, size_t size, ptrdiff_t first, ptrdiff_t end,
                  const char *from)
{
    if (part_is_contiguous(part, size)) {
        memcpy(part->from.data + first * (ptrdiff_t)size, from, (size_t)(end - first) * size);
        return;
    }
    while (first < end) {
        struct tile tile = next_tile(part, first, end);
        char *to = (char *)tile.data;
        tile.data = from;
        tile_unpack(size, &tile, to);
        from += (size_t)(tile.rows * tile.columns) * size;
        first += tile.rows * tile.columns;
    }
}
