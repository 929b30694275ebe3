/* Blocks of segments times lines are shared by threads; a segment that is longer than a thread's share is
 * shared itself, as any reduction is. */
#include "segments.h"

#include "kernels/copy/copy_items.h"
#include "kernels/sizes.h"
#include "kernels/vector.h"
#include "memory/workspace.h"
#include "reduction.h"
#include "reduction_cutoffs.h"
#include "reduction_split.h"
#include "threads/limit.h"
#include "threads/region.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    SUMS_BYTES = 4096,          /* of a row's sums, on the stack */
    COLUMN_BLOCK_BYTES = 32768, /* so that columns find the lines that their neighbours have read */
    ROWS_FROM_COLUMNS = 16,     /* of integers: fewer are reduced one by one */
    CONVERTED_BYTES = 4 << 20,  /* of the longest segment */
    MEASURED_AT_ONCE = 64 << 10, /* indices */
    FEW_SEGMENTS = 16,           /* whose bounds are copied */
};

struct segment_split {
    const struct segments *segments;
    ptrdiff_t columns, slices; /* of the fastest kept axis in a block; blocks side by side */
    ptrdiff_t range, ranges;   /* segments in a block; blocks along them */
    ptrdiff_t others;          /* indices of the slower kept axes in a block */
    ptrdiff_t blocks;
    ptrdiff_t long_from; /* longer segments are not in blocks */
    bool by_rows;
    bool copies_rows;        /* of segments that are one element each */
    bool from_memory;        /* what is read exceeds the caches */
    const ptrdiff_t *bounds; /* of few segments, with the end of the last one; NULL: of many */
    size_t scratch_bytes;    /* of each thread */
    char *scratch;           /* the caller's */
    _Atomic ptrdiff_t next;
};

/* ---- lengths ---- */

static ptrdiff_t end_of(const struct segments *segments, ptrdiff_t k)
{
    return k + 1 < segments->count ? segments->indices[k + 1] : segments->n;
}

static ptrdiff_t length_of(const struct segments *segments, ptrdiff_t k)
{
    /* Unsigned: indices that are surveyed may be anything. */
    return size_max((ptrdiff_t)((size_t)end_of(segments, k) - (size_t)segments->indices[k]), 1);
}

struct segment_survey {
    const struct segments *segments;
    _Atomic ptrdiff_t longest, total;
    _Atomic bool found_outside;
};

static void survey_indices(void *context, ptrdiff_t first, ptrdiff_t count)
{
    struct segment_survey *survey = context;
    const struct segments *segments = survey->segments;
    ptrdiff_t longest = 1;
    size_t total = 0;
    bool outside = false;
    for (ptrdiff_t k = first; k < first + count; k++) {
        const ptrdiff_t length = length_of(segments, k);
        outside |= (size_t)segments->indices[k] >= (size_t)segments->n;
        longest = size_max(longest, length);
        total += (size_t)length;
    }
    atomic_fetch_add(&survey->total, (ptrdiff_t)total);
    if (outside) {
        survey->found_outside = true;
    }
    ptrdiff_t seen = survey->longest;
    while (seen < longest && !atomic_compare_exchange_weak(&survey->longest, &seen, longest)) {
    }
}

struct segment_lengths segments_measure(const struct segments *segments)
{
    struct segment_survey survey = {.segments = segments};
    const bool is_short = segments->count <= MEASURED_AT_ONCE || !region_available();
    region_run_ranges(segments->policy, is_short ? 1 : threads_limit().threads, segments->count,
                      MEASURED_AT_ONCE, survey_indices, &survey);
    return (struct segment_lengths){!survey.found_outside, survey.longest, survey.total};
}

/* What there is to do, as elements that are read. */
static ptrdiff_t work_of(const struct segments *segments, const struct segment_lengths *lengths)
{
    const ptrdiff_t each = REDUCTION_SEGMENT_BYTES / (ptrdiff_t)segments->conversion.from_size;
    return (lengths->total + segments->count * each) * size_from(&segments->kept, 0);
}

static bool are_from_memory(const struct segments *segments, const struct segment_lengths *lengths)
{
    const struct axis axis = fastest(&segments->kept);
    const ptrdiff_t apart = magnitude(segments->step);
    const bool are_closer = axis.n > 1 && axis.step != 0 && magnitude(axis.step) < apart;
    return bytes_of_lines(lengths->total * size_from(&segments->kept, 0),
                          segments->conversion.from_size,
                          are_closer ? axis.step : apart) > REDUCTION_FROM_MEMORY_BYTES;
}

