/* A call over operands in several dimensions, tile by tile. Operands that would make the loop go element by element, or
 * in rows of a few, or whose dtype is not the loop's, are packed tile by tile first. */
#include "nested.h"

#include "elementwise_cutoffs.h"
#include "kernels/copy/copy_items.h"
#include "kernels/copy/find_bool.h"
#include "kernels/sizes.h"
#include "kernels/vector.h"
#include "memory/pages.h"
#include "memory/workspace.h"
#include "tile_convert.h"
#include "tiling.h"

enum {
    /* Packed tiles that fit here need no workspace; small, as threads may have little stack. */
    STACK_BYTES = 4096,
    /* Of an operand's row that is prefetched, at most, and at least from one row to the next; how far ahead.
     * `python benchmarks/random_calls.py` */
    PREFETCHED_ROW_BYTES = 2048,
    PREFETCHED_ROWS = 2,
    FAR_ROW_BYTES = 4096, /* from one to the next: they are in different pages */
};

struct tiled_call {
    struct tiling tiling;
    struct pieces pieces;       /* of tiles that nothing is packed of */
    const char *new_output_end; /* NULL: the output's pages exist, or its tiles are scattered */
};

/* The packed operands of the tile that a thread computes. */
struct packed {
    char *tile
        [PIECES_MOST_OPERANDS]; /* NULL: there is no memory, the operand is read where it lies */
    const char *source[PIECES_MOST_OPERANDS]; /* of what is in `tile`; NULL: nothing */
    ptrdiff_t extent[PIECES_MOST_OPERANDS][TILE_AXES];
    const char *populated_to; /* of a new output */
};

/* Bytes of an element as the loop gets it, or the kernel that converts it. */
static size_t size_read(const struct tiling *tiling, int op)
{
    return tiling->nested->convert[op] != NULL ? tiling->loop->item_size[op]
                                               : tiling->nested->stored_size[op];
}

/* Planes that cannot be joined, along the longer one of their axes. */
static void pack_apart(size_t size, const struct tile *plane, ptrdiff_t plane_step,
                       ptrdiff_t planes, char *to)
{
    const ptrdiff_t row_bytes = plane->columns * (ptrdiff_t)size;
    const ptrdiff_t plane_bytes = plane->rows * row_bytes;
    if (plane->rows < planes || magnitude(plane_step) < magnitude(plane->row_step)) {
        struct tile tile = {plane->data, planes, plane->columns, plane_step, plane->column_step};
        for (ptrdiff_t r = 0; r < plane->rows; r++) {
            tile_pack_rows(size, &tile, to + r * row_bytes, plane_bytes);
            tile.data += plane->row_step;
        }
    } else {
        struct tile tile = *plane;
        for (ptrdiff_t i = 0; i < planes; i++) {
            tile_pack(size, &tile, to + i * plane_bytes);
            tile.data += plane_step;
        }
    }
}

static void pack_tile(const struct tiling *tiling, int in, const struct tile *tile, char *to)
{
    const struct nested *nested = tiling->nested;
    const size_t size = size_read(tiling, in);
    if (nested->convert[in] != NULL) {
        const struct tile_conversion conversion = {nested->convert[in], nested->stored_size[in],
                                                   size};
        tile_convert(&conversion, tile, to);
    } else {
        tile_pack(size, tile, to);
    }
}

/* As many planes at a time, in the size in which they are stored, as fit the stack. */
static __attribute__((noinline)) void convert_apart(const struct tiling *tiling, int in,
                                                    const struct tile *plane, ptrdiff_t plane_step,
                                                    ptrdiff_t planes, char *to)
{
    _Alignas(LINE_BYTES) char stored[JOINED_TILE_BYTES];
    const ptrdiff_t size = (ptrdiff_t)tiling->nested->stored_size[in];
    const ptrdiff_t elements = plane->rows * plane->columns;
    const ptrdiff_t most = (ptrdiff_t)sizeof stored / (elements * size);
    struct tile tile = *plane;
    for (ptrdiff_t done = 0, n; done < planes; done += n) {
        n = size_min(size_max(most, 1), planes - done);
        if (most > 0) {
            pack_apart((size_t)size, &tile, plane_step, n, stored);
            tiling->nested->convert[in](stored, size, to, n * elements);
        } else {
            pack_tile(tiling, in, &tile, to);
        }
        tile.data += n * plane_step;
        to += n * elements * (ptrdiff_t)tiling->loop->item_size[in];
    }
}

