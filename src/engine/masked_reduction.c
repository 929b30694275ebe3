/* Where the order does not matter, and across rows, pieces are copied with something neutral in the place of what is
 * masked: that takes no branches. Else sums of runs are computed by all threads, and added to the result by one. */
#include "masked_reduction.h"

#include "kernels/copy/blend.h"
#include "kernels/copy/copy_items.h"
#include "kernels/copy/find_bool.h"
#include "kernels/sizes.h"
#include "memory/workspace.h"
#include "reduction_cutoffs.h"
#include "threads/region.h"

enum {
    MOST_SUM_BYTES = 16, /* of one sum */
    COLUMN_BYTES = 4096, /* of a piece of rows, and of the sums of its columns */
    MOST_SEEN = 512,     /* bools of which runs are counted, */
    ROWS_BY_RUNS = 8,    /* in one of so many rows */
    APART = 8,           /* times as long an element that lies apart takes, at most a cache line */
    RUN_BLOCK = 8192,    /* elements whose runs a thread sums at a time */
    ROUND_BLOCKS = 64,   /* blocks whose sums are in memory */
};

struct masked_split {
    const struct masked_reduction *masked;
    struct axes reduced; /* axes of a result's elements */
    ptrdiff_t columns;   /* results of the fastest kept axis that a block computes together, */
    ptrdiff_t slices;    /* and how often */
    ptrdiff_t cuts;      /* blocks of each result, */
    char *partials;      /* which have sums of their own if there are several */
    void (*run)(const struct masked_split *split, ptrdiff_t block);
};

/* The results of a block. */
struct columns {
    ptrdiff_t n, step, out_step;
    const char *data;
    char *out;
};

static struct columns columns_of(const struct masked_split *split, ptrdiff_t block)
{
    const struct reduction *reduction = &split->masked->reduction;
    const struct axis axis = fastest(&reduction->kept);
    const ptrdiff_t result = block / split->cuts, first = result % split->slices * split->columns;
    const ptrdiff_t others = result / split->slices;
    return (struct columns){
        .n = size_min(split->columns, axis.n - first),
        .step = axis.step,
        .out_step = axis.out_step,
        .data = reduction->data + first * axis.step + offset_of(&reduction->kept, 1, others, false),
        .out =
            reduction->out + first * axis.out_step + offset_of(&reduction->kept, 1, others, true),
    };
}

static ptrdiff_t results_of(const struct masked_split *split)
{
    return size_from(&split->masked->reduction.kept, 1) * split->slices;
}

static const char *mask_of(const struct masked_reduction *masked, const char *data)
{
    return masked->mask + mask_step_of(masked, data - masked->reduction.data);
}

/* ---- neutral elements ---- */

/* What copying a run takes, as elements that are blended; strided ones take as long each to copy. */
enum { RUN_ELEMENTS = 64, STRIDED_RUN_ELEMENTS = 48, LONG_RUN_BYTES = 512 };

static char *partials_of(const struct masked_split *split, ptrdiff_t block)
{
    return split->partials +
           (size_t)(block * split->columns) * split->masked->reduction.kernel->sum_size;
}

/* Of the elements of a result. */
static ptrdiff_t pieces_of(const struct masked_split *split)
{
    const ptrdiff_t length =
        REDUCTION_PIECE_BYTES / (ptrdiff_t)split->masked->reduction.kernel->item_size;
    return ceiling(fastest(&split->reduced).n, length) * size_from(&split->reduced, 1);
}

/* Elements one after the other, and what of them is true. */
struct masked_range {
    const char *from, *mask;
    ptrdiff_t step, mask_step, n;
};

/* As masks ascend, bools are looked at some at a time. */
static struct masked_range ascending(struct masked_range range)
{
    if (range.mask_step < 0) {
        range.from += (range.n - 1) * range.step;
        range.mask += (range.n - 1) * range.mask_step;
        range.step = -range.step;
        range.mask_step = -range.mask_step;
    }
    return range;
}