int segments_threads(const struct segments *segments, const struct segment_lengths *lengths)
{
    const ptrdiff_t item = (ptrdiff_t)segments->conversion.from_size;
    const bool is_near = segments->step == item || fastest(&segments->kept).step == item;
    return threads_for(segments->policy, work_of(segments, lengths),
                       is_near ? REDUCTION_THREADS_BYTES / item : REDUCTION_THREADS_ELEMENTS);
}

/* ---- blocks ---- */

static void reduce_converted(const struct segments *segments, const char *data, char *out,
                             ptrdiff_t first, ptrdiff_t end, char *scratch)
{
    for (ptrdiff_t k = first; k < end; k++) {
        const ptrdiff_t bounds[] = {0, length_of(segments, k)};
        segments->conversion.convert(data + segments->indices[k] * segments->step, segments->step,
                                     scratch, bounds[1], false);
        segments->kernel->reduce_segments(segments->kernel, scratch,
                                          (ptrdiff_t)segments->kernel->item_size, bounds, 1, false,
                                          out + k * segments->out_step, 0, segments->out_size);
    }
}

/* Segments of one line, none of which is long. */
static void reduce_along_line(const struct segment_split *split, const char *data, char *out,
                              ptrdiff_t first, ptrdiff_t end, char *scratch)
{
    const struct segments *segments = split->segments;
    if (segments->conversion.convert != NULL) {
        reduce_converted(segments, data, out, first, end, scratch);
        return;
    }
    const struct reduction_kernel *kernel = segments->kernel;
    if (split->bounds != NULL) {
        kernel->reduce_segments(kernel, data, segments->step, split->bounds + first, end - first,
                                split->from_memory, out + first * segments->out_step,
                                segments->out_step, segments->out_size);
        return;
    }
    const bool has_last = end == segments->count;
    if (end - has_last > first) {
        kernel->reduce_segments(kernel, data, segments->step, segments->indices + first,
                                end - has_last - first, split->from_memory,
                                out + first * segments->out_step, segments->out_step,
                                segments->out_size);
    }
    if (has_last) {
        const ptrdiff_t bounds[] = {segments->indices[end - 1], segments->n};
        kernel->reduce_segments(kernel, data, segments->step, bounds, 1, split->from_memory,
                                out + (end - 1) * segments->out_step, 0, segments->out_size);
    }
}

/* All columns at once; for kernels that reduce in any order. */
static void reduce_rows_of_segments(const struct segment_split *split, const char *data, char *out,
                                    ptrdiff_t columns, ptrdiff_t first, ptrdiff_t end)
{
    const struct segments *segments = split->segments;
    const struct axis axis = fastest(&segments->kept);
    _Alignas(LINE_BYTES) char sums[SUMS_BYTES];
    for (ptrdiff_t k = first; k < end; k++) {
        segments->kernel->reduce_rows(
            segments->kernel, data + segments->indices[k] * segments->step, segments->step,
            length_of(segments, k), axis.step, columns, false, false, sums);
        segments->kernel->store(segments->kernel, sums, columns, out + k * segments->out_step,
                                axis.out_step, segments->out_size, false);
    }
}

static bool are_single(const struct segments *segments, ptrdiff_t first, ptrdiff_t end)
{
    while (first < end && length_of(segments, first) == 1) {
        first++;
    }
    return first == end;
}

static void copy_rows(const struct segment_split *split, const char *data, char *out,
                      ptrdiff_t columns, ptrdiff_t first, ptrdiff_t end)
{
    const struct segments *segments = split->segments;
    const struct axis axis = fastest(&segments->kept);
    for (ptrdiff_t k = first; k < end; k++) {
        copy_items(segments->out_size, out + k * segments->out_step, axis.out_step,
                   data + segments->indices[k] * segments->step, axis.step, columns);
    }
}

static void reduce_lines(const struct segment_split *split, const char *data, char *out,
                         ptrdiff_t columns, ptrdiff_t first, ptrdiff_t end, char *scratch)
{
    const struct axis axis = fastest(&split->segments->kept);
    if (split->copies_rows && are_single(split->segments, first, end)) {
        copy_rows(split, data, out, columns, first, end);
        return;
    }
    if (split->by_rows) {
        reduce_rows_of_segments(split, data, out, columns, first, end);
        return;
    }
    for (ptrdiff_t column = 0; column < columns; column++) {
        reduce_along_line(split, data + column * axis.step, out + column * axis.out_step, first,
                          end, scratch);
    }
}

