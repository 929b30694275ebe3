/* Lines along the accumulated axis are independent of each other. Where a kept axis lies closer in memory,
 * or lines are short, whole rows are computed by one call of the loop each: no element waits for the one before
 * it. Else one line is computed after the other. */
#include "accumulate_axes.h"

#include "accumulate.h"
#include "kernels/copy/copy_items.h"
#include "kernels/sizes.h"
#include "reduction_cutoffs.h"
#include "threads/region.h"

#include <string.h>

struct accumulation_units {
    const struct accumulated_axes *axes;
    const struct accumulation_cut *cut;
    elementwise_kernel *kernel; /* of rows; NULL: the loop's function */
    ptrdiff_t piece;            /* elements that are computed at once, if there are several calls */
};

static ptrdiff_t item_size(const struct accumulated_axes *axes)
{
    return (ptrdiff_t)axes->loop->item_size[0];
}

/* Whether elements of neighbouring lines are closer to each other than those of one line. */
static bool lies_across(const struct accumulated_axes *axes)
{
    const struct axis axis = fastest(&axes->kept), along = axes->along;
    return axes->kept.count > 0 && magnitude(axis.out_step) < magnitude(along.out_step);
}

static void call_loop(const struct accumulated_axes *axes, char *data[], const ptrdiff_t step[],
                      ptrdiff_t n)
{
    axes->loop->function(data, &n, step, axes->loop->function_data);
}

/* Where a slice begins, at an index along the other axes; how many lines it has. */
static ptrdiff_t find_unit(const struct accumulation_units *units, ptrdiff_t slice,
                           ptrdiff_t others, const char **in, char **out)
{
    const struct accumulated_axes *axes = units->axes;
    const struct axis nearest = fastest(&axes->kept);
    const ptrdiff_t line = slice * units->cut->width;
    const int first = units->cut->first_other;
    *in = axes->in + line * nearest.step + offset_of(&axes->kept, first, others, false);
    *out = axes->out + line * nearest.out_step + offset_of(&axes->kept, first, others, true);
    return size_min(units->cut->width, nearest.n - line);
}

static __attribute__((noinline)) void begin_converted_lines(const struct accumulation_units *units,
                                                            const char *in, char *out,
                                                            ptrdiff_t lines)
{
    const struct accumulated_axes *axes = units->axes;
    const struct axis axis = fastest(&axes->kept);
    const ptrdiff_t size = item_size(axes);
    _Alignas(LINE_BYTES) char piece[REDUCTION_PIECE_BYTES];
    for (ptrdiff_t done = 0, n; done < lines; done += n) {
        n = size_min(units->piece, lines - done);
        axes->convert(in + done * axis.step, axis.step, piece, n);
        copy_items((size_t)size, out + done * axis.out_step, axis.out_step, piece, size, n);
    }
}

/* The first element of each line. */
static void begin_lines(const struct accumulation_units *units, const char *in, char *out,
                        ptrdiff_t lines)
{
    const struct accumulated_axes *axes = units->axes;
    if (axes->convert != NULL) {
        begin_converted_lines(units, in, out, lines);
    } else if (in != out) {
        const struct axis axis = fastest(&axes->kept);
        copy_items((size_t)item_size(axes), out, axis.out_step, in, axis.step, lines);
    }
}

/* ---- by rows ---- */

static void compute_row(const struct accumulation_units *units, char *const row[],
                        const ptrdiff_t step[], ptrdiff_t n)
{
    if (units->kernel != NULL) {
        units->kernel(row, step, n);
    } else {
        call_loop(units->axes, (char **)row, step, n);
    }
}

static void convert_and_compute_row(const struct accumulation_units *units, char *const row[],
                                    const ptrdiff_t step[], ptrdiff_t n)
{
    const struct accumulated_axes *axes = units->axes;
    const ptrdiff_t from_step = fastest(&axes->kept).step;
    _Alignas(LINE_BYTES) char piece[REDUCTION_PIECE_BYTES];
    for (ptrdiff_t done = 0, count; done < n; done += count) {
        count = size_min(units->piece, n - done);
        axes->convert(row[1] + done * from_step, from_step, piece, count);
        char *const data[] = {row[0] + done * step[0], piece, row[2] + done * step[2]};
        compute_row(units, data, step, count);
    }
}

