/* One call of an inner loop over operands in several dimensions: cut into tiles of the two innermost
 * ones, which threads take one after another. Operands that would make the loop go element by
 * element, or in rows of a few, are copied tile by tile first. */
#include "elementwise.h"
#include "kernels/copy/tile_pack.h"
#include "nested.h"
#include "threads/clock.h"
#include "threads/region.h"
#include "threads/shares.h"

enum {
    MOST_INPUTS = NESTED_MOST_OPERANDS - 1,
    /* Rows shorter than this are joined, where the output allows it: the first where an input must be
     * packed anew for each tile, the second where at most one row is, again and again. */
    VERY_SHORT_ROW_BYTES = 256,
    SHORT_ROW_BYTES = 2048,
    SHORT_STEPPED_ROW = 24, /* elements, where an input must be brought together one by one */
    /* Joined rows fit the first-level cache twice. */
    JOINED_BYTES = 16384,
    /* What lies across is packed in wide tiles: the other operands' rows are long enough to be foreseen
     * by the processor, and lines that reach beyond a tile are still in a cache for the one below. */
    PACKED_BYTES = 49152,
    PACKED_COLUMNS = 256,
    /* Where it is not packed, a call of a loop for each row of a tile is to take little of the time. */
    STEPPED_COLUMNS = 512,
    NEAR_LINES = 512,
    /* Other tiles are large enough to hide what taking them costs. */
    TILE_ELEMENTS = 16384,
    /* That, and what a call of a loop costs, beside about 1 ns for an element that it steps to. */
    TILE_NS = 60,
    CALL_NS = 10,
};

struct tiling {
    struct elementwise *loop;
    void *call;
    const struct nested *nested;
    enum order order;
    bool packed[MOST_INPUTS];
    bool joined;             /* a tile is one row */
    ptrdiff_t rows, columns; /* of a tile */
    ptrdiff_t row_tiles, column_tiles;
    ptrdiff_t tiles;
    struct shares shares;
};

/* What one thread holds. */
struct packed {
    _Alignas(64) char tile[MOST_INPUTS][PACKED_BYTES];
    const char *source[MOST_INPUTS]; /* of what is in `tile`; NULL: nothing */
    ptrdiff_t rows[MOST_INPUTS], columns[MOST_INPUTS];
};

static ptrdiff_t magnitude(ptrdiff_t step)
{
    return step < 0 ? -step : step;
}

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
    return magnitude(row->step[in]) == size && column->step[in] != 0 &&
           magnitude(column->step[in]) != size && row->n > 1;
}

/* Whether kernels can go along the rows once what lies across is packed: other operands lie along them,
 * or do not vary. */
static bool others_lie_along(const struct elementwise *loop, const struct nested *nested)
{
    for (int op = 0; op < loop->operands; op++) {
        const ptrdiff_t step = nested->axis[nested->axes - 1].step[op];
        const bool along =
            step == (ptrdiff_t)loop->item_size[op] || (op < loop->inputs && step == 0);
        if (!along && !(op < loop->inputs && lies_across(loop, nested, op))) {
            return false;
        }
    }
    return true;
}