/* In one go where two of the axes are one. */
static void pack_planes(const struct tiling *tiling, int in, const char *data,
                        const ptrdiff_t extent[TILE_AXES], char *to)
{
    const struct nested_axis *plane = &tiling->nested->axis[tiling->nested->axes - TILE_AXES];
    const ptrdiff_t plane_step = plane[0].step[in], planes = extent[0];
    struct tile tile = {data, extent[1], extent[2], plane[1].step[in], plane[2].step[in]};
    const size_t size = size_read(tiling, in);
    const size_t bytes = (size_t)(tile.rows * tile.columns) * size;
    if (planes == 1 || plane_step == tile.rows * tile.row_step) {
        tile.rows *= planes;
        pack_tile(tiling, in, &tile, to);
    } else if (plane_step == 0) {
        pack_tile(tiling, in, &tile, to);
        tile_repeat_row(bytes, planes, to);
    } else if (tile.row_step == tile.columns * tile.column_step) {
        tile = (struct tile){data, planes, tile.rows * tile.columns, plane_step, tile.column_step};
        pack_tile(tiling, in, &tile, to);
    } else if (tiling->nested->convert[in] == NULL) {
        pack_apart(size, &tile, plane_step, planes, to);
    } else {
        convert_apart(tiling, in, &tile, plane_step, planes, to);
    }
}

/* Packs the tile of an operand, unless it is there already. */
static void pack(const struct tiling *tiling, struct packed *packed, int in, const char *data,
                 const ptrdiff_t extent[TILE_AXES])
{
    if (packed->source[in] != data ||
        memcmp(packed->extent[in], extent, sizeof packed->extent[in]) != 0) {
        pack_planes(tiling, in, data, extent, packed->tile[in]);
        packed->source[in] = data;
        memcpy(packed->extent[in], extent, sizeof packed->extent[in]);
    }
}

static void prefetch_lines(const char *from, ptrdiff_t bytes)
{
    for (ptrdiff_t at = 0; at < bytes; at += LINE_BYTES) {
        __builtin_prefetch(from + at);
    }
}

/* Short rows that lie far apart: the processor does not read ahead from one to the other. Worth it beside
 * conversions; a kernel alone takes a tenth longer where all is in a cache. */
static void prefetch_row(const struct elementwise *loop, char *const row[],
                         const ptrdiff_t row_step[], const ptrdiff_t step[], ptrdiff_t n)
{
    for (int op = 0; op < loop->operands; op++) {
        const ptrdiff_t bytes = n * step[op];
        if (bytes <= PREFETCHED_ROW_BYTES && magnitude(row_step[op]) >= PREFETCHED_ROW_BYTES) {
            prefetch_lines(row[op] + PREFETCHED_ROWS * row_step[op], bytes);
        }
    }
}

/* Whether all results of a row are one, which NumPy's loop computes alike by itself. */
static bool repeats_result(const struct pieces *pieces, const ptrdiff_t step[])
{
    const struct elementwise *loop = pieces->loop;
    bool repeats = pieces->kernel == NULL && !pieces->is_masked && loop->same_bits != SAME_IN_LINE;
    for (int in = 0; in < loop->inputs; in++) {
        repeats = repeats && step[in] == 0;
    }
    return repeats;
}

/* The first one, n times. */
static void repeat_result(size_t size, char *out, ptrdiff_t step, ptrdiff_t n)
{
    if (step == (ptrdiff_t)size) {
        tile_repeat_row(size, n, out);
    } else {
        copy_items(size, out + step, step, out, 0, n - 1);
    }
}

