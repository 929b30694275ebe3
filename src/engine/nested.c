/* A call over operands in several dimensions: cut into tiles of the two innermost ones. Operands that
 * would make the loop go element by element, or in rows of a few, or whose dtype is not the loop's, are
 * packed tile by tile first. */
#include "nested.h"

#include "elementwise_cutoffs.h"
#include "kernels/vector.h"
#include "memory/pages.h"
#include "memory/workspace.h"
#include "sizes.h"
#include "tile_convert.h"

enum {
    MOST_INPUTS = PIECES_MOST_INPUTS,
    /* Packed tiles that fit here need no workspace; small, as threads may have little stack. */
    STACK_BYTES = 4096,
};

struct tiling {
    struct elementwise *loop;
    elementwise_kernel *kernel; /* NULL: the inner loop */
    const struct nested *nested;
    bool packed[MOST_INPUTS];
    bool joined;             /* the rows of a tile are one */
    ptrdiff_t rows, columns; /* of a tile */
    ptrdiff_t row_tiles, column_tiles, tiles;
    const char *new_output_end; /* NULL: the output's pages exist, or its tiles are scattered */
};

/* The packed operands of the tile that a thread computes. */
struct packed {
    char *tile[MOST_INPUTS]; /* NULL: there is no memory, the operand is read where it lies */
    const char *source[MOST_INPUTS]; /* of what is in `tile`; NULL: nothing */
    ptrdiff_t rows[MOST_INPUTS], columns[MOST_INPUTS];
    const char *populated_to; /* of a new output */
};

static void swap_axes(struct nested *nested, int a, int b)
{
    const struct nested_axis kept = nested->axis[a];
    nested->axis[a] = nested->axis[b];
    nested->axis[b] = kept;
}

/* The axis along which an operand lies closest; -1 if it does not vary at all. */
static int closest_axis(const struct nested *nested, int operand, int axes)
{
    int closest = -1;
    for (int i = axes - 1; i >= 0; i--) {
        const ptrdiff_t step = magnitude(nested->axis[i].step[operand]);
        if (nested->axis[i].n > 1 && step != 0 &&
            (closest < 0 || step < magnitude(nested->axis[closest].step[operand]))) {
            closest = i;
        }
    }
    return closest;
}

/* Whether the elements of a column lie next to each other, rather than those of a row. */
static bool lies_across(const struct elementwise *loop, const struct nested *nested, int in)
{
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    const ptrdiff_t size = (ptrdiff_t)loop->item_size[in];
    if (nested->convert[in] != NULL) {
        return magnitude(row->step[in]) < magnitude(column->step[in]) && row->step[in] != 0;
    }
    return magnitude(row->step[in]) == size && column->step[in] != 0 &&
           magnitude(column->step[in]) != size && row->n > 1;
}

/* Whether kernels can go along the rows once what lies across is packed: other operands lie along them,
 * or do not vary. */
static bool others_lie_along(const struct elementwise *loop, const struct nested *nested)
{
    for (int op = 0; op < loop->operands; op++) {
        const ptrdiff_t step = nested->axis[nested->axes - 1].step[op];
        const bool along = step == (ptrdiff_t)loop->item_size[op] || nested->convert[op] != NULL ||
                           (op < loop->inputs && step == 0);
        if (!along && !(op < loop->inputs && lies_across(loop, nested, op))) {
            return false;
        }
    }
    return true;
}

/* The output's closest axis becomes the last one, the closest of an input that lies across the one before
 * it, unless nothing can be packed and that input's lines stay in the cache until they are read again. */
static void order_axes(const struct elementwise *loop, struct nested *nested)
{
    const int last = nested->axes - 1, out = loop->inputs;
    const int of_output = closest_axis(nested, out, nested->axes);
    if (of_output >= 0) {
        swap_axes(nested, of_output, last);
    }
    const int second = closest_axis(nested, out, last);
    const ptrdiff_t lines = nested->axis[last].n * (second >= 0 ? nested->axis[second].n : 1);
    for (int in = 0; in < loop->inputs; in++) {
        const int across = closest_axis(nested, in, nested->axes);
        if (across >= 0 && across != last && nested->axis[last].step[in] != 0) {
            swap_axes(nested, across, last - 1);
            if (lines > UNPACKED_BELOW_LINES || others_lie_along(loop, nested)) {
                return;
            }
            swap_axes(nested, across, last - 1);
        }
    }
    if (second >= 0) {
        swap_axes(nested, second, last - 1);
    }
}

static bool is_joined(const struct nested *nested, int operand)
{
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    return row->step[operand] == column->n * column->step[operand];
}