/* Segments of a range, of the columns that begin there. */
static void run_range(const struct segment_split *split, ptrdiff_t range, const char *data,
                      char *out, ptrdiff_t columns, char *scratch)
{
    const ptrdiff_t last = size_min((range + 1) * split->range, split->segments->count);
    for (ptrdiff_t first = range * split->range, end; first < last; first = end + 1) {
        end = split->long_from == PTRDIFF_MAX ? last : first;
        while (end < last && length_of(split->segments, end) < split->long_from) {
            end++;
        }
        if (end > first) {
            reduce_lines(split, data, out, columns, first, end, scratch);
        }
    }
}

static void run_segments(const struct segment_split *split, ptrdiff_t block, char *scratch)
{
    const struct segments *segments = split->segments;
    const struct axes *kept = &segments->kept;
    const struct axis axis = fastest(kept);
    const ptrdiff_t slice = block % split->slices * split->columns;
    const ptrdiff_t columns = size_min(split->columns, axis.n - slice);
    const ptrdiff_t range = block / split->slices % split->ranges;
    const ptrdiff_t begin = block / split->slices / split->ranges * split->others;
    const ptrdiff_t end = size_min(begin + split->others, size_from(kept, 1));
    for (ptrdiff_t i = begin; i < end; i++) {
        run_range(split, range, segments->data + slice * axis.step + offset_of(kept, 1, i, false),
                  segments->out + slice * axis.out_step + offset_of(kept, 1, i, true), columns,
                  scratch);
    }
}

/* A worker that is refused memory leaves the blocks to the others. */
static void run_segment_blocks(void *context, int index)
{
    struct segment_split *split = context;
    const bool has_own = split->scratch_bytes > 0 && index > 0;
    const struct workspace own =
        has_own ? workspace_take(split->scratch_bytes) : (struct workspace){0};
    char *scratch = has_own ? own.data : split->scratch;
    ptrdiff_t block;
    while ((scratch != NULL || !has_own) &&
           (block = atomic_fetch_add(&split->next, 1)) < split->blocks) {
        run_segments(split, block, scratch);
    }
    workspace_give_back(own);
}

/* Columns that lie closer to each other than elements of a segment are read together, and so are their
 * segments, as long as they stay in the cache. Of other lines a block has several if they are short. */
static void split_segments(struct segment_split *split, ptrdiff_t average)
{
    const struct segments *segments = split->segments;
    const int threads = segments->threads;
    const struct reduction_kernel *kernel = segments->kernel;
    const struct axis axis = fastest(&segments->kept);
    const ptrdiff_t item = (ptrdiff_t)segments->conversion.from_size;
    const bool are_columns = axis.n > 1 && axis.step != 0 && labs(axis.step) < labs(segments->step);
    const ptrdiff_t line = size_max(LINE_BYTES / item, 1);
    ptrdiff_t block_bytes = REDUCTION_CHUNK_BYTES;
    const ptrdiff_t line_bytes = segments->count * (average * item + REDUCTION_SEGMENT_BYTES);
    const ptrdiff_t even_columns = even_share(axis.n, threads);
    split->columns = size_max(size_min(even_columns, block_bytes / line_bytes), 1);
    /* Results side by side are one thread's: they share cache lines. */
    const ptrdiff_t beside =
        threads > 1 ? ceiling(LINE_BYTES, size_max(magnitude(axis.out_step), 1)) : 1;
    split->columns = size_min(axis.n, ceiling(split->columns, beside) * beside);
    /* NumPy's loops have vectors for contiguous rows only. */
    const bool takes_rows = axis.step == item || !kernel->sums_are_results;
    split->copies_rows = are_columns && segments->conversion.convert == NULL &&
                         segments->conversion.from_size == segments->out_size;
    split->by_rows = are_columns && takes_rows && axis.n >= ROWS_FROM_COLUMNS &&
                     kernel->any_order && !kernel->zeros_tie &&
                     segments->conversion.convert == NULL;
    if (split->by_rows) {
        split->columns = size_min(axis.n, SUMS_BYTES / (ptrdiff_t)kernel->sum_size);
    } else if (are_columns) {
        block_bytes = COLUMN_BLOCK_BYTES;
        split->columns =
            size_min(axis.n, size_max(block_bytes / (average * item) / line, 1) * line);
    }
    const ptrdiff_t bytes = split->columns * (average * item + REDUCTION_SEGMENT_BYTES);
    /* Whole lines are read in the order of memory. */
    const bool are_whole = !are_columns && (threads == 1 || line_bytes <= block_bytes);
    split->range =
        are_whole ? segments->count : size_min(size_max(block_bytes / bytes, 1), segments->count);
    const ptrdiff_t others = size_from(&segments->kept, 1);
    const ptrdiff_t even_others = even_share(others, threads);
    split->others = size_max(1, size_min(even_others, block_bytes / (bytes * split->range)));
    if (segments->policy->small_blocks && threads > 1) {
        split->range = size_min(split->range, 2);
        split->columns = size_min(split->columns, ROWS_FROM_COLUMNS);
        split->others = 1;
    }
    split->slices = ceiling(axis.n, split->columns);
    split->ranges = ceiling(segments->count, split->range);
    split->blocks = split->slices * split->ranges * ceiling(others, split->others);
}