/* The output's closest axis becomes the last one; the one before it is the closest of an input that
 * lies across, if there is one. It stays the output's next one if nothing can be packed and the lines of
 * that input stay in the cache until they are needed again. */
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
            if (lines > NEAR_LINES || others_lie_along(loop, nested)) {
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

static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

/* Whether the rows of a tile become one. */
static bool joins_rows(const struct tiling *tiling)
{
    const struct elementwise *loop = tiling->loop;
    const struct nested *nested = tiling->nested;
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    const int out = loop->inputs;
    ptrdiff_t longest = SHORT_ROW_BYTES;
    for (int in = 0; in < loop->inputs; in++) {
        const ptrdiff_t size = (ptrdiff_t)loop->item_size[in], step = column->step[in];
        if (tiling->packed[in] || row->step[in] == 0) {
            continue;
        }
        if (step != 0 && step != size) {
            longest = least(longest, SHORT_STEPPED_ROW * (ptrdiff_t)loop->item_size[out]);
        } else if (!is_joined(nested, in)) {
            longest = least(longest, VERY_SHORT_ROW_BYTES);
        }
    }
    return row->n > 1 && is_joined(nested, out) &&
           column->n * (ptrdiff_t)loop->item_size[out] < longest;
}

static void plan(struct tiling *tiling, bool may_pack)
{
    const struct elementwise *loop = tiling->loop;
    const struct nested *nested = tiling->nested;
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    const int out = loop->inputs;
    const bool packs_across = may_pack && others_lie_along(loop, nested);
    bool pack = false, across = !may_pack;
    size_t largest_item = loop->item_size[out];
    for (int in = 0; in < loop->inputs; in++) {
        const bool lies = lies_across(loop, nested, in);
        across = across || lies;
        tiling->packed[in] = lies && packs_across && tile_has_vectors(loop->item_size[in], row->n);
        largest_item = loop->item_size[in] > largest_item ? loop->item_size[in] : largest_item;
    }
    tiling->joined = may_pack && joins_rows(tiling);
    for (int in = 0; in < loop->inputs; in++) {
        const ptrdiff_t size = (ptrdiff_t)loop->item_size[in];
        tiling->packed[in] =
            tiling->packed[in] ||
            (tiling->joined && !(is_joined(nested, in) && column->step[in] == size));
        pack = pack || tiling->packed[in];
    }
    const ptrdiff_t bytes = tiling->joined ? JOINED_BYTES : PACKED_BYTES;
    const ptrdiff_t most = pack || across ? bytes / (ptrdiff_t)largest_item : TILE_ELEMENTS;
    tiling->columns = least(column->n, tiling->joined || !(pack || across) ? most
                                       : pack                              ? PACKED_COLUMNS
                                                                           : STEPPED_COLUMNS);
    tiling->rows = least(row->n, most / tiling->columns);
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

/* Whether tiles are so small, or their rows so short, that a loop along the longest axis takes less
 * time, although it goes from element to element. */
static bool tiles_are_small(const struct tiling *tiling)
{
    const ptrdiff_t elements = tiling->rows * tiling->columns;
    const ptrdiff_t calls = tiling->joined ? 1 : tiling->rows;
    const ptrdiff_t longest = tiling->nested->axis[longest_axis(tiling->nested)].n;
    return TILE_NS + CALL_NS * calls > elements + CALL_NS * elements / longest;
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
    for (int op = 0; op < tiling->loop->operands; op++) {
        data[op] = nested->data[op];
        for (int i = 0; i < nested->axes; i++) {
            data[op] += coordinate[i] * nested->axis[i].step[op];
        }
    }
    *rows = least(tiling->rows, nested->axis[nested->axes - 2].n - coordinate[nested->axes - 2]);
    *columns =
        least(tiling->columns, nested->axis[nested->axes - 1].n - coordinate[nested->axes - 1]);
}

static void run_tile(const struct tiling *tiling, struct packed *packed, ptrdiff_t index)
{
    const struct elementwise *loop = tiling->loop;
    const struct nested_axis *row = &tiling->nested->axis[tiling->nested->axes - 2],
                             *column = row + 1;
    char *data[NESTED_MOST_OPERANDS];
    ptrdiff_t row_step[NESTED_MOST_OPERANDS], step[NESTED_MOST_OPERANDS], rows, columns;
    find_tile(tiling, index, data, &rows, &columns);
    for (int op = 0; op < loop->operands; op++) {
        row_step[op] = row->step[op];
        step[op] = column->step[op];
    }
    for (int in = 0; in < loop->inputs; in++) {
        if (!tiling->packed[in]) {
            continue;
        }
        if (packed->source[in] != data[in] || packed->rows[in] < rows ||
            packed->columns[in] != columns) {
            const struct tile tile = {data[in], rows, columns, row->step[in], column->step[in]};
            tile_pack(loop->item_size[in], &tile, packed->tile[in]);
            packed->source[in] = data[in];
            packed->rows[in] = rows;
            packed->columns[in] = columns;
        }
        data[in] = packed->tile[in];
        step[in] = (ptrdiff_t)loop->item_size[in];
        row_step[in] = columns * step[in];
    }
    if (tiling->joined) {
        columns *= rows;
        rows = 1;
    }
    loop->run_rows(loop, tiling->call, tiling->order, data, row_step, step, rows, columns);
}

static void nothing_packed(struct packed *packed)
{
    for (int in = 0; in < MOST_INPUTS; in++) {
        packed->source[in] = NULL;
    }
}

static void run_tiles(const struct tiling *tiling, ptrdiff_t first, ptrdiff_t end)
{
    struct packed packed;
    nothing_packed(&packed);
    for (ptrdiff_t i = first; i < end; i++) {
        run_tile(tiling, &packed, i);
    }
}

static void run_share(void *context, int index)
{
    struct tiling *tiling = context;
    struct packed packed;
    nothing_packed(&packed);
    ptrdiff_t first, end;
    while (shares_take(&tiling->shares, index, &first, &end)) {
        for (ptrdiff_t i = first; i < end; i++) {
            run_tile(tiling, &packed, i);
        }
    }
}

void nested_run(struct elementwise *loop, void *call, struct nested *nested, bool streaming)
{
    while (nested->axes < 2) {
        nested->axis[nested->axes] = nested->axis[0];
        nested->axis[0] = (struct nested_axis){.n = 1};
        nested->axes++;
    }
    order_axes(loop, nested);
    struct tiling tiling = {.loop = loop, .call = call, .nested = nested};
    tiling.order = streaming ? ANY_ORDER_STREAMING : ANY_ORDER;
    plan(&tiling, true);
    if (tiles_are_small(&tiling)) {
        order_axes_by_length(nested, loop->inputs);
        plan(&tiling, false);
    }
    ptrdiff_t elements = 1;
    for (int i = 0; i < nested->axes; i++) {
        elements *= nested->axis[i].n;
    }
    if (elementwise_is_tiny(loop, elements)) {
        run_tiles(&tiling, 0, tiling.tiles);
        return;
    }
    const bool timed = elementwise_is_timed(loop);
    elementwise_count_call(loop);
    ptrdiff_t done = 0;
    if (timed) {
        const int64_t start = clock_ns();
        run_tiles(&tiling, 0, 1);
        elementwise_learn(loop, tiling.rows * tiling.columns, clock_ns() - start);
        done = 1;
    }
    const int threads = tiling.tiles - done > 1 ? elementwise_threads(loop, elements) : 1;
    if (threads == 1) {
        run_tiles(&tiling, done, tiling.tiles);
        return;
    }
    shares_initialize(&tiling.shares, done, tiling.tiles, 1, 1, threads);
    loop->before_threads(call);
    region_run(loop->policy, threads, run_share, &tiling);
    loop->after_threads(call);
}