/* Whether the rows of a tile become one. */
static bool joins_rows(const struct tiling *tiling)
{
    const struct elementwise *loop = tiling->loop;
    const struct nested *nested = tiling->nested;
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    const int out = loop->inputs;
    ptrdiff_t longest = JOIN_ROWS_BELOW_BYTES;
    for (int in = 0; in < loop->inputs; in++) {
        const ptrdiff_t size = (ptrdiff_t)loop->item_size[in], step = column->step[in];
        if (tiling->packed[in] || row->step[in] == 0) {
            continue;
        }
        if (nested->convert[in] == NULL && step != 0 && step != size) {
            longest = size_min(longest, JOIN_ROWS_BELOW_ELEMENTS_IF_STEPPED *
                                            (ptrdiff_t)loop->item_size[out]);
        } else if (!is_joined(nested, in)) {
            longest = size_min(longest, JOIN_ROWS_BELOW_BYTES_IF_PACKED);
        }
    }
    return row->n > 1 && is_joined(nested, out) &&
           column->n * (ptrdiff_t)loop->item_size[out] < longest;
}

static void cut_into_tiles(struct tiling *tiling, bool may_pack)
{
    const struct elementwise *loop = tiling->loop;
    const struct nested *nested = tiling->nested;
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    const int out = loop->inputs;
    const bool packs_across = may_pack && !nested->is_masked && others_lie_along(loop, nested);
    bool packs = false, across = !may_pack;
    size_t largest_item = loop->item_size[out];
    for (int in = 0; in < loop->inputs; in++) {
        const bool lies = lies_across(loop, nested, in);
        across = across || lies;
        tiling->packed[in] = lies && packs_across && tile_has_vectors(loop->item_size[in], row->n);
        largest_item = loop->item_size[in] > largest_item ? loop->item_size[in] : largest_item;
    }
    tiling->joined = may_pack && !nested->is_masked && joins_rows(tiling);
    for (int in = 0; in < loop->inputs; in++) {
        const ptrdiff_t size = (ptrdiff_t)loop->item_size[in];
        tiling->packed[in] =
            tiling->packed[in] ||
            (tiling->joined &&
             (nested->convert[in] != NULL || !(is_joined(nested, in) && column->step[in] == size)));
        packs = packs || tiling->packed[in];
    }
    const ptrdiff_t bytes = tiling->joined ? JOINED_TILE_BYTES : PACKED_TILE_BYTES;
    const ptrdiff_t most = packs || across ? bytes / (ptrdiff_t)largest_item : TILE_ELEMENTS;
    tiling->columns = size_min(column->n, tiling->joined || !(packs || across) ? most
                                          : packs                              ? PACKED_TILE_COLUMNS
                                                  : UNPACKED_TILE_COLUMNS);
    tiling->rows = size_min(row->n, most / tiling->columns);
    tiling->column_tiles = (column->n + tiling->columns - 1) / tiling->columns;
    tiling->row_tiles = (row->n + tiling->rows - 1) / tiling->rows;
    tiling->tiles = tiling->column_tiles * tiling->row_tiles;
    for (int i = 0; i < nested->axes - 2; i++) {
        tiling->tiles *= nested->axis[i].n;
    }
}

static int longest_axis(const struct nested *nested)
{
    int longest = nested->axes - 1;
    for (int i = 0; i < nested->axes; i++) {
        longest = nested->axis[i].n > nested->axis[longest].n ? i : longest;
    }
    return longest;
}

/* The longest axis becomes the last one, the output's closest one comes before it. */
static void order_axes_by_length(struct nested *nested, int out)
{
    const int last = nested->axes - 1;
    swap_axes(nested, longest_axis(nested), last);
    const int closest = closest_axis(nested, out, last);
    if (closest >= 0) {
        swap_axes(nested, closest, last - 1);
    }
}

/* Whether tiles or their rows are so small that a strided loop along the longest axis takes less time. */
static bool tiles_are_small(const struct tiling *tiling)
{
    const ptrdiff_t elements = tiling->rows * tiling->columns;
    const ptrdiff_t calls = tiling->joined ? 1 : tiling->rows;
    const ptrdiff_t longest = tiling->nested->axis[longest_axis(tiling->nested)].n;
    return TILE_NS + INNER_LOOP_NS * calls > elements + INNER_LOOP_NS * elements / longest;
}

/* Where a tile begins, and its size. */
static void find_tile(const struct tiling *tiling, ptrdiff_t index, char *data[], ptrdiff_t *rows,
                      ptrdiff_t *columns)
{
    const struct nested *nested = tiling->nested;
    ptrdiff_t coordinate[NESTED_MOST_AXES];
    coordinate[nested->axes - 1] = index % tiling->column_tiles * tiling->columns;
    index /= tiling->column_tiles;
    coordinate[nested->axes - 2] = index % tiling->row_tiles * tiling->rows;
    index /= tiling->row_tiles;
    for (int i = nested->axes - 3; i >= 0; i--) {
        coordinate[i] = index % nested->axis[i].n;
        index /= nested->axis[i].n;
    }
    for (int op = 0; op < tiling->loop->operands + nested->is_masked; op++) {
        data[op] = nested->data[op];
        for (int i = 0; i < nested->axes; i++) {
            data[op] += coordinate[i] * nested->axis[i].step[op];
        }
    }
    *rows = size_min(tiling->rows, nested->axis[nested->axes - 2].n - coordinate[nested->axes - 2]);
    *columns =
        size_min(tiling->columns, nested->axis[nested->axes - 1].n - coordinate[nested->axes - 1]);
}