/* ---- long segments ---- */

/* One segment of all lines; in any order no element is the first. */
static bool reduce_long(const struct segments *segments, ptrdiff_t k)
{
    const bool onto = !segments->kernel->any_order;
    const ptrdiff_t n = length_of(segments, k) - onto;
    const char *first = segments->data + segments->indices[k] * segments->step;
    const struct reduction reduction = {
        .policy = segments->policy,
        .kernel = segments->kernel,
        .data = first + (onto ? segments->step : 0),
        .out = segments->out + k * segments->out_step,
        .kept = segments->kept,
        .inner = {1, {{n, segments->step, 0}}},
        .inner_call = n,
        .conversion = segments->conversion,
        .out_size = segments->out_size,
        .onto = onto,
        .threads = segments->threads,
    };
    if (onto) {
        copy_along(segments->out_size, &segments->kept, first, reduction.out);
    }
    return reduction_compute(&reduction);
}

static bool reduce_all_long(const struct segments *segments, ptrdiff_t long_from)
{
    for (ptrdiff_t k = 0; k < segments->count; k++) {
        if (length_of(segments, k) >= long_from && !reduce_long(segments, k)) {
            return false;
        }
    }
    return true;
}

/* From which length on segments are shared by the threads themselves: those of which a block has more than
 * keeps threads evenly busy. */
static ptrdiff_t long_segments_from(const struct segment_split *split,
                                    const struct segment_lengths *lengths)
{
    const struct segments *segments = split->segments;
    const int threads = segments->threads;
    const bool is_possible =
        threads > 1 && segments->conversion.convert == NULL && !segments->kernel->zeros_tie;
    const ptrdiff_t item = (ptrdiff_t)segments->conversion.from_size;
    const ptrdiff_t pays = segments->policy->threshold != 0 ? segments->policy->threshold
                                                            : REDUCTION_THREADS_BYTES / item;
    const ptrdiff_t lines = size_from(&segments->kept, 0);
    const ptrdiff_t even =
        ceiling(lengths->total * lines, threads * REDUCTION_BLOCKS_PER_THREAD * split->columns);
    const ptrdiff_t from = size_max(even, ceiling(pays, lines));
    return is_possible && from <= lengths->longest ? size_max(from, 2) : PTRDIFF_MAX;
}

bool segments_compute(const struct segments *segments, const struct segment_lengths *lengths)
{
    struct segment_split split = {.segments = segments};
    split_segments(&split, lengths->total / segments->count);
    split.from_memory = are_from_memory(segments, lengths);
    split.long_from = long_segments_from(&split, lengths);
    ptrdiff_t bounds[FEW_SEGMENTS + 1];
    if (segments->count <= FEW_SEGMENTS) {
        memcpy(bounds, segments->indices, (size_t)segments->count * sizeof *bounds);
        bounds[segments->count] = segments->n;
        split.bounds = bounds;
    }
    struct workspace workspace = {0};
    if (segments->conversion.convert != NULL) {
        if (lengths->longest > CONVERTED_BYTES / (ptrdiff_t)segments->conversion.to_size) {
            return false;
        }
        split.scratch_bytes = gather_bytes(&segments->conversion, lengths->longest);
        workspace = workspace_take(split.scratch_bytes);
        if (workspace.data == NULL) {
            return false;
        }
        split.scratch = workspace.data;
    }
    const bool done = split.long_from == PTRDIFF_MAX || reduce_all_long(segments, split.long_from);
    if (done) {
        region_run(segments->policy, split.blocks > 1 ? segments->threads : 1, run_segment_blocks,
                   &split);
    }
    workspace_give_back(workspace);
    return done;
}