/* `first` is the index of the first element, of calls along one axis. */
static void run_rows(void *hook_data, const struct pieces *pieces, char *data[],
                     const ptrdiff_t row_step[], const ptrdiff_t step[], ptrdiff_t first,
                     ptrdiff_t rows, ptrdiff_t n)
{
    const struct elementwise *loop = pieces->loop;
    const struct inner_loop_hooks *hooks = pieces->kernel == NULL ? loop->hooks : NULL;
    bool whole = !pieces->is_masked;
    for (int op = 0; op < loop->operands; op++) {
        whole = whole && pieces->convert[op] == NULL;
    }
    const int mask = loop->operands;
    const bool repeats = repeats_result(pieces, step);
    const ptrdiff_t computed = repeats ? 1 : n;
    const bool skips = pieces->is_sparse && row_step[mask] == n * step[mask];
    const ptrdiff_t out_row = row_step[loop->inputs], out_bytes = n * step[loop->inputs];
    const bool is_far = magnitude(out_row) >= FAR_ROW_BYTES && out_bytes <= FAR_ROW_BYTES;
    if (hooks != NULL) {
        hooks->before_chunk(hook_data);
    }
    for (ptrdiff_t r = 0; r < rows; r++) {
        if (skips) { /* to a row with a true element */
            r = find_bool_from(true, data[mask], step[mask], r * n, rows * n) / n;
            if (r == rows) {
                break;
            }
        }
        char *row[PIECES_MOST_OPERANDS];
        for (int op = 0; op < loop->operands + pieces->is_masked; op++) {
            row[op] = data[op] + r * row_step[op];
        }
        char *const out = data[loop->inputs] + r * out_row;
        if (whole) {
            if (is_far && r + 1 < rows) {
                prefetch_lines(out + out_row, out_bytes);
            }
            pieces_compute(pieces, row, step, computed);
        } else {
            if (r + PREFETCHED_ROWS < rows && !pieces->is_masked) {
                prefetch_row(loop, row, row_step, step, n);
            }
            pieces_run(pieces, row, step, computed);
        }
        if (repeats) {
            repeat_result(pieces->out_size, out, step[loop->inputs], n);
        }
    }
    if (hooks != NULL) {
        hooks->after_chunk(hook_data, first);
    }
}