static void add_to_total(const struct reduction_kernel *kernel, const char *from, ptrdiff_t step,
                         ptrdiff_t n, char *total)
{
    _Alignas(LINE_BYTES) char sum[MOST_SUM_BYTES];
    kernel->reduce_each(kernel, from, step, n, 0, 1, false, sum);
    kernel->combine(kernel, total, sum, kernel->sum_size);
}

/* Whether copying the runs of true elements of a piece takes less time than blending all. */
static bool has_few_runs(const char *mask, ptrdiff_t n, bool are_contiguous)
{
    const struct true_bools found = count_true(mask, 1, n);
    return are_contiguous ? found.runs * RUN_ELEMENTS <= n
                          : found.runs * STRIDED_RUN_ELEMENTS + found.count * 2 <= n * 3;
}

/* Copies the runs of a piece that begins with a true element next to each other, and returns how many elements that
 * are. */
static ptrdiff_t copy_runs(size_t size, char *to, const char *from, ptrdiff_t step,
                           const char *mask, ptrdiff_t n)
{
    const ptrdiff_t item = (ptrdiff_t)size;
    ptrdiff_t copied = 0;
    for (ptrdiff_t first = 0, end; first < n; first = find_bool_from(true, mask, 1, end, n)) {
        end = find_bool_from(false, mask, 1, first, n);
        copy_items(size, to + copied * item, item, from + first * step, step, end - first);
        copied += end - first;
    }
    return copied;
}

/* A piece that begins with a true element: what is true, or all with neutral elements for the others. */
static void add_piece(const struct masked_reduction *masked, const char *data, ptrdiff_t step,
                      const char *mask, ptrdiff_t mask_step, ptrdiff_t n, char *total)
{
    const struct reduction_kernel *kernel = masked->reduction.kernel;
    const ptrdiff_t item = (ptrdiff_t)kernel->item_size;
    _Alignas(LINE_BYTES) char near[REDUCTION_PIECE_BYTES], bools[REDUCTION_PIECE_BYTES];
    if (mask_step != 1) {
        gather_bools(bools, mask, mask_step, n);
        mask = bools;
    }
    if (has_few_runs(mask, n, step == item)) {
        n = copy_runs(kernel->item_size, near, data, step, mask, n);
    } else if (kernel->reduce_masked != NULL && step == item) {
        _Alignas(LINE_BYTES) char sum[MOST_SUM_BYTES];
        kernel->reduce_masked(kernel, data, mask, n, sum);
        kernel->combine(kernel, total, sum, kernel->sum_size);
        return;
    } else {
        blend_items(kernel->item_size, near, data, step, mask, 1, masked->neutral, n);
    }
    add_to_total(kernel, near, item, n, total);
}

/* Whether no other element can change it. */
static bool is_final(const struct reduction_kernel *kernel, const char *total)
{
    return kernel->final >= 0 && *total == kernel->final;
}

/* Long runs by themselves, others in pieces. */
static void add_range(const struct masked_reduction *masked, const struct masked_range *range,
                      char *total)
{
    const struct reduction_kernel *kernel = masked->reduction.kernel;
    const ptrdiff_t step = range->step, mask_step = range->mask_step, all = range->n;
    const ptrdiff_t item = (ptrdiff_t)kernel->item_size;
    ptrdiff_t first = find_bool_from(true, range->mask, mask_step, 0, all);
    while (first < all && !is_final(kernel, total)) {
        const char *from = range->from + first * step;
        ptrdiff_t end = find_bool_from(false, range->mask, mask_step, first, all);
        if ((end - first) * item >= LONG_RUN_BYTES) {
            add_to_total(kernel, from, step, end - first, total);
        } else {
            end = size_min(first + REDUCTION_PIECE_BYTES / item, all);
            add_piece(masked, from, step, range->mask + first * mask_step, mask_step, end - first,
                      total);
        }
        first = find_bool_from(true, range->mask, mask_step, end, all);
    }
}

/* Of rows [row, row + rows), which a piece has room for, those with a true element, with neutral elements for what is
 * masked. */