/* Those of the loop, which gets converted elements contiguous. */
static void find_row_steps(const struct accumulated_axes *axes, ptrdiff_t step[])
{
    const struct axis axis = fastest(&axes->kept);
    step[0] = step[2] = axis.out_step;
    step[1] = axes->convert != NULL ? item_size(axes) : axis.step;
}

/* Rows of so many indices of an axis that is nearer than theirs. */
static void run_rows_together(const struct accumulation_units *units, const char *in, char *out,
                              ptrdiff_t lines, struct axis nearer)
{
    const struct accumulated_axes *axes = units->axes;
    const struct axis along = axes->along;
    ptrdiff_t step[3];
    find_row_steps(axes, step);
    for (ptrdiff_t i = 0; i < nearer.n; i++) {
        begin_lines(units, in + i * nearer.step, out + i * nearer.out_step, lines);
    }
    for (ptrdiff_t k = 1; k < along.n; k++) {
        in += along.step;
        out += along.out_step;
        for (ptrdiff_t i = 0; i < nearer.n; i++) {
            char *const to = out + i * nearer.out_step;
            char *const row[] = {to - along.out_step, (char *)in + i * nearer.step, to};
            if (axes->convert != NULL) {
                convert_and_compute_row(units, row, step, lines);
            } else {
                compute_row(units, row, step, lines);
            }
        }
    }
}

/* Those of a nearer axis share cache lines, and rows of one index do if lines are short. */
static void run_rows(const struct accumulation_units *units, const char *in, char *out,
                     ptrdiff_t lines)
{
    const struct accumulated_axes *axes = units->axes;
    struct axis nearer = {1, 0, 0};
    ptrdiff_t n = 1;
    if (units->cut->first_other > 1) {
        nearer = axes->kept.axis[1];
        n = nearer.n;
        nearer.n = lies_across(axes) ? n : 1;
    }
    for (ptrdiff_t i = 0; i < n; i += nearer.n) {
        run_rows_together(units, in + i * nearer.step, out + i * nearer.out_step, lines, nearer);
    }
}

/* ---- by lines ---- */

/* n elements of a line, of which those before `out` are there. */
static void continue_line(const struct accumulated_axes *axes, const char *in, ptrdiff_t in_step,
                          char *out, ptrdiff_t n)
{
    const ptrdiff_t out_step = axes->along.out_step;
    char *data[] = {out - out_step, (char *)in, out};
    const ptrdiff_t step[] = {out_step, in_step, out_step};
    if (axes->kernel != NULL) {
        axes->kernel->accumulate(data[0], in, in_step, out, out_step, n);
    } else if (axes->running != NULL) {
        axes->running(data, step, n);
    } else {
        call_loop(axes, data, step, n);
    }
}

/* How many of `left` elements are computed at once: never one, if there were others before. For one, outputs and
 * inputs do not overlap, and some of NumPy's loops would compute it in another way. */
static ptrdiff_t next_piece(ptrdiff_t left, ptrdiff_t most)
{
    return left == most + 1 ? most - 1 : size_min(most, left);
}

static void convert_and_continue_line(const struct accumulation_units *units, const char *in,
                                      char *out, ptrdiff_t n)
{
    const struct accumulated_axes *axes = units->axes;
    const struct axis along = axes->along;
    _Alignas(LINE_BYTES) char piece[REDUCTION_PIECE_BYTES];
    for (ptrdiff_t done = 0, count; done < n; done += count) {
        count = next_piece(n - done, units->piece);
        axes->convert(in + done * along.step, along.step, piece, count);
        continue_line(axes, piece, item_size(axes), out + done * along.out_step, count);
    }
}

/* Memory is read and written in order. */
static void run_lines(const struct accumulation_units *units, const char *in, char *out,
                      ptrdiff_t lines)
{
    const struct accumulated_axes *axes = units->axes;
    const struct axis axis = fastest(&axes->kept), along = axes->along;
    for (; lines > 0; lines--, in += axis.step, out += axis.out_step) {
        begin_lines(units, in, out, 1);
        const char *from = in + along.step;
        char *to = out + along.out_step;
        if (axes->convert != NULL) {
            convert_and_continue_line(units, from, to, along.n - 1);
        } else {
            continue_line(axes, from, along.step, to, along.n - 1);
        }
    }
}

