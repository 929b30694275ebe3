/* A conversion is called as seldom as possible: rows of a few elements, and those that lie across, are packed
 * as they are before they are converted. */
#include "tile_convert.h"

#include "kernels/sizes.h"
#include "kernels/vector.h"

enum {
    SCRATCH_BYTES = 4096,
    /* Longer rows are converted one by one. `python benchmarks/random_calls.py` */
    PACKED_BELOW_ROW_BYTES = 96,
    SCRATCH_COLUMNS = 32, /* of each of which a conversion gets many rows */
    NARROWED_COLUMNS = 8, /* which vectors transpose, at least */
};

static bool is_one_row(const struct tile *tile)
{
    return tile->row_step == tile->columns * tile->column_step;
}

/* To rows of `to_columns` elements. */
static void convert_rows(const struct tile_conversion *conversion, const struct tile *tile,
                         char *to, ptrdiff_t to_columns)
{
    const ptrdiff_t to_size = (ptrdiff_t)conversion->to_size;
    if (tile->columns == to_columns && is_one_row(tile)) {
        conversion->convert(tile->data, tile->column_step, to, tile->rows * tile->columns);
        return;
    }
    for (ptrdiff_t r = 0; r < tile->rows; r++) {
        conversion->convert(tile->data + r * tile->row_step, tile->column_step,
                            to + r * to_columns * to_size, tile->columns);
    }
}

/* Some rows at a time; of those that lie across, so few columns that whole lines of them are packed. */
static void convert_packed(const struct tile_conversion *conversion, const struct tile *tile,
                           bool lies_across, char *to)
{
    _Alignas(LINE_BYTES) char packed[SCRATCH_BYTES];
    const ptrdiff_t size = (ptrdiff_t)conversion->from_size;
    const ptrdiff_t to_size = (ptrdiff_t)conversion->to_size, most = SCRATCH_BYTES / size;
    const ptrdiff_t least_rows = lies_across ? size_min(LINE_BYTES / size, tile->rows) : 1;
    const ptrdiff_t columns = size_min(most / least_rows, tile->columns);
    struct tile part = *tile;
    for (ptrdiff_t r = 0; r < tile->rows; r += part.rows) {
        part.rows = size_min(most / columns, tile->rows - r);
        for (ptrdiff_t c = 0; c < tile->columns; c += part.columns) {
            part.columns = size_min(columns, tile->columns - c);
            part.data = tile->data + r * tile->row_step + c * tile->column_step;
            tile_pack(conversion->from_size, &part, packed);
            const struct tile rows = {packed, part.rows, part.columns, part.columns * size, size};
            convert_rows(conversion, &rows, to + (r * tile->columns + c) * to_size, tile->columns);
        }
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

/* Columns that become smaller: less is transposed after they are converted. */
static void convert_across(const struct tile_conversion *conversion, const struct tile *tile,
                           char *to)
{
    _Alignas(LINE_BYTES) char converted[SCRATCH_BYTES];
    const ptrdiff_t size = (ptrdiff_t)conversion->to_size;
    const ptrdiff_t columns = size_min(tile->columns, SCRATCH_COLUMNS);
    const ptrdiff_t most = size_min(SCRATCH_BYTES / size / columns, tile->rows);
    struct tile part = {converted, 0, 0, size, most * size};
    for (ptrdiff_t c = 0; c < tile->columns; c += part.columns) {
        part.columns = size_min(columns, tile->columns - c);
        for (ptrdiff_t r = 0; r < tile->rows; r += part.rows) {
            part.rows = size_min(most, tile->rows - r);
            const char *from = tile->data + r * tile->row_step + c * tile->column_step;
            for (ptrdiff_t i = 0; i < part.columns; i++) {
                conversion->convert(from + i * tile->column_step, tile->row_step,
                                    converted + i * part.column_step, part.rows);
            }
            tile_pack_rows(conversion->to_size, &part, to + (r * tile->columns + c) * size,
                           tile->columns * size);
        }
    }
}

void tile_convert(const struct tile_conversion *conversion, const struct tile *tile, char *to)
{
    const size_t size = conversion->from_size;
    /* Larger items are converted from where they lie in less time than it takes to transpose them. */
    const bool is_small = size <= sizeof(uint32_t), has_lines = tile->row_step == (ptrdiff_t)size;
    const bool lies_across = has_lines && is_small && tile_has_vectors(size, tile->rows);
    const bool narrows = has_lines && !is_small && conversion->to_size < size &&
                         tile->columns >= NARROWED_COLUMNS &&
                         tile_has_vectors(conversion->to_size, tile->rows);
    const bool is_short = tile->columns * (ptrdiff_t)size < PACKED_BELOW_ROW_BYTES;
    if (tile->rows > 1 && tile->row_step == 0) {
        conversion->convert(tile->data, tile->column_step, to, tile->columns);
        tile_repeat_row((size_t)tile->columns * conversion->to_size, tile->rows, to);
    } else if (tile->column_step == 0) {
        convert_columns(conversion, tile, to);
    } else if (narrows) {
        convert_across(conversion, tile, to);
    } else if (is_one_row(tile) || (tile->column_step != 0 && !is_short && !lies_across)) {
        convert_rows(conversion, tile, to, tile->columns);
    } else {
        convert_packed(conversion, tile, lies_across, to);
    }
}