static void add_short_rows(const struct masked_split *split, const char *data, ptrdiff_t row,
                           ptrdiff_t rows, char *total)
{
    const struct masked_reduction *masked = split->masked;
    const struct reduction_kernel *kernel = masked->reduction.kernel;
    const struct axis along = fastest(&split->reduced);
    const ptrdiff_t item = (ptrdiff_t)kernel->item_size;
    const ptrdiff_t mask_step = mask_step_of(masked, along.step);
    _Alignas(LINE_BYTES) char near[REDUCTION_PIECE_BYTES];
    ptrdiff_t n = 0;
    for (ptrdiff_t i = 0; i < rows; i++) {
        const char *from = data + offset_of(&split->reduced, 1, row + i, false);
        const char *mask = mask_of(masked, from);
        if (find_bool_from(true, mask, mask_step, 0, along.n) < along.n) {
            blend_items(kernel->item_size, near + n * item, from, along.step, mask, mask_step,
                        masked->neutral, along.n);
            n += along.n;
        }
    }
    if (n > 0) {
        add_to_total(kernel, near, item, n, total);
    }
}

static void run_pieces(const struct masked_split *split, ptrdiff_t block)
{
    const struct masked_reduction *masked = split->masked;
    const struct reduction *reduction = &masked->reduction;
    const struct reduction_kernel *kernel = reduction->kernel;
    const struct axis along = fastest(&split->reduced);
    const struct columns column = columns_of(split, block);
    const ptrdiff_t item = (ptrdiff_t)kernel->item_size, length = REDUCTION_PIECE_BYTES / item;
    const ptrdiff_t pieces = ceiling(along.n, length), all = pieces_of(split);
    const ptrdiff_t cut = block % split->cuts;
    const ptrdiff_t begin = all * cut / split->cuts, end = all * (cut + 1) / split->cuts;
    _Alignas(LINE_BYTES) char total[MOST_SUM_BYTES];
    kernel->reduce_each(kernel, masked->neutral, item, 1, 0, 1, false, total);
    for (ptrdiff_t i = begin, next; i < end && !is_final(kernel, total); i = next) {
        if (along.n * item <= LONG_RUN_BYTES) {
            next = size_min(i + length / along.n, end);
            add_short_rows(split, column.data, i, next - i, total);
            continue;
        }
        const ptrdiff_t row = i / pieces, first = i % pieces * length;
        next = size_min((row + 1) * pieces, end);
        const char *from =
            column.data + first * along.step + offset_of(&split->reduced, 1, row, false);
        const struct masked_range range = ascending((struct masked_range){
            from, mask_of(masked, from), along.step, mask_step_of(masked, along.step),
            size_min(along.n - first, (next - i) * length)});
        add_range(masked, &range, total);
    }
    if (split->cuts > 1) {
        memcpy(partials_of(split, block), total, kernel->sum_size);
    } else {
        kernel->store(kernel, total, 1, column.out, 0, reduction->out_size, true);
    }
}

/* Results of few elements: those of as many as fit a piece. */
static void run_short_results(const struct masked_split *split, ptrdiff_t block)
{
    const struct masked_reduction *masked = split->masked;
    const struct reduction *reduction = &masked->reduction;
    const struct reduction_kernel *kernel = reduction->kernel;
    const struct axis along = fastest(&split->reduced);
    const struct columns columns = columns_of(split, block);
    const ptrdiff_t item = (ptrdiff_t)kernel->item_size;
    const ptrdiff_t together = columns.step == along.n * along.step ? columns.n : 1;
    _Alignas(LINE_BYTES) char piece[REDUCTION_PIECE_BYTES], sums[REDUCTION_PIECE_BYTES];
    for (ptrdiff_t i = 0; i < columns.n; i += together) {
        const char *from = columns.data + i * columns.step;
        blend_items(kernel->item_size, piece + i * along.n * item, from, along.step,
                    mask_of(masked, from), mask_step_of(masked, along.step), masked->neutral,
                    together * along.n);
    }
    kernel->reduce_each(kernel, piece, item, along.n, along.n * item, columns.n, false, sums);
    kernel->store(kernel, sums, columns.n, columns.out, columns.out_step, reduction->out_size,
                  true);
}