static void run_joined_lines(const struct accumulation_units *units, const char *in, char *out,
                             ptrdiff_t lines)
{
    const struct accumulated_axes *axes = units->axes;
    const struct axis axis = fastest(&axes->kept), along = axes->along;
    const ptrdiff_t item = item_size(axes), line_bytes = along.n * item;
    _Alignas(LINE_BYTES) char piece[REDUCTION_PIECE_BYTES];
    for (ptrdiff_t n; lines > 0; lines -= n, in += n * axis.step) {
        n = size_min(units->piece / along.n, lines);
        axes->convert(in, along.step, piece, n * along.n);
        copy_items((size_t)item, out, axis.out_step, piece, line_bytes, n);
        for (ptrdiff_t line = 0; line < n; line++, out += axis.out_step) {
            continue_line(axes, piece + line * line_bytes + item, item, out + along.out_step,
                          along.n - 1);
        }
    }
}

/* What is in a cache line is computed while it is in the cache. */
static void run_in_turns(const struct accumulation_units *units, const char *in, char *out,
                         ptrdiff_t lines)
{
    const struct accumulated_axes *axes = units->axes;
    const struct axis axis = fastest(&axes->kept), along = axes->along;
    const bool is_whole = axes->convert == NULL && along.n <= ACCUMULATED_WHOLE_COLUMN &&
                          along.out_step % ACCUMULATED_SAME_SETS_BYTES != 0;
    const ptrdiff_t most = is_whole ? along.n : units->piece;
    begin_lines(units, in, out, lines);
    for (ptrdiff_t first = 1, n; first < along.n; first += n) {
        n = next_piece(along.n - first, most);
        const char *from = in + first * along.step;
        char *to = out + first * along.out_step;
        for (ptrdiff_t line = 0; line < lines; line++, from += axis.step, to += axis.out_step) {
            if (axes->convert != NULL) {
                convert_and_continue_line(units, from, to, n);
            } else {
                continue_line(axes, from, along.step, to, n);
            }
        }
    }
}

/* All lines, whose elements are converted together. */
static void run_joined_in_turns(const struct accumulation_units *units, const char *in, char *out,
                                ptrdiff_t lines)
{
    const struct accumulated_axes *axes = units->axes;
    const struct axis axis = fastest(&axes->kept), along = axes->along;
    const ptrdiff_t item = item_size(axes), most = units->piece / lines;
    _Alignas(LINE_BYTES) char piece[REDUCTION_PIECE_BYTES];
    begin_lines(units, in, out, lines);
    for (ptrdiff_t first = 1, n; first < along.n; first += n) {
        n = next_piece(along.n - first, most);
        char *to = out + first * along.out_step;
        axes->convert(in + first * along.step, axis.step, piece, n * lines);
        for (ptrdiff_t line = 0; line < lines; line++, to += axis.out_step) {
            continue_line(axes, piece + line * item, lines * item, to, n);
        }
    }
}

/* ---- by blocks ---- */

static void run_blocks_of_line(const struct accumulation_units *units, const char *in, char *out)
{
    const struct accumulated_axes *axes = units->axes;
    begin_lines(units, in, out, 1);
    accumulate_compute(&(struct accumulation){
        .policy = axes->loop->policy,
        .kernel = axes->kernel,
        .convert = axes->convert,
        .before = out,
        .in = in + axes->along.step,
        .out = out + axes->along.out_step,
        .in_step = axes->along.step,
        .out_step = axes->along.out_step,
        .n = axes->along.n - 1,
    });
}

/* ---- which of them ---- */

static int threads_of(const struct accumulated_axes *axes, ptrdiff_t n, bool by_rows)
{
    const struct elementwise *loop = axes->loop;
    const int threads = threads_for(loop->policy, n,
                                    by_rows ? REDUCTION_THREADS_BYTES / (2 * item_size(axes))
                                            : REDUCTION_THREADS_ELEMENTS);
    return threads == 1 || loop->allows_threads == NULL || loop->allows_threads(loop) ? threads : 1;
}

/* Whether accumulate_order_axes() took another axis than the nearest one, which is the second then. */
static bool another_is_nearer(const struct accumulated_axes *axes)
{
    const struct axis *kept = axes->kept.axis;
    return axes->kept.count > 1 && magnitude(kept[1].out_step) < magnitude(kept[0].out_step);
}

/* Columns of a slice: the last row of results stays in a near cache, short lines do as a whole. Threads have
 * several slices each only if those are wide: memory is read in bursts of a slice's row. */