/* Packs the tile of an input, unless it is there already. */
static void pack(const struct tiling *tiling, struct packed *packed, int in,
                 const struct tile *tile)
{
    if (packed->source[in] != tile->data || packed->rows[in] < tile->rows ||
        packed->columns[in] != tile->columns) {
        if (tiling->nested->convert[in] != NULL) {
            const struct tile_conversion conversion = {tiling->nested->convert[in],
                                                       tiling->nested->stored_size[in],
                                                       tiling->loop->item_size[in]};
            tile_convert(&conversion, tile, packed->tile[in]);
        } else {
            tile_pack(tiling->loop->item_size[in], tile, packed->tile[in]);
        }
        packed->source[in] = tile->data;
        packed->rows[in] = tile->rows;
        packed->columns[in] = tile->columns;
    }
}

/* `first` is the index of the first element, of calls along one axis. */
static void run_rows(const struct tiling *tiling, const struct pieces *pieces, char *data[],
                     const ptrdiff_t row_step[], const ptrdiff_t step[], ptrdiff_t first,
                     ptrdiff_t rows, ptrdiff_t n)
{
    const struct elementwise *loop = tiling->loop;
    const struct inner_loop_hooks *hooks = tiling->kernel == NULL ? loop->hooks : NULL;
    bool whole = !pieces->is_masked;
    for (int op = 0; op < loop->operands; op++) {
        whole = whole && pieces->convert[op] == NULL;
    }
    if (hooks != NULL) {
        hooks->before_chunk(tiling->nested->hook_data);
    }
    for (ptrdiff_t r = 0; r < rows; r++) {
        if (whole) {
            pieces_compute(pieces, data, step, n);
        } else {
            pieces_run(pieces, data, step, n);
        }
        for (int op = 0; op < loop->operands + pieces->is_masked; op++) {
            data[op] += row_step[op];
        }
    }
    if (hooks != NULL) {
        hooks->after_chunk(tiling->nested->hook_data, first);
    }
}

/* Populates the large pages that a tile of a new output reaches into. */
static void populate(const struct tiling *tiling, struct packed *packed, const char *first,
                     const char *end)
{
    if (tiling->new_output_end != NULL && end > packed->populated_to) {
        const ptrdiff_t to_page = LARGE_PAGE_BYTES - (ptrdiff_t)((uintptr_t)end % LARGE_PAGE_BYTES);
        const char *from = packed->populated_to > first ? packed->populated_to : first;
        packed->populated_to = end + size_min(to_page, tiling->new_output_end - end);
        pages_populate(from, packed->populated_to);
    }
}

/* Where a large new output ends whose tiles follow each other in memory; else NULL. */
static const char *find_new_output_end(const struct tiling *tiling)
{
    const struct nested *nested = tiling->nested;
    const int out = tiling->loop->inputs;
    ptrdiff_t bytes = (ptrdiff_t)tiling->loop->item_size[out];
    for (int i = nested->axes - 1; i >= 0; i--) {
        if (nested->axis[i].n > 1 && nested->axis[i].step[out] != bytes) {
            return NULL;
        }
        bytes *= nested->axis[i].n;
    }
    const bool follow = tiling->column_tiles == 1 || (nested->axes == 2 && nested->axis[0].n == 1);
    const char *first = nested->data[out];
    return bytes >= POPULATE_FROM_BYTES && follow && !pages_are_there(first, first + bytes)
               ? first + bytes
               : NULL;
}