/* One row: each run of true elements by itself. */
static void add_runs(const struct reduction_kernel *kernel, const char *from, ptrdiff_t step,
                     const char *mask, ptrdiff_t mask_step, ptrdiff_t n, char *sums)
{
    const bool is_sum = kernel->sum_size == kernel->item_size; /* each element, as it is stored */
    ptrdiff_t first = find_bool_from(true, mask, mask_step, 0, n);
    while (first < n) {
        const ptrdiff_t end = find_bool_from(false, mask, mask_step, first, n);
        char *const to = sums + (size_t)first * kernel->sum_size;
        if (is_sum && end - first == 1) {
            kernel->combine(kernel, to, from + first * step, kernel->sum_size);
        } else {
            kernel->reduce_rows(kernel, from + first * step, 0, 1, step, end - first, false, true,
                                to);
        }
        first = find_bool_from(true, mask, mask_step, end, n);
    }
}

/* Whether results can themselves be the sums of their columns. */
static bool may_sum_in_place(const struct reduction *reduction)
{
    const size_t size = reduction->kernel->sum_size;
    return size == reduction->out_size && fastest(&reduction->kept).out_step == (ptrdiff_t)size;
}

/* Whether the begin of a row of columns has few runs of true elements. */
static bool row_has_few_runs(const struct masked_split *split, const struct columns *columns,
                             ptrdiff_t row)
{
    const struct masked_reduction *masked = split->masked;
    const char *data = columns->data + offset_of(&split->reduced, 0, row, false);
    const ptrdiff_t seen = size_min(columns->n, MOST_SEEN);
    const ptrdiff_t runs =
        count_true(mask_of(masked, data), mask_step_of(masked, columns->step), seen).runs;
    const ptrdiff_t item = (ptrdiff_t)masked->reduction.kernel->item_size;
    const ptrdiff_t each = columns->step == item ? item : size_min(APART * item, LINE_BYTES);
    return runs * REDUCTION_MASKED_RUN_BYTES < seen * each;
}

/* Some rows of columns, by runs of true elements. */
static void add_rows_by_runs(const struct masked_split *split, const struct columns *columns,
                             ptrdiff_t row, ptrdiff_t rows, char *sums)
{
    const struct masked_reduction *masked = split->masked;
    const ptrdiff_t step = columns->step, mask_step = mask_step_of(masked, step);
    for (ptrdiff_t i = row; i < row + rows; i++) {
        const char *from = columns->data + offset_of(&split->reduced, 0, i, false);
        add_runs(masked->reduction.kernel, from, step, mask_of(masked, from), mask_step, columns->n,
                 sums);
    }
}

/* Some rows of columns, with neutral elements for what is masked. */
static void add_rows(const struct masked_split *split, const struct columns *columns, ptrdiff_t row,
                     ptrdiff_t rows, char *sums)
{
    const struct masked_reduction *masked = split->masked;
    const struct reduction_kernel *kernel = masked->reduction.kernel;
    const ptrdiff_t item = (ptrdiff_t)kernel->item_size, n = columns->n, step = columns->step;
    const ptrdiff_t mask_step = mask_step_of(masked, step), most = COLUMN_BYTES / item;
    _Alignas(LINE_BYTES) char piece[COLUMN_BYTES];
    for (ptrdiff_t first = 0; first < n; first += most) {
        const ptrdiff_t width = size_min(most, n - first);
        for (ptrdiff_t i = 0; i < rows; i++) {
            const char *from =
                columns->data + first * step + offset_of(&split->reduced, 0, row + i, false);
            blend_items(kernel->item_size, piece + i * width * item, from, step,
                        mask_of(masked, from), mask_step, masked->neutral, width);
        }
        kernel->reduce_rows(kernel, piece, width * item, rows, item, width, false, true,
                            sums + (size_t)first * kernel->sum_size);
    }
}

