/* The order of the axes and the size of tiles: what a kernel finds next to each other, and what is packed. */
#include "tiling.h"

#include "elementwise_cutoffs.h"
#include "kernels/copy/find_bool.h"
#include "kernels/copy/tile_pack.h"
#include "kernels/sizes.h"

#include <string.h>

enum {
    COLUMNS_MULTIPLE = 64,  /* of wide tiles: whole cache lines, whatever the dtype */
    SAME_SETS_BYTES = 4096, /* after which addresses share a set of the first-level cache */
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

/* Whether the elements of a column lie next to each other, rather than those of a row. Near each other is enough for
 * those that are converted, and for kernels that take contiguous operands only. */
static bool lies_across(const struct elementwise *loop, const struct nested *nested, int in)
{
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    const ptrdiff_t size = (ptrdiff_t)loop->item_size[in], step = magnitude(row->step[in]);
    if (nested->convert[in] != NULL) {
        return step < magnitude(column->step[in]) && step != 0;
    }
    const bool needs_contiguous = loop->kernel != NULL && !loop->kernel_takes_any_step;
    const bool is_near = needs_contiguous && step != 0 && step < magnitude(column->step[in]) &&
                         step <= MOST_NEAR_BYTES;
    return (step == size || is_near) && column->step[in] != 0 &&
           magnitude(column->step[in]) != size && row->n > 1;
}

/* Whether all rows are one, of elements that a kernel would have to gather or convert each time. */
static bool repeats_apart(const struct elementwise *loop, const struct nested *nested, int in)
{
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    return row->step[in] == 0 && row->n > 1 && column->step[in] != 0 && column->n > 1 &&
           (nested->convert[in] != NULL || column->step[in] != (ptrdiff_t)loop->item_size[in]);
}

/* Whether kernels can go along the rows once what lies across, or apart, is packed: other operands lie along
 * them, or do not vary. */
static bool others_lie_along(const struct elementwise *loop, const struct nested *nested)
{
    for (int op = 0; op < loop->operands; op++) {
        const ptrdiff_t step = nested->axis[nested->axes - 1].step[op];
        const bool along = step == (ptrdiff_t)loop->item_size[op] || nested->convert[op] != NULL ||
                           (op < loop->inputs && step == 0);
        if (!along && !(op < loop->inputs &&
                        (lies_across(loop, nested, op) || repeats_apart(loop, nested, op)))) {
            return false;
        }
    }
    return true;
}

/* The output's `count` closest axes become the last ones. */
static void order_axes_by_output(struct nested *nested, int out, int count)
{
    for (int last = nested->axes - 1; last >= nested->axes - count; last--) {
        const int closest = closest_axis(nested, out, last + 1);
        if (closest >= 0) {
            swap_axes(nested, closest, last);
        }
    }
}

/* The closest axis of an input that lies across becomes the last but one, unless nothing can be packed and that
 * input's lines stay in the cache until they are read again. Returns that input, or -1. */
static int order_axes_by_input(const struct elementwise *loop, struct nested *nested)
{
    const int last = nested->axes - 1;
    const ptrdiff_t lines = nested->axis[last].n * nested->axis[last - 1].n;
    for (int in = 0; in < nested_operands(loop, nested); in = nested_read_next(loop, in)) {
        const int across = closest_axis(nested, in, nested->axes);
        if (across >= 0 && across != last && nested->axis[last].step[in] != 0) {
            swap_axes(nested, across, last - 1);
            if (lines > UNPACKED_BELOW_LINES || others_lie_along(loop, nested)) {
                return in;
            }
            swap_axes(nested, across, last - 1);
        }
    }
    return -1;
}

static bool is_joined(const struct nested *nested, int operand)
{
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    return row->step[operand] == column->n * column->step[operand];
}

/* Below which bytes rows are joined if an input has to be packed for that: those that are converted, masks, and calls of
 * NumPy's loops take longer. */
static ptrdiff_t longest_packed(const struct tiling *tiling)
{
    const struct nested *nested = tiling->nested;
    const bool has_few_rows = nested->axis[nested->axes - 2].n < LEAST_REPETITIONS;
    const bool is_numpys = tiling->loop->kernel == NULL;
    bool takes_longer = nested->is_masked || is_numpys, are_converted = true;
    for (int in = 0; in < tiling->loop->inputs; in++) {
        const bool is_packed = tiling->packed[in] && !(tiling->packed_once[in] && has_few_rows);
        takes_longer = takes_longer || (nested->convert[in] != NULL && !is_packed);
        are_converted = are_converted && nested->convert[in] != NULL;
    }
    return is_numpys && are_converted ? JOIN_ROWS_BELOW_BYTES
           : takes_longer             ? JOIN_ROWS_BELOW_BYTES_IF_CONVERTED
                                      : JOIN_ROWS_BELOW_BYTES_IF_PACKED;
}

/* Whether rows are to be joined even if an input has to be packed. */
static bool rows_are_short(const struct tiling *tiling)
{
    const ptrdiff_t size = (ptrdiff_t)tiling->loop->item_size[tiling->loop->inputs];
    return !tiling->joined && tiling->columns * size < longest_packed(tiling);
}

/* Whether an operand differs between tiles. */
static bool varies_outside(const struct nested *nested, int op)
{
    for (int i = 0; i < nested->axes - 2; i++) {
        if (nested->axis[i].n > 1 && nested->axis[i].step[op] != 0) {
            return true;
        }
    }
    return false;
}

static ptrdiff_t largest_item(const struct elementwise *loop, const struct nested *nested)
{
    size_t largest = loop->item_size[loop->inputs];
    for (int in = 0; in < nested_operands(loop, nested); in = nested_read_next(loop, in)) {
        largest = loop->item_size[in] > largest ? loop->item_size[in] : largest;
    }
    return (ptrdiff_t)largest;
}

/* Whether the rows of a tile become one. */
static bool joins_rows(const struct tiling *tiling)
{
    const struct elementwise *loop = tiling->loop;
    const struct nested *nested = tiling->nested;
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    const int out = loop->inputs;
    const ptrdiff_t packed = longest_packed(tiling);
    const ptrdiff_t elements = row->n * column->n, out_size = (ptrdiff_t)loop->item_size[out];
    const bool is_one_of_many =
        elements * largest_item(loop, nested) < JOINED_TILE_BYTES && varies_outside(nested, out);
    ptrdiff_t longest = JOIN_ROWS_BELOW_BYTES;
    for (int in = 0; in < nested_operands(loop, nested); in = nested_read_next(loop, in)) {
        const ptrdiff_t size = (ptrdiff_t)loop->item_size[in], step = column->step[in];
        if (tiling->packed[in] || (is_one_of_many && !varies_outside(nested, in))) {
            continue; /* what all tiles read is packed for the first of them */
        }
        if (row->step[in] == 0) {
            /* One element in each plane, but another one, is packed for each tile. */
            const bool has_planes = elements * out_size < JOIN_ROWS_BELOW_BYTES;
            longest = step == 0 && has_planes && varies_outside(nested, in)
                          ? size_min(longest, packed)
                          : longest;
        } else if (nested->convert[in] == NULL && step != 0 && step != size) {
            longest = size_min(longest, size < GATHERED_BELOW_ITEM_BYTES
                                            ? JOIN_ROWS_BELOW_BYTES_IF_CONVERTED
                                            : size_min(packed, JOIN_ROWS_BELOW_BYTES_IF_GATHERED));
        } else if (!is_joined(nested, in)) {
            longest = size_min(longest, packed);
        }
    }
    return row->n > 1 && is_joined(nested, out) && column->n * out_size < longest;
}

/* Whether packing what lies across takes less time than reading it as it lies. Of integers of 4 bytes, too: NumPy's loops
 * have vectors for floats that lie apart. */
static bool packing_pays(const struct elementwise *loop, size_t item_size, ptrdiff_t rows,
                         ptrdiff_t columns)
{
    const bool are_many = rows >= LEAST_PACKED_ROWS;
    const bool are_integers = loop->same_bits == SAME_ANYWHERE;
    const bool are_gathered = item_size < GATHERED_BELOW_ITEM_BYTES ||
                              (item_size == GATHERED_BELOW_ITEM_BYTES && are_integers);
    return are_gathered ? are_many || rows * columns >= LEAST_PACKED_ELEMENTS
                        : are_many && tile_has_vectors(item_size, rows);
}

/* Chooses what is packed; returns whether anything lies across. */
static bool choose_packed(struct tiling *tiling, bool may_pack)
{
    const struct elementwise *loop = tiling->loop;
    const struct nested *nested = tiling->nested;
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    const bool fits = others_lie_along(loop, nested);
    bool across = !may_pack;
    for (int in = 0; in < nested_operands(loop, nested); in = nested_read_next(loop, in)) {
        const bool lies = lies_across(loop, nested, in);
        across = across || lies;
        tiling->packed_once[in] =
            may_pack && (fits || nested->convert[in] != NULL) && repeats_apart(loop, nested, in);
        tiling->packed[in] =
            tiling->packed_once[in] || (lies && may_pack && fits &&
                                        packing_pays(loop, loop->item_size[in], row->n, column->n));
    }
    return across;
}

/* Of joined rows, inputs are packed that are not as contiguous, unless they are one element. NumPy's loops read those of
 * one step as they lie, which they get from NumPy, too. */
static void pack_what_is_apart(struct tiling *tiling)
{
    const struct elementwise *loop = tiling->loop;
    const struct nested *nested = tiling->nested;
    const struct nested_axis *plane = &nested->axis[nested->axes - TILE_AXES];
    const bool planes_join = tiling->planes > 1 && !tiling->planes_apart;
    for (int in = 0; in < nested_operands(loop, nested); in = nested_read_next(loop, in)) {
        const bool is_strided = (loop->kernel != NULL || in >= loop->inputs) &&
                                plane[2].step[in] != (ptrdiff_t)loop->item_size[in];
        const bool is_apart = nested->convert[in] != NULL || !is_joined(nested, in) || is_strided ||
                              (planes_join && plane[0].step[in] != plane[1].n * plane[1].step[in]);
        const bool is_one = in < loop->inputs && plane[1].step[in] == 0 && plane[2].step[in] == 0 &&
                            (!planes_join || plane[0].step[in] == 0);
        tiling->packed_once[in] = false;
        tiling->packed[in] = !is_one && (tiling->packed[in] || is_apart);
    }
}

/* Of other tiles, short rows that are converted are, too: beside the inner loop, that would take longer. */
static void pack_what_is_converted(struct tiling *tiling)
{
    const struct elementwise *loop = tiling->loop;
    const struct nested *nested = tiling->nested;
    for (int in = 0; in < loop->inputs; in++) {
        const bool is_short =
            tiling->columns * (ptrdiff_t)loop->item_size[in] < CONVERTED_APART_BELOW_BYTES;
        const bool varies = nested->axis[nested->axes - 1].step[in] != 0;
        tiling->packed[in] =
            tiling->packed[in] || (is_short && varies && nested->convert[in] != NULL);
    }
}

/* The axis along which an input lies closest if that is none of the last two; -1 if there is none. */
static int find_planes_apart(const struct elementwise *loop, const struct nested *nested)
{
    const int last = nested->axes - 1;
    for (int in = 0; in < nested_operands(loop, nested); in = nested_read_next(loop, in)) {
        const int closest = closest_axis(nested, in, nested->axes);
        if (closest >= 0 && closest < last - 1 && nested->axis[last].step[in] != 0 &&
            nested->axis[closest].n >= LEAST_PACKED_ROWS &&
            magnitude(nested->axis[closest].step[in]) <= MOST_NEAR_BYTES) {
            return closest;
        }
    }
    return -1;
}

/* Rows of each plane, at most that many: packed planes are written side by side, and lie in the same few sets of a cache if
 * they follow each other by a whole number of pages. */
static ptrdiff_t rows_apart(const struct tiling *tiling, ptrdiff_t most)
{
    const ptrdiff_t row = tiling->columns * largest_item(tiling->loop, tiling->nested);
    const ptrdiff_t beyond = (most * row + LINE_BYTES) % SAME_SETS_BYTES;
    const ptrdiff_t fewer = ceiling(beyond + 1, row);
    const bool are_same = beyond <= 2 * LINE_BYTES && fewer < most;
    return size_max(1, are_same ? most - fewer : most);
}

/* Makes tiles reach over so few rows that there are several planes of them, in which that input is read line by
 * line. */
static void add_planes_apart(struct tiling *tiling, struct nested *nested, ptrdiff_t most)
{
    const int third = nested->axes - TILE_AXES;
    const int apart = find_planes_apart(tiling->loop, nested);
    if (apart >= 0 && tiling->planes < LEAST_PLANES_APART) {
        swap_axes(nested, apart, third);
        tiling->planes = size_min(nested->axis[third].n, MOST_PLANES_APART);
        const ptrdiff_t bytes = nested_elements(nested) * largest_item(tiling->loop, nested);
        const ptrdiff_t elements =
            bytes < PLANES_APART_FROM_BYTES ? most : size_max(most, PLANES_APART_ELEMENTS);
        tiling->rows = rows_apart(tiling, size_min(nested->axis[third + 1].n,
                                                   elements / (tiling->planes * tiling->columns)));
        tiling->planes_apart = true;
    }
}

/* Makes tiles of few elements reach over a third axis, which is moved before the last two. */
static void add_planes(struct tiling *tiling, struct nested *nested, ptrdiff_t most)
{
    const int out = tiling->loop->inputs, third = nested->axes - TILE_AXES;
    const struct nested_axis *row = &nested->axis[third + 1];
    const ptrdiff_t elements = tiling->rows * tiling->columns;
    const bool is_short =
        elements * (ptrdiff_t)tiling->loop->item_size[out] < JOIN_ROWS_BELOW_BYTES;
    if (tiling->rows < row->n || (tiling->joined && !is_short)) {
        return;
    }
    for (int i = third; i >= 0; i--) {
        if (nested->axis[i].n > 1 && nested->axis[i].step[out] == row->n * row->step[out]) {
            swap_axes(nested, i, third);
            tiling->planes = size_min(nested->axis[third].n, size_max(most / elements, 1));
            return;
        }
    }
}

/* Bytes of the output from a tile to the next one along an axis. */
static ptrdiff_t bytes_between(const struct tiling *tiling, const struct tile_step *step)
{
    return magnitude(tiling->nested->axis[step->axis].step[tiling->loop->inputs]) * step->elements;
}

static void order_tiles(struct tiling *tiling)
{
    const int first = tiling->nested->axes - TILE_AXES;
    const ptrdiff_t elements[TILE_AXES] = {tiling->planes, tiling->rows, tiling->columns};
    tiling->steps = 0;
    tiling->tiles = 1;
    for (int axis = tiling->nested->axes - 1; axis >= 0; axis--) {
        struct tile_step step = {axis, 0, axis >= first ? elements[axis - first] : 1};
        step.tiles = ceiling(tiling->nested->axis[axis].n, step.elements);
        if (step.tiles == 1) {
            continue;
        }
        int at = tiling->steps++;
        for (;
             at > 0 && bytes_between(tiling, &step) < bytes_between(tiling, &tiling->step[at - 1]);
             at--) {
            tiling->step[at] = tiling->step[at - 1];
        }
        tiling->step[at] = step;
        tiling->tiles *= step.tiles;
    }
}

/* Tiles of one width, which is at most that: a narrow one at the end takes as long. */
static ptrdiff_t even_columns(ptrdiff_t n, ptrdiff_t most)
{
    const ptrdiff_t columns = ceiling(n, ceiling(n, most));
    return ceiling(columns, COLUMNS_MULTIPLE) * COLUMNS_MULTIPLE;
}

/* Whether packing is all that is done beside the kernel. */
static bool only_packs(const struct elementwise *loop, const struct nested *nested)
{
    bool only = !nested->is_masked;
    for (int op = 0; op < loop->operands; op++) {
        only = only && nested->convert[op] == NULL;
    }
    return only;
}

static void cut_into_tiles(struct tiling *tiling, struct nested *nested, bool may_pack)
{
    const struct elementwise *loop = tiling->loop;
    const struct nested_axis *row = &nested->axis[nested->axes - 2], *column = row + 1;
    const bool across = choose_packed(tiling, may_pack);
    tiling->joined = may_pack && joins_rows(tiling);
    tiling->planes = 1;
    tiling->planes_apart = false;
    bool packs = tiling->joined, packs_once = false;
    const ptrdiff_t item = largest_item(loop, nested);
    for (int in = 0; in < nested_operands(loop, nested); in = nested_read_next(loop, in)) {
        packs = packs || (tiling->packed[in] && !tiling->packed_once[in]);
        packs_once = packs_once || tiling->packed_once[in];
    }
    const ptrdiff_t bytes = tiling->joined ? JOINED_TILE_BYTES : PACKED_TILE_BYTES;
    const ptrdiff_t most = packs || across ? bytes / item : TILE_ELEMENTS;
    const bool is_narrow = packs && only_packs(loop, nested);
    const ptrdiff_t widest = is_narrow ? NARROW_TILE_COLUMNS : WIDE_TILE_COLUMNS;
    const ptrdiff_t all_rows = (is_narrow ? NARROW_TILE_BYTES / item : most) / row->n;
    tiling->columns =
        size_min(column->n, tiling->joined    ? most
                            : packs || across ? size_max(even_columns(column->n, widest), all_rows)
                            : packs_once      ? PACKED_ROW_BYTES / item
                                              : most);
    tiling->rows = size_min(row->n, most / tiling->columns);
    if (tiling->joined) {
        add_planes(tiling, nested, most);
        add_planes_apart(tiling, nested, most);
        pack_what_is_apart(tiling);
    } else if (packs) {
        pack_what_is_converted(tiling);
    } else if (!packs_once) {
        add_planes(tiling, nested, most);
    }
    order_tiles(tiling);
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

/* What a strided loop along the longest axis takes for so many elements. */
static ptrdiff_t strided_ns(const struct nested *nested, ptrdiff_t elements)
{
    return elements + INNER_LOOP_NS * elements / nested->axis[longest_axis(nested)].n;
}

static void take_longest_axis(struct tiling *tiling, struct nested *nested)
{
    order_axes_by_length(nested, tiling->loop->inputs);
    cut_into_tiles(tiling, nested, false);
}

static bool suits_longest_axis(const struct elementwise *loop, const struct nested *nested)
{
    const int out = loop->inputs;
    const ptrdiff_t step = nested->axis[longest_axis(nested)].step[out];
    return loop->kernel != NULL || loop->same_bits == SAME_ANYWHERE ||
           step == (ptrdiff_t)nested->stored_size[out];
}

/* Whether a mask is true of so few elements, as its first ones tell, that lines of it are searched, whatever lies along
 * them: packed for short rows of the output, it would be read as a whole. */
static bool is_searched(const struct elementwise *loop, const struct nested *nested)
{
    const struct nested_axis *axis = &nested->axis[longest_axis(nested)];
    const int closest = closest_axis(nested, loop->inputs, nested->axes);
    const ptrdiff_t n = size_min(axis->n, SPARSE_LOOKED_AT);
    return nested->is_masked && n >= SPARSE_FROM_ELEMENTS && axis->step[loop->operands] == 1 &&
           closest >= 0 && nested->axis[closest].n < LEAST_MASKED_ROW &&
           count_true(nested->data[loop->operands], 1, n).count * SPARSE_ONE_OF <= n;
}

/* Whether tiles or their rows are so small that such a loop takes less time. */
static bool tiles_are_small(const struct tiling *tiling)
{
    const ptrdiff_t calls = tiling->planes_apart ? tiling->planes
                            : tiling->joined     ? 1
                                                 : tiling->planes * tiling->rows;
    bool packs = false;
    for (int op = 0; op < nested_operands(tiling->loop, tiling->nested); op++) {
        packs = packs || (tiling->packed[op] && !tiling->packed_once[op]);
    }
    return (packs ? PACKED_TILE_NS : TILE_NS) + INNER_LOOP_NS * calls >
           strided_ns(tiling->nested, tiling_elements(tiling));
}

bool tiling_is_whole(const struct elementwise *loop, const struct nested *nested)
{
    const int out = loop->inputs;
    const ptrdiff_t elements = nested_elements(nested);
    if (nested->is_masked || nested->convert[out] != NULL ||
        (elements > WHOLE_ELEMENTS && elements * largest_item(loop, nested) > WHOLE_BYTES)) {
        return false;
    }
    bool converts = !only_packs(loop, nested);
    /* Where the last element of an output without gaps begins. */
    ptrdiff_t last = 0;
    for (int i = 0; i < nested->axes && converts; i++) {
        converts = nested->axis[i].step[out] > 0 || nested->axis[i].n == 1;
        last += (nested->axis[i].n - 1) * nested->axis[i].step[out];
    }
    return converts && last == (elements - 1) * (ptrdiff_t)loop->item_size[out];
}

/* Of more than TILE_AXES, there are several. */
static void take_whole(struct tiling *tiling, struct nested *nested)
{
    order_axes_by_output(nested, tiling->loop->inputs, TILE_AXES);
    const struct nested_axis *plane = &nested->axis[nested->axes - TILE_AXES];
    tiling->planes = plane[0].n;
    tiling->rows = plane[1].n;
    tiling->columns = plane[2].n;
    tiling->joined = true;
    tiling->planes_apart = false;
    memset(tiling->packed, false, sizeof tiling->packed);
    pack_what_is_apart(tiling);
    order_tiles(tiling);
}

void tiling_make(struct elementwise *loop, struct nested *nested, struct tiling *tiling)
{
    const int missing = nested->axes < TILE_AXES ? TILE_AXES - nested->axes : 0;
    for (int i = nested->axes - 1; i >= 0 && missing > 0; i--) {
        nested->axis[i + missing] = nested->axis[i];
    }
    for (int i = 0; i < missing; i++) {
        nested->axis[i] = (struct nested_axis){.n = 1};
    }
    nested->axes += missing;
    tiling->loop = loop;
    tiling->nested = nested;
    if (tiling_is_whole(loop, nested)) {
        take_whole(tiling, nested);
        return;
    }
    const bool may_be_longest = suits_longest_axis(loop, nested);
    if (may_be_longest && (strided_ns(nested, nested_elements(nested)) < PACKED_TILE_NS ||
                           is_searched(loop, nested))) {
        take_longest_axis(tiling, nested); /* looking for anything better takes longer */
        return;
    }
    order_axes_by_output(nested, loop->inputs, 2);
    const int across = order_axes_by_input(loop, nested);
    cut_into_tiles(tiling, nested, true);
    const bool is_small = tiles_are_small(tiling), packs = across >= 0 && tiling->packed[across];
    if (across >= 0 && (is_small || !packs || rows_are_short(tiling))) {
        order_axes_by_output(nested, loop->inputs, 2);
        cut_into_tiles(tiling, nested, true);
        const bool gains = tiling->joined &&
                           (!packs || tiling->planes_apart || tiling->planes >= LEAST_PLANES_APART);
        if (!gains && !is_small) {
            order_axes_by_input(loop, nested);
            cut_into_tiles(tiling, nested, true);
        }
    }
    if (may_be_longest && tiles_are_small(tiling)) {
        take_longest_axis(tiling, nested);
    }
}

void tiling_find(const struct tiling *tiling, ptrdiff_t index, char *data[],
                 ptrdiff_t extent[TILE_AXES])
{
    const struct nested *nested = tiling->nested;
    const int operands = nested_operands(tiling->loop, nested);
    const int first = nested->axes - TILE_AXES;
    extent[0] = tiling->planes;
    extent[1] = tiling->rows;
    extent[2] = tiling->columns;
    for (int op = 0; op < operands; op++) {
        data[op] = nested->data[op];
    }
    for (int i = 0; i < tiling->steps; i++) {
        const struct tile_step *step = &tiling->step[i];
        const struct nested_axis *axis = &nested->axis[step->axis];
        const ptrdiff_t at = index % step->tiles * step->elements;
        index /= step->tiles;
        for (int op = 0; op < operands; op++) {
            data[op] += at * axis->step[op];
        }
        if (step->axis >= first) {
            extent[step->axis - first] = size_min(step->elements, axis->n - at);
        }
    }
}