static ptrdiff_t slice_width(const struct accumulated_axes *axes, int threads, ptrdiff_t others)
{
    const bool small = axes->loop->policy->small_blocks;
    const ptrdiff_t item = item_size(axes), all = fastest(&axes->kept).n;
    const ptrdiff_t in_line = size_max(1, LINE_BYTES / item), each = ceiling(threads, others);
    const bool are_wide =
        small || all * item >= each * REDUCTION_BLOCKS_PER_THREAD * REDUCTION_WIDE_BYTES;
    const ptrdiff_t even =
        ceiling(all, each * (are_wide && threads > 1 ? REDUCTION_BLOCKS_PER_THREAD : 1));
    const ptrdiff_t narrowest = small ? in_line : size_max(in_line, REDUCTION_SLICE_BYTES / item);
    const ptrdiff_t kept_near =
        ACCUMULATED_ROW_BYTES / item / (lies_across(axes) ? 1 : axes->along.n);
    const ptrdiff_t widest =
        another_is_nearer(axes) ? size_max(narrowest, kept_near / axes->kept.axis[1].n) : kept_near;
    return size_min(size_max(ceiling(even, in_line) * in_line, narrowest), widest);
}

bool accumulate_spans_little(const struct accumulated_axes *axes, struct axis along)
{
    const bool is_running = axes->running != NULL && along.n >= ACCUMULATED_LEAST_LINE;
    return along.n * (magnitude(along.step) + magnitude(along.out_step)) <=
           (is_running ? ACCUMULATED_SHORT_RUNNING_BYTES : ACCUMULATED_SHORT_LINE_BYTES);
}

static ptrdiff_t least_columns(const struct accumulated_axes *axes)
{
    const ptrdiff_t least_line =
        axes->convert != NULL ? ACCUMULATED_CONVERTED_LINE : ACCUMULATED_LEAST_LINE;
    return axes->along.n < least_line ? ACCUMULATED_LEAST_COLUMNS_OF_SHORT_LINES
                                      : ACCUMULATED_LEAST_COLUMNS;
}

void accumulate_order_axes(struct accumulated_axes *axes)
{
    struct axis *kept = axes->kept.axis;
    if (!axes->takes_rows || fastest(&axes->kept).n >= ACCUMULATED_LEAST_COLUMNS) {
        return;
    }
    const bool is_short = accumulate_spans_little(axes, axes->along);
    int longest = 0;
    for (int i = 1; i < axes->kept.count; i++) {
        const bool suits =
            is_short || magnitude(kept[i].out_step) < magnitude(axes->along.out_step);
        longest = suits && kept[i].n > kept[longest].n ? i : longest;
    }
    if (longest > 0 && kept[longest].n >= least_columns(axes)) {
        const struct axis row = kept[longest];
        memmove(kept + 1, kept, (size_t)longest * sizeof *kept);
        kept[0] = row;
    }
}

/* Lines of a unit: in turns, those of a cache line; else several short ones, if what is around them takes longer. */
static ptrdiff_t lines_together(const struct accumulated_axes *axes,
                                const struct accumulation_cut *cut)
{
    const ptrdiff_t item = item_size(axes);
    if (cut->way == BY_TURNS) {
        return size_max(1, LINE_BYTES / item);
    }
    const ptrdiff_t all = fastest(&axes->kept).n;
    const ptrdiff_t even = cut->threads > 1 ? cut->threads * REDUCTION_BLOCKS_PER_THREAD : 1;
    const ptrdiff_t most = REDUCTION_PIECE_BYTES / (axes->along.n * item);
    return size_max(1, size_min(most, ceiling(all, even)));
}

static bool goes_by_rows(const struct accumulated_axes *axes)
{
    return axes->takes_rows && fastest(&axes->kept).n >= least_columns(axes) &&
           (lies_across(axes) || accumulate_spans_little(axes, axes->along));
}

/* Of those that do not. */
static enum accumulation_way way_of(const struct accumulated_axes *axes, int threads)
{
    const struct axis axis = fastest(&axes->kept), along = axes->along;
    const ptrdiff_t lines = size_from(&axes->kept, 0);
    if (axes->kernel != NULL && (lines == 1 || lines < threads)) {
        return BY_BLOCKS;
    }
    if (lies_across(axes)) {
        return BY_TURNS;
    }
    const bool are_joined = axes->convert != NULL && axis.n > 1 &&
                            axis.step == along.n * along.step &&
                            2 * along.n * item_size(axes) <= REDUCTION_PIECE_BYTES;
    return are_joined ? BY_JOINED_LINES : BY_LINES;
}