/* Some columns. Floats are added one after the other, to what the result begins with. */
static void run_columns(const struct masked_split *split, ptrdiff_t block)
{
    const struct reduction *reduction = &split->masked->reduction;
    const struct reduction_kernel *kernel = reduction->kernel;
    const struct columns columns = columns_of(split, block);
    const ptrdiff_t n = columns.n, all = size_from(&split->reduced, 0);
    const ptrdiff_t cut = block % split->cuts, end = all * (cut + 1) / split->cuts;
    const ptrdiff_t most = size_max(1, COLUMN_BYTES / (n * (ptrdiff_t)kernel->item_size));
    const bool in_order = !kernel->any_order;
    const bool in_place = split->cuts == 1 && may_sum_in_place(reduction);
    _Alignas(LINE_BYTES) char near[COLUMN_BYTES];
    char *const sums = in_place ? columns.out : near;
    if (!in_place) {
        kernel->reduce_rows(kernel, in_order ? columns.out : split->masked->neutral, 0, 1,
                            in_order ? columns.out_step : 0, n, false, false, sums);
    }
    for (ptrdiff_t row = all * cut / split->cuts, rows; row < end; row += rows) {
        const bool by_runs = row_has_few_runs(split, &columns, row);
        rows = size_min(by_runs ? size_max(most, ROWS_BY_RUNS) : most, end - row);
        (by_runs ? add_rows_by_runs : add_rows)(split, &columns, row, rows, sums);
    }
    if (split->cuts > 1) {
        memcpy(partials_of(split, block), sums, (size_t)n * kernel->sum_size);
    } else if (!in_place) {
        kernel->store(kernel, sums, n, columns.out, columns.out_step, reduction->out_size,
                      !in_order);
    }
}

static void store_partials(const struct masked_split *split)
{
    const struct reduction *reduction = &split->masked->reduction;
    for (ptrdiff_t block = 0; block < results_of(split) * split->cuts; block++) {
        const struct columns columns = columns_of(split, block);
        reduction->kernel->store(reduction->kernel, partials_of(split, block), columns.n,
                                 columns.out, columns.out_step, reduction->out_size, true);
    }
}

/* ---- sums of runs ---- */

/* Where the first run from an element on begins that does not go on from before it; `end`: none does before. */
static ptrdiff_t begin_of_runs(const char *mask, ptrdiff_t step, ptrdiff_t from, ptrdiff_t end)
{
    return from > 0 && mask[(from - 1) * step] != 0 ? find_bool_from(false, mask, step, from, end)
                                                    : from;
}

/* Sums the runs that begin in elements [first, end) of n; how many they are. */
static ptrdiff_t sum_runs(const struct masked_reduction *masked, const char *data, ptrdiff_t first,
                          ptrdiff_t end, ptrdiff_t n, char *sums)
{
    const struct axis along = masked->reduction.inner.axis[0];
    const ptrdiff_t mask_step = mask_step_of(masked, along.step);
    const char *mask = mask_of(masked, data);
    const ptrdiff_t begin = begin_of_runs(mask, mask_step, first, end);
    if (begin >= end) {
        return 0;
    }
    const ptrdiff_t last = end < n ? begin_of_runs(mask, mask_step, end, n) : n;
    return masked->reduction.kernel->reduce_runs(
        masked->reduction.kernel, data + begin * along.step, along.step, mask + begin * mask_step,
        mask_step, last - begin, sums);
}

static void run_in_order(const struct masked_split *split, ptrdiff_t block)
{
    const struct masked_reduction *masked = split->masked;
    const struct reduction *reduction = &masked->reduction;
    const struct columns columns = columns_of(split, block);
    const ptrdiff_t n = reduction->inner.axis[0].n, rows = size_from(&reduction->repeated, 0);
    const ptrdiff_t step = 2 * (REDUCTION_PIECE_BYTES / (ptrdiff_t)reduction->kernel->sum_size);
    _Alignas(LINE_BYTES) char sums[REDUCTION_PIECE_BYTES];
    for (ptrdiff_t i = 0; i < columns.n * rows; i++) {
        const ptrdiff_t column = i / rows;
        const char *data = columns.data + column * columns.step +
                           offset_of(&reduction->repeated, 0, i % rows, false);
        for (ptrdiff_t first = 0; first < n; first += step) {
            const ptrdiff_t runs =
                sum_runs(masked, data, first, size_min(first + step, n), n, sums);
            reduction->kernel->store(reduction->kernel, sums, runs,
                                     columns.out + column * columns.out_step, 0,
                                     reduction->out_size, true);
        }
    }
}