static void run_tile(const struct tiling *tiling, struct packed *packed, ptrdiff_t index)
{
    const struct elementwise *loop = tiling->loop;
    const struct nested_axis *row = &tiling->nested->axis[tiling->nested->axes - 2],
                             *column = row + 1;
    char *data[PIECES_MOST_OPERANDS];
    ptrdiff_t row_step[PIECES_MOST_OPERANDS], step[PIECES_MOST_OPERANDS], rows, columns;
    bool joined = tiling->joined;
    struct pieces pieces = {
        .loop = loop,
        .kernel = tiling->kernel,
        .out_size = tiling->nested->stored_size[loop->inputs],
        .is_masked = tiling->nested->is_masked,
    };
    find_tile(tiling, index, data, &rows, &columns);
    const ptrdiff_t out_bytes = rows * columns * (ptrdiff_t)loop->item_size[loop->inputs];
    populate(tiling, packed, data[loop->inputs], data[loop->inputs] + out_bytes);
    for (int op = 0; op < loop->operands + pieces.is_masked; op++) {
        row_step[op] = row->step[op];
        step[op] = column->step[op];
    }
    pieces.convert[loop->inputs] = tiling->nested->convert[loop->inputs];
    for (int in = 0; in < loop->inputs; in++) {
        pieces.convert[in] = tiling->nested->convert[in];
        if (tiling->packed[in] && packed->tile[in] != NULL) {
            const struct tile tile = {data[in], rows, columns, row_step[in], step[in]};
            pack(tiling, packed, in, &tile);
            data[in] = packed->tile[in];
            step[in] = (ptrdiff_t)loop->item_size[in];
            row_step[in] = columns * step[in];
            pieces.convert[in] = NULL;
        } else if (tiling->packed[in]) {
            joined = false;
        }
    }
    if (joined) {
        columns *= rows;
        rows = 1;
    }
    run_rows(tiling, &pieces, data, row_step, step, index * tiling->columns, rows, columns);
}

static size_t packed_bytes(const struct tiling *tiling, int in)
{
    const size_t bytes = (size_t)(tiling->rows * tiling->columns) * tiling->loop->item_size[in];
    return tiling->packed[in] ? (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES : 0;
}

static void run_tiles(void *context, struct chunks *chunks)
{
    const struct tiling *tiling = context;
    _Alignas(LINE_BYTES) char on_stack[STACK_BYTES];
    struct packed packed = {.populated_to = NULL};
    size_t bytes = 0;
    for (int in = 0; in < tiling->loop->inputs; in++) {
        bytes += packed_bytes(tiling, in);
    }
    const bool is_small = bytes <= sizeof on_stack;
    const struct workspace workspace =
        is_small ? (struct workspace){NULL, 0} : workspace_take(bytes);
    char *memory = is_small ? on_stack : workspace.data;
    for (int in = 0; in < tiling->loop->inputs && memory != NULL; in++) {
        packed.tile[in] = memory;
        memory += packed_bytes(tiling, in);
    }
    ptrdiff_t first, end;
    while (chunks_take(chunks, &first, &end)) {
        for (ptrdiff_t i = first; i < end; i++) {
            run_tile(tiling, &packed, i);
        }
    }
    workspace_give_back(workspace);
}

/* The kernel for the steps that the rows of tiles have. */
static elementwise_kernel *choose_kernel(const struct tiling *tiling)
{
    const struct elementwise *loop = tiling->loop;
    ptrdiff_t step[PIECES_MOST_OPERANDS];
    bool packs = false;
    for (int op = 0; op < loop->operands; op++) {
        const bool is_packed = op < loop->inputs && tiling->packed[op];
        packs = packs || (is_packed && !tiling->joined);
        step[op] = is_packed || tiling->nested->convert[op] != NULL
                       ? (ptrdiff_t)loop->item_size[op]
                       : tiling->nested->axis[tiling->nested->axes - 1].step[op];
    }
    /* See elementwise_plan_kernel(). */
    const ptrdiff_t row_bytes = tiling->columns * (ptrdiff_t)loop->item_size[loop->inputs];
    const bool streams = tiling->nested->streams && tiling->new_output_end == NULL &&
                         tiling->nested->convert[loop->inputs] == NULL &&
                         !(packs && row_bytes < STREAMED_FROM_ROW_BYTES);
    return elementwise_choose(loop, step, streams);
}

void nested_run(struct elementwise *loop, struct nested *nested, bool is_tiny)
{
    while (nested->axes < 2) {
        nested->axis[nested->axes++] = nested->axis[0];
        nested->axis[0] = (struct nested_axis){.n = 1};
    }
    order_axes(loop, nested);
    struct tiling tiling = {.loop = loop, .nested = nested};
    cut_into_tiles(&tiling, true);
    if (tiles_are_small(&tiling)) {
        order_axes_by_length(nested, loop->inputs);
        cut_into_tiles(&tiling, false);
    }
    tiling.new_output_end = nested->output_is_new && !is_tiny ? find_new_output_end(&tiling) : NULL;
    tiling.kernel = choose_kernel(&tiling);
    if (is_tiny) {
        run_tiles(&tiling, &(struct chunks){.end = tiling.tiles});
        return;
    }
    const struct shared_work work = {
        .loop = loop,
        .hook_data = loop->kernel == NULL ? nested->hook_data : NULL,
        .run = run_tiles,
        .context = &tiling,
        .units = tiling.tiles,
        .elements_of_unit = tiling.rows * tiling.columns,
        .timed = 1,
        .block = 1,
    };
    elementwise_share_out(&work);
}