/* Populates the large pages that a tile of a new output reaches into. */
static void populate(const struct tiled_call *call, struct packed *packed, const char *first,
                     const char *end)
{
    if (call->new_output_end != NULL && end > packed->populated_to) {
        const ptrdiff_t to_page = LARGE_PAGE_BYTES - (ptrdiff_t)((uintptr_t)end % LARGE_PAGE_BYTES);
        const char *from = packed->populated_to > first ? packed->populated_to : first;
        packed->populated_to = end + size_min(to_page, call->new_output_end - end);
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
    const struct nested_axis *axis = &nested->axis[nested->axes - 1];
    const bool follow =
        !tiling->planes_apart && (tiling->columns == axis->n || axis->n * axis->step[out] == bytes);
    const char *first = nested->data[out];
    return bytes >= POPULATE_FROM_BYTES && follow && !pages_are_there(first, first + bytes)
               ? first + bytes
               : NULL;
}

/* A tile whose operands are where `data` says, in the rows of each plane. */
static void run_planes(const struct tiling *tiling, const struct pieces *pieces, char *data[],
                       const ptrdiff_t row_step[], const ptrdiff_t step[],
                       const ptrdiff_t extent[TILE_AXES], ptrdiff_t first)
{
    const struct nested *nested = tiling->nested;
    for (ptrdiff_t i = 0; i < extent[0]; i++) {
        char *plane[PIECES_MOST_OPERANDS];
        for (int op = 0; op < nested_operands(tiling->loop, nested); op++) {
            plane[op] = data[op] + i * nested->axis[nested->axes - TILE_AXES].step[op];
        }
        run_rows(nested->hook_data, pieces, plane, row_step, step, first, extent[1], extent[2]);
    }
}

/* Whether packing an input takes a step for each element of a tile. */
static bool packs_elements(const struct tiling *tiling)
{
    const struct nested_axis *column = &tiling->nested->axis[tiling->nested->axes - 1];
    bool packs = false;
    for (int in = 0; in < tiling->loop->inputs; in++) {
        packs = packs || (tiling->packed[in] && column->step[in] != 0 &&
                          column->step[in] != (ptrdiff_t)tiling->nested->stored_size[in]);
    }
    return packs;
}

/* Whether so few elements of a masked tile seem to be true, as its first ones tell, that these are read where they
 * lie. */
static bool seems_sparse(const struct tiling *tiling, char *const data[],
                         const ptrdiff_t extent[TILE_AXES])
{
    const struct nested *nested = tiling->nested;
    if (!nested->is_masked) {
        return false;
    }
    const int mask = tiling->loop->operands;
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    const bool rows_join =
        row->step[mask] == column->n * column->step[mask] && extent[2] == column->n;
    const bool elements = packs_elements(tiling);
    if (!rows_join && !elements) {
        return false;
    }
    const int one_of = elements ? SPARSE_ONE_OF : SPARSE_ONE_OF_ROWS;
    const ptrdiff_t n = size_min(rows_join ? extent[1] * extent[2] : extent[2], SPARSE_LOOKED_AT);
    return n >= SPARSE_FROM_ELEMENTS &&
           count_true(data[mask], column->step[mask], n).count * one_of <= n;
}

static void run_tile(const struct tiled_call *call, struct packed *packed, ptrdiff_t index)
{
    const struct tiling *tiling = &call->tiling;
    const struct nested *nested = tiling->nested;
    const struct elementwise *loop = tiling->loop;
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    const int out = loop->inputs;
    char *data[PIECES_MOST_OPERANDS];
    ptrdiff_t row_step[PIECES_MOST_OPERANDS], step[PIECES_MOST_OPERANDS], extent[TILE_AXES];
    bool joined = tiling->joined;
    struct pieces pieces = call->pieces;
    tiling_find(tiling, index, data, extent);
    const ptrdiff_t elements = extent[0] * extent[1] * extent[2];
    populate(call, packed, data[out], data[out] + elements * (ptrdiff_t)loop->item_size[out]);
    for (int op = 0; op < nested_operands(loop, nested); op++) {
        row_step[op] = row->step[op];
        step[op] = column->step[op];
    }
    pieces.is_sparse = seems_sparse(tiling, data, extent);
    for (int in = 0; in < nested_operands(loop, nested); in = nested_read_next(loop, in)) {
        if (tiling->packed[in] && packed->tile[in] != NULL && !pieces.is_sparse) {
            const ptrdiff_t rows = tiling->packed_once[in] ? 1 : extent[1];
            pack(tiling, packed, in, data[in], (const ptrdiff_t[]){extent[0], rows, extent[2]});
            data[in] = packed->tile[in];
            step[in] = (ptrdiff_t)size_read(tiling, in);
            row_step[in] = tiling->packed_once[in] ? 0 : extent[2] * step[in];
            pieces.convert[in] = NULL;
        } else if (tiling->packed[in]) {
            joined = false;
        }
    }
    const ptrdiff_t first = index * tiling->columns;
    if (joined) {
        const ptrdiff_t rows = tiling->planes_apart ? extent[0] : 1, n = elements / rows;
        for (int op = 0; op < nested_operands(loop, nested); op++) {
            row_step[op] = tiling->packed[op] ? n * step[op] : row[-1].step[op];
        }
        run_rows(nested->hook_data, &pieces, data, row_step, step, first, rows, n);
    } else {
        run_planes(tiling, &pieces, data, row_step, step, extent, first);
    }
}

static size_t packed_bytes(const struct tiling *tiling, int in)
{
    const ptrdiff_t elements = tiling->packed_once[in] ? tiling->columns : tiling_elements(tiling);
    const size_t bytes = (size_t)elements * size_read(tiling, in);
    return tiling->packed[in] ? (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES : 0;
}

static void run_tiles(void *context, struct chunks *chunks)
{
    const struct tiled_call *call = context;
    const struct tiling *tiling = &call->tiling;
    const int operands = nested_operands(tiling->loop, tiling->nested);
    _Alignas(LINE_BYTES) char on_stack[STACK_BYTES];
    struct packed packed = {.populated_to = NULL};
    size_t bytes = 0;
    for (int op = 0; op < operands; op++) {
        bytes += packed_bytes(tiling, op);
    }
    const bool is_small = bytes <= sizeof on_stack;
    const struct workspace workspace =
        is_small ? (struct workspace){NULL, 0} : workspace_take(bytes);
    char *memory = is_small ? on_stack : workspace.data;
    for (int op = 0; op < operands && memory != NULL; op++) {
        packed.tile[op] = memory;
        memory += packed_bytes(tiling, op);
    }
    ptrdiff_t first, end;
    while (chunks_take(chunks, &first, &end)) {
        for (ptrdiff_t i = first; i < end; i++) {
            run_tile(call, &packed, i);
        }
    }
    workspace_give_back(workspace);
}

/* Whether a kernel takes an input: converts it, as it lies contiguous in memory or is packed; or gets it as the loop
 * would, for which pieces of it may be converted before. */
static bool suits_mixed(const struct tiling *tiling, const struct mixed_kernel *kernel, int in,
                        ptrdiff_t step)
{
    const struct nested *nested = tiling->nested;
    if (kernel->convert[in] == NULL) {
        return step == 0 || step == (ptrdiff_t)tiling->loop->item_size[in];
    }
    return kernel->convert[in] == nested->convert[in] &&
           (tiling->packed[in] ||
            nested->axis[nested->axes - 1].step[in] == (ptrdiff_t)nested->stored_size[in]);
}

/* The kernel that converts one input or both; NULL: there is none. `step` is that of the loop's elements where an
 * operand is packed or converted. */
static const struct mixed_kernel *find_mixed(const struct tiling *tiling, const ptrdiff_t step[])
{
    const struct elementwise *loop = tiling->loop;
    const int out = loop->inputs;
    if (loop->kernel == NULL || loop->kernel->mixed == NULL || tiling->nested->is_masked ||
        step[out] != (ptrdiff_t)loop->item_size[out]) {
        return NULL;
    }
    const struct mixed_kernel *row = loop->kernel->mixed;
    while (row->cached != NULL &&
           !(suits_mixed(tiling, row, 0, step[0]) && suits_mixed(tiling, row, 1, step[1]))) {
        row++;
    }
    return row->cached != NULL ? row : NULL;
}

/* The kernel for the steps that the rows of tiles have; from now on, nothing else converts what it does. */
static elementwise_kernel *choose_kernel(const struct tiled_call *call, struct nested *nested)
{
    const struct tiling *tiling = &call->tiling;
    const struct elementwise *loop = tiling->loop;
    ptrdiff_t step[PIECES_MOST_OPERANDS];
    bool packs = false;
    for (int op = 0; op < loop->operands; op++) {
        packs = packs || tiling->packed[op];
        step[op] = tiling->packed[op] || nested->convert[op] != NULL
                       ? (ptrdiff_t)loop->item_size[op]
                       : nested->axis[nested->axes - 1].step[op];
    }
    /* See elementwise_plan_kernel(). */
    const ptrdiff_t row_bytes = tiling->columns * (ptrdiff_t)loop->item_size[loop->inputs];
    const ptrdiff_t least = packs ? STREAMED_FROM_PACKED_ROW_BYTES : STREAMED_FROM_ROW_BYTES;
    const bool streams = nested->streams && call->new_output_end == NULL &&
                         nested->convert[loop->inputs] == NULL &&
                         (tiling->joined || row_bytes >= least);
    const struct mixed_kernel *mixed = find_mixed(tiling, step);
    if (mixed != NULL) {
        for (int in = 0; in < loop->inputs; in++) {
            nested->convert[in] = mixed->convert[in] != NULL ? NULL : nested->convert[in];
        }
        return streams && mixed->streaming != NULL ? mixed->streaming : mixed->cached;
    }
    return elementwise_choose(loop, step, streams);
}

/* Chooses the kernel, and then what converts the rest. */
static void make_pieces(struct tiled_call *call, const struct elementwise *loop,
                        struct nested *nested)
{
    call->pieces = (struct pieces){
        .loop = loop,
        .kernel = choose_kernel(call, nested),
        .out_size = nested->stored_size[loop->inputs],
        .is_masked = nested->is_masked,
    };
    for (int op = 0; op < nested_operands(loop, nested); op++) {
        call->pieces.convert[op] = nested->convert[op];
    }
    call->pieces.most = pieces_most_elements(&call->pieces);
}

/* So few elements along one axis that there is nothing to cut. Its frame is not that of nested_run(): threads may have
 * little stack. */
static __attribute__((noinline)) void run_one_row(struct elementwise *loop, struct nested *nested)
{
    static const ptrdiff_t row_step[PIECES_MOST_OPERANDS] = {0};
    const struct nested_axis *axis = &nested->axis[0];
    struct tiled_call call;
    call.new_output_end = NULL;
    call.tiling.loop = loop;
    call.tiling.nested = nested;
    memset(call.tiling.packed, false, sizeof call.tiling.packed);
    call.tiling.joined = false;
    call.tiling.columns = axis->n;
    make_pieces(&call, loop, nested);
    run_rows(nested->hook_data, &call.pieces, nested->data, row_step, axis->step, 0, 1, axis->n);
}

void nested_run(struct elementwise *loop, struct nested *nested, bool is_tiny)
{
    if (is_tiny && nested->axes == 1) {
        run_one_row(loop, nested);
        return;
    }
    struct tiled_call call = {.new_output_end = NULL};
    struct tiling *tiling = &call.tiling;
    tiling_make(loop, nested, tiling);
    if (nested->output_is_new && !is_tiny) {
        call.new_output_end = find_new_output_end(tiling);
    }
    make_pieces(&call, loop, nested);
    if (is_tiny) {
        run_tiles(&call, &(struct chunks){.end = tiling->tiles});
        return;
    }
    const struct shared_work work = {
        .loop = loop,
        .hook_data = loop->kernel == NULL ? nested->hook_data : NULL,
        .run = run_tiles,
        .context = &call,
        .units = tiling->tiles,
        .elements_of_unit = tiling_elements(tiling),
        .timed = 1,
        .block = 1,
    };
    elementwise_share_out(&work);
}