struct accumulation_cut accumulate_cut(const struct accumulated_axes *axes)
{
    const struct axis axis = fastest(&axes->kept);
    const bool by_rows = goes_by_rows(axes);
    struct accumulation_cut cut = {
        .threads = threads_of(axes, size_from(&axes->kept, 0) * axes->along.n, by_rows),
        .first_other = by_rows && another_is_nearer(axes) ? 2 : 1,
    };
    const ptrdiff_t others = size_from(&axes->kept, cut.first_other);
    cut.way = by_rows ? BY_ROWS : way_of(axes, cut.threads);
    cut.width = cut.way == BY_ROWS     ? slice_width(axes, cut.threads, others)
                : cut.way == BY_BLOCKS ? 1
                                       : lines_together(axes, &cut);
    cut.slices = ceiling(axis.n, cut.width);
    if (cut.way == BY_TURNS && axes->convert != NULL && cut.slices == 1 && axis.n > 1 &&
        axes->along.step == axis.n * axis.step) {
        cut.way = BY_JOINED_TURNS;
    }
    cut.units = cut.slices * others;
    const ptrdiff_t bytes = size_min(cut.width, axis.n) * axes->along.n * item_size(axes);
    cut.chunk = axes->loop->policy->small_blocks ? 1 : ceiling(REDUCTION_CHUNK_BYTES, bytes);
    cut.chunk = size_max(1, size_min(cut.chunk, cut.units / cut.threads));
    return cut;
}

/* ---- carried out ---- */

typedef void run_unit(const struct accumulation_units *units, const char *in, char *out,
                      ptrdiff_t lines);
static run_unit *const runs[] = {
    [BY_LINES] = run_lines,    [BY_JOINED_LINES] = run_joined_lines,
    [BY_TURNS] = run_in_turns, [BY_JOINED_TURNS] = run_joined_in_turns,
    [BY_ROWS] = run_rows,
};

static void run_units(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct accumulation_units *units = context;
    const struct accumulated_axes *axes = units->axes;
    const struct inner_loop_hooks *hooks = axes->loop->hooks;
    if (hooks != NULL) {
        hooks->before_chunk(axes->hook_data);
    }
    ptrdiff_t slice = first % units->cut->slices, others = first / units->cut->slices;
    for (ptrdiff_t unit = 0; unit < count; unit++) {
        const char *in;
        char *out;
        const ptrdiff_t lines = find_unit(units, slice, others, &in, &out);
        runs[units->cut->way](units, in, out, lines);
        if (++slice == units->cut->slices) {
            slice = 0;
            others++;
        }
    }
    if (hooks != NULL) {
        hooks->after_chunk(axes->hook_data, first);
    }
}

static void run_on_threads(struct accumulation_units *units)
{
    const struct accumulation_cut *cut = units->cut;
    const struct inner_loop_hooks *hooks = units->axes->loop->hooks;
    if (hooks != NULL) {
        hooks->before_threads(units->axes->hook_data);
    }
    region_run_ranges(units->axes->loop->policy, cut->threads, cut->units, cut->chunk, run_units,
                      units);
    if (hooks != NULL) {
        hooks->after_threads(units->axes->hook_data);
    }
}

void accumulate_axes(const struct accumulated_axes *axes, const struct accumulation_cut *cut)
{
    struct accumulation_units units = {
        .axes = axes,
        .cut = cut,
        .piece = REDUCTION_PIECE_BYTES / item_size(axes),
    };
    if (cut->way == BY_BLOCKS) {
        for (ptrdiff_t line = 0; line < cut->units; line++) {
            const char *in;
            char *out;
            find_unit(&units, line % cut->slices, line / cut->slices, &in, &out);
            run_blocks_of_line(&units, in, out);
        }
        return;
    }
    if (cut->way == BY_ROWS) {
        ptrdiff_t step[3];
        find_row_steps(axes, step);
        units.kernel = elementwise_choose(axes->loop, step, false);
    }
    if (cut->threads > 1 && cut->units > cut->chunk) {
        run_on_threads(&units);
    } else {
        run_units(&units, 0, cut->units);
    }
}