/* A round of blocks of one result. While some threads sum their runs, one adds up those of the round before. */
struct masked_round {
    const struct masked_reduction *masked;
    ptrdiff_t rows;   /* of a block */
    ptrdiff_t pieces; /* blocks of a row, if it is long */
    const char *data;
    char *out;
    char *sums, *sums_before; /* of each block */
    ptrdiff_t counts[ROUND_BLOCKS], counts_before[ROUND_BLOCKS];
    ptrdiff_t first, blocks, blocks_before;
};

static size_t bytes_of_block(const struct reduction_kernel *kernel)
{
    return (RUN_BLOCK / 2 + 1) * kernel->sum_size;
}

static void add_round_before(struct masked_round *round)
{
    const struct reduction *reduction = &round->masked->reduction;
    for (ptrdiff_t i = 0; i < round->blocks_before; i++) {
        reduction->kernel->store(reduction->kernel,
                                 round->sums_before + (size_t)i * bytes_of_block(reduction->kernel),
                                 round->counts_before[i], round->out, 0, reduction->out_size, true);
    }
}

/* Sums the runs of a block, how many they are. */
static ptrdiff_t sum_block(const struct masked_round *round, ptrdiff_t block, char *sums)
{
    const struct reduction *reduction = &round->masked->reduction;
    const ptrdiff_t n = reduction->inner.axis[0].n, first = block % round->pieces * RUN_BLOCK;
    const ptrdiff_t begin = block / round->pieces * round->rows;
    const ptrdiff_t end = size_min(begin + round->rows, size_from(&reduction->repeated, 0));
    ptrdiff_t runs = 0;
    for (ptrdiff_t row = begin; row < end; row++) {
        runs += sum_runs(
            round->masked, round->data + offset_of(&reduction->repeated, 0, row, false), first,
            size_min(first + RUN_BLOCK, n), n, sums + (size_t)runs * reduction->kernel->sum_size);
    }
    return runs;
}

/* Task 0 is the round before, the others are blocks. */
static void run_round(void *context, ptrdiff_t first_task, ptrdiff_t count)
{
    struct masked_round *round = context;
    for (ptrdiff_t task = first_task; task < first_task + count; task++) {
        if (task == 0) {
            add_round_before(round);
            continue;
        }
        round->counts[task - 1] = sum_block(
            round, round->first + task - 1,
            round->sums + (size_t)(task - 1) * bytes_of_block(round->masked->reduction.kernel));
    }
}

static void run_rounds(struct masked_round *round, int threads)
{
    const struct reduction *reduction = &round->masked->reduction;
    const ptrdiff_t rows = size_from(&reduction->repeated, 0);
    const ptrdiff_t blocks = ceiling(rows, round->rows) * round->pieces;
    round->blocks = 0;
    for (round->first = 0; round->first < blocks || round->blocks > 0;
         round->first += ROUND_BLOCKS) {
        char *const sums = round->sums_before;
        round->sums_before = round->sums;
        round->sums = sums;
        memcpy(round->counts_before, round->counts, sizeof round->counts);
        round->blocks_before = round->blocks;
        round->blocks = size_max(size_min(ROUND_BLOCKS, blocks - round->first), 0);
        region_run_ranges(reduction->policy, threads, round->blocks + 1, 1, run_round, round);
    }
}

static bool sum_few_results(const struct masked_reduction *masked, int threads)
{
    const struct reduction *reduction = &masked->reduction;
    const size_t half = ROUND_BLOCKS * bytes_of_block(reduction->kernel);
    const struct workspace workspace = workspace_take(2 * half);
    if (workspace.data == NULL) {
        return false;
    }
    const ptrdiff_t n = reduction->inner.axis[0].n;
    struct masked_round round = {
        .masked = masked,
        .rows = size_max(1, RUN_BLOCK / (n + 1)), /* every other element may be a run */
        .pieces = ceiling(n, RUN_BLOCK),
        .sums = workspace.data,
        .sums_before = workspace.data + half,
    };
    for (ptrdiff_t result = 0; result < size_from(&reduction->kept, 0); result++) {
        round.data = reduction->data + offset_of(&reduction->kept, 0, result, false);
        round.out = reduction->out + offset_of(&reduction->kept, 0, result, true);
        run_rounds(&round, threads);
    }
    workspace_give_back(workspace);
    return true;
}

