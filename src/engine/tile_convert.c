/* A conversion is called as seldom as possible: rows of a few elements, and those that lie across, are packed
 * as they are before they are converted. */
#include "tile_convert.h"

#include "kernels/sizes.h"
#include "kernels/vector.h"

enum {
    SCRATCH_BYTES = 4096,
    /* Longer rows are converted one by one. `python benchmarks/random_calls.py` */
    PACKED_BELOW_COLUMNS = 64,
};

static void convert_rows(const struct tile_conversion *conversion, const struct tile *tile,
                         char *to)
{
    const ptrdiff_t row_bytes = tile->columns * (ptrdiff_t)conversion->to_size;
    for (ptrdiff_t r = 0; r < tile->rows; r++) {
        conversion->convert(tile->data + r * tile->row_step, tile->column_step, to + r * row_bytes,
                            tile->columns);
    }
}

/* Some rows at a time. */
static void convert_packed(const struct tile_conversion *conversion, const struct tile *tile,
                           ptrdiff_t most_rows, char *to)
{
    _Alignas(LINE_BYTES) char packed[SCRATCH_BYTES];
    const ptrdiff_t size = (ptrdiff_t)conversion->from_size;
    const ptrdiff_t row_bytes = tile->columns * (ptrdiff_t)conversion->to_size;
    struct tile part = *tile;
    for (ptrdiff_t r = 0; r < tile->rows; r += part.rows) {
        part.data = tile->data + r * tile->row_step;
        part.rows = size_min(most_rows, tile->rows - r);
        tile_pack(conversion->from_size, &part, packed);
        conversion->convert(packed, size, to + r * row_bytes, part.rows * part.columns);
    }
}

/* Each element once, however often it is repeated along its row. */
static void convert_columns(const struct tile_conversion *conversion, const struct tile *tile,
                            char *to)
{
    _Alignas(LINE_BYTES) char converted[SCRATCH_BYTES];
    const ptrdiff_t size = (ptrdiff_t)conversion->to_size;
    struct tile part = {converted, 0, tile->columns, size, 0};
    for (ptrdiff_t r = 0; r < tile->rows; r += part.rows) {
        part.rows = size_min(SCRATCH_BYTES / size, tile->rows - r);
        conversion->convert(tile->data + r * tile->row_step, tile->row_step, converted, part.rows);
        tile_pack(conversion->to_size, &part, to + r * tile->columns * size);
    }
}

void tile_convert(const struct tile_conversion *conversion, const struct tile *tile, char *to)
{
    const ptrdiff_t size = (ptrdiff_t)conversion->from_size;
    const ptrdiff_t most_rows = SCRATCH_BYTES / (tile->columns * size);
    const bool lies_across = tile->row_step == size && tile_has_vectors((size_t)size, most_rows) &&
                             tile_has_vectors((size_t)size, tile->rows);
    if (tile->rows > 1 && tile->row_step == 0) {
        conversion->convert(tile->data, tile->column_step, to, tile->columns);
        tile_repeat_row((size_t)tile->columns * conversion->to_size, tile->rows, to);
    } else if (tile->row_step == tile->columns * tile->column_step) {
        conversion->convert(tile->data, tile->column_step, to, tile->rows * tile->columns);
    } else if (tile->column_step == 0) {
        convert_columns(conversion, tile, to);
    } else if (most_rows > 1 && (tile->columns < PACKED_BELOW_COLUMNS || lies_across)) {
        convert_packed(conversion, tile, most_rows, to);
    } else {
        convert_rows(conversion, tile, to);
    }
}