/* ---- carried out ---- */

static void run_masked_blocks(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct masked_split *split = context;
    for (ptrdiff_t block = first; block < first + count; block++) {
        split->run(split, block);
    }
}

/* So many results are computed together that rows are read in wide slices, and threads have some each. */
static ptrdiff_t columns_together(const struct reduction *reduction, ptrdiff_t wanted)
{
    const ptrdiff_t size = (ptrdiff_t)reduction->kernel->sum_size;
    const ptrdiff_t all = fastest(&reduction->kept).n;
    const ptrdiff_t n = may_sum_in_place(reduction) ? all : size_min(all, COLUMN_BYTES / size);
    return size_max(size_min(n, REDUCTION_SLICE_BYTES / size),
                    size_min(n, size_from(&reduction->kept, 0) / wanted));
}

/* How many results of few elements are computed together: 1 if they have too many. */
static ptrdiff_t short_results_together(const struct masked_split *split)
{
    const struct reduction *reduction = &split->masked->reduction;
    const ptrdiff_t bytes = fastest(&split->reduced).n * (ptrdiff_t)reduction->kernel->item_size;
    const ptrdiff_t longest = size_max(bytes, (ptrdiff_t)reduction->kernel->sum_size);
    const ptrdiff_t together =
        size_min(fastest(&reduction->kept).n, REDUCTION_PIECE_BYTES / longest);
    return size_from(&split->reduced, 1) == 1 ? size_max(together, 1) : 1;
}

bool masked_reduction_compute(const struct masked_reduction *masked)
{
    const struct reduction *reduction = &masked->reduction;
    const struct reduction_kernel *kernel = reduction->kernel;
    const int threads = reduction->threads;
    const ptrdiff_t wanted = threads > 1 ? (ptrdiff_t)threads * REDUCTION_BLOCKS_PER_THREAD : 1;
    const bool by_columns = reduction->inner.count == 0;
    struct masked_split split = {.masked = masked, .columns = 1, .cuts = 1};
    axes_append(&split.reduced, &reduction->inner);
    axes_append(&split.reduced, &reduction->repeated);
    if (by_columns) {
        split.run = run_columns;
        split.columns = columns_together(reduction, wanted);
    } else if (masked->neutral == NULL) {
        split.run = run_in_order;
        split.columns = size_max(
            1, size_min(short_results_together(&split), size_from(&reduction->kept, 0) / wanted));
    } else {
        split.columns = short_results_together(&split);
        split.run = split.columns > 1 ? run_short_results : run_pieces;
    }
    split.slices = ceiling(fastest(&reduction->kept).n, split.columns);
    const ptrdiff_t results = results_of(&split);
    const bool are_few = threads > 1 && results < wanted;
    if (are_few && masked->neutral == NULL) {
        return sum_few_results(masked, threads);
    }
    struct workspace workspace = {0};
    if (are_few && kernel->any_order) {
        const ptrdiff_t most = by_columns ? size_from(&split.reduced, 0) : pieces_of(&split);
        split.cuts = size_min(ceiling(wanted, results), most);
    }
    const ptrdiff_t blocks = results * split.cuts;
    if (split.cuts > 1) {
        workspace = workspace_take((size_t)(blocks * split.columns) * kernel->sum_size);
        if (workspace.data == NULL) {
            return false;
        }
        split.partials = workspace.data;
    }
    /* A few at a time, where there are many. */
    region_run_ranges(reduction->policy, threads, blocks, size_max(1, blocks >> 10),
                      run_masked_blocks, &split);
    if (split.cuts > 1) {
        store_partials(&split);
    }
    workspace_give_back(workspace);
    return true;
}

void reduction_fill(const struct reduction *reduction, const char *item)
{
    struct axes kept = reduction->kept;
    for (int i = 0; i < kept.count; i++) {
        kept.axis[i].step = 0;
    }
    copy_along(reduction->out_size, &kept, item, reduction->out);
}
