/* Splits reductions. Where a result is cut, and how its blocks are combined, follows the tree of the
 * kernels and depends on the number of elements alone: results do not depend on threads. */
#include "reduction.h"

#include "kernels/kernels.h"
#include "memory/workspace.h"
#include "reduction_cutoffs.h"
#include "threads/limit.h"
#include "threads/region.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    RESULT_BLOCK_BYTES = 256 << 10, /* of elements, where one result is cut */
    STACK_BYTES = 4096,             /* of scratch memory; what needs more is in a workspace */
    LINE_BYTES = 64,
};

/* A reduction cut into `blocks` that threads compute in any order, `chunk` of them at a time. A block is
 * either some whole results, or some elements of one, or some rows of a slice of columns. */
struct reduction_split {
    const struct reduction *reduction;
    void (*run)(const struct reduction_split *split, ptrdiff_t block, char *scratch);
    ptrdiff_t blocks, chunk;
    ptrdiff_t results;           /* of a block */
    ptrdiff_t slices;            /* blocks side by side, for all results of one outer index */
    ptrdiff_t blocks_per_result; /* if several, results are combined from partial ones */
    ptrdiff_t elements;          /* of each block of a result but the last */
    bool from_memory;            /* the operand is larger than the caches */
    size_t slice_bytes;          /* of a block's results in scratch memory; 0 if they are partial */
    size_t scratch_bytes;        /* of each thread */
    char *scratch;               /* the caller's */
    size_t partial_bytes;
    char *partials; /* by result, and for each by block */
    _Atomic ptrdiff_t next;
};

static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

static ptrdiff_t ceiling(ptrdiff_t a, ptrdiff_t b)
{
    return (a + b - 1) / b;
}

static const char *data_of(const struct reduction *reduction, ptrdiff_t outer, ptrdiff_t inner)
{
    return reduction->data + outer * reduction->outer_step + inner * reduction->inner_step;
}

static void store(const struct reduction *reduction, const void *sums, ptrdiff_t outer,
                  ptrdiff_t inner, ptrdiff_t n)
{
    char *out =
        reduction->out + outer * reduction->out_outer_step + inner * reduction->out_inner_step;
    reduction->kernel->store(sums, n, out, reduction->out_inner_step, reduction->out_size,
                             reduction->onto);
}

/* Combines `count` arrays of `bytes` in pairs, by index; the result is the first. */
static void combine_in_pairs(const struct reduction_kernel *kernel, char *arrays, ptrdiff_t count,
                             ptrdiff_t bytes)
{
    for (ptrdiff_t apart = 1; apart < count; apart *= 2) {
        for (ptrdiff_t i = 0; i + apart < count; i += 2 * apart) {
            kernel->combine(arrays + i * bytes, arrays + (i + apart) * bytes, (size_t)bytes);
        }
    }
}

/* ---- blocks of whole results ---- */

static void run_results(const struct reduction_split *split, ptrdiff_t block, char *scratch)
{
    const struct reduction *reduction = split->reduction;
    const ptrdiff_t outer = block / split->slices;
    const ptrdiff_t inner = block % split->slices * split->results;
    const ptrdiff_t n = least(split->results, reduction->inner - inner);
    reduction->kernel->reduce_each(data_of(reduction, outer, inner), reduction->step, reduction->n,
                                   reduction->inner_step, n, scratch);
    store(reduction, scratch, outer, inner, n);
}

static struct reduction_split split_by_results(const struct reduction *reduction)
{
    const ptrdiff_t item = (ptrdiff_t)reduction->kernel->item_size;
    const ptrdiff_t bytes = item * reduction->n;
    const ptrdiff_t most = STACK_BYTES / (ptrdiff_t)reduction->kernel->sum_size;
    const ptrdiff_t results = least(ceiling(REDUCTION_CHUNK_BYTES, bytes), most);
    const ptrdiff_t slices = ceiling(reduction->inner, results);
    return (struct reduction_split){
        .reduction = reduction,
        .run = run_results,
        .blocks = reduction->outer * slices,
        .chunk = ceiling(REDUCTION_CHUNK_BYTES, least(results, reduction->inner) * bytes),
        .results = results,
        .slices = slices,
        .blocks_per_result = 1,
        .scratch_bytes = STACK_BYTES,
    };
}

/* ---- blocks of one result ---- */

/* Neighbouring blocks are of neighbouring results: they may be in the same cache lines. */
static void run_elements(const struct reduction_split *split, ptrdiff_t block, char *scratch)
{
    (void)scratch;
    const struct reduction *reduction = split->reduction;
    const ptrdiff_t results = reduction->outer * reduction->inner;
    const ptrdiff_t of_result = block / results, result = block % results;
    const char *data = data_of(reduction, result / reduction->inner, result % reduction->inner);
    char *accumulators =
        split->partials + (result * split->blocks_per_result + of_result) * ACCUMULATORS_BYTES;
    if (reduction->groups > 1) {
        reduction->kernel->reduce(data + of_result * reduction->group_step, reduction->step,
                                  reduction->n, accumulators);
        return;
    }
    const ptrdiff_t first = of_result * split->elements;
    reduction->kernel->reduce(data + first * reduction->step, reduction->step,
                              least(split->elements, reduction->n - first), accumulators);
}

static void finish_elements(const struct reduction_split *split)
{
    const struct reduction *reduction = split->reduction;
    for (ptrdiff_t result = 0; result < reduction->outer * reduction->inner; result++) {
        char *accumulators =
            split->partials + result * split->blocks_per_result * ACCUMULATORS_BYTES;
        _Alignas(LINE_BYTES) char sum[ACCUMULATORS_BYTES];
        combine_in_pairs(reduction->kernel, accumulators, split->blocks_per_result,
                         ACCUMULATORS_BYTES);
        reduction->kernel->fold(accumulators, sum);
        store(reduction, sum, result / reduction->inner, result % reduction->inner, 1);
    }
}

/* The elements of a block: a power of two of leaves. */
static ptrdiff_t elements_of_block(const struct reduction *reduction)
{
    const struct reduction_kernel *kernel = reduction->kernel;
    ptrdiff_t elements = kernel->leaf;
    while (!reduction->policy->small_blocks &&
           elements * (ptrdiff_t)kernel->item_size < RESULT_BLOCK_BYTES) {
        elements *= 2;
    }
    return elements;
}

static struct reduction_split split_by_elements(const struct reduction *reduction,
                                                ptrdiff_t elements)
{
    const ptrdiff_t blocks =
        reduction->groups > 1 ? reduction->groups : ceiling(reduction->n, elements);
    const ptrdiff_t all = reduction->outer * reduction->inner * blocks;
    const ptrdiff_t item = (ptrdiff_t)reduction->kernel->item_size;
    return (struct reduction_split){
        .reduction = reduction,
        .run = run_elements,
        .blocks = all,
        .chunk = ceiling(REDUCTION_CHUNK_BYTES, least(elements, reduction->n) * item),
        .blocks_per_result = blocks,
        .elements = elements,
        .partial_bytes = (size_t)all * ACCUMULATORS_BYTES,
    };
}

/* ---- blocks of rows and columns ---- */

static ptrdiff_t row_bytes(const struct reduction *reduction)
{
    return reduction->inner * (ptrdiff_t)reduction->kernel->sum_size;
}

static void run_columns(const struct reduction_split *split, ptrdiff_t block, char *scratch)
{
    const struct reduction *reduction = split->reduction;
    const ptrdiff_t slice = block % split->slices;
    const ptrdiff_t of_result = block / split->slices % split->blocks_per_result;
    const ptrdiff_t outer = block / split->slices / split->blocks_per_result;
    const ptrdiff_t inner = slice * split->results, first = of_result * split->elements;
    const ptrdiff_t columns = least(split->results, reduction->inner - inner);
    const ptrdiff_t rows = least(split->elements, reduction->n - first);
    const bool is_partial = split->blocks_per_result > 1;
    char *sums = scratch;
    if (is_partial) {
        sums = split->partials +
               (outer * split->blocks_per_result + of_result) * row_bytes(reduction) +
               inner * (ptrdiff_t)reduction->kernel->sum_size;
    }
    reduction->kernel->reduce_rows(data_of(reduction, outer, inner) + first * reduction->step,
                                   reduction->step, rows, reduction->inner_step, columns,
                                   split->from_memory, scratch + split->slice_bytes, sums);
    if (!is_partial) {
        store(reduction, sums, outer, inner, columns);
    }
}

static void finish_columns(const struct reduction_split *split)
{
    const struct reduction *reduction = split->reduction;
    for (ptrdiff_t outer = 0; outer < reduction->outer; outer++) {
        char *rows = split->partials + outer * split->blocks_per_result * row_bytes(reduction);
        combine_in_pairs(reduction->kernel, rows, split->blocks_per_result, row_bytes(reduction));
        store(reduction, rows, outer, 0, reduction->inner);
    }
}

static struct reduction_split split_by_columns(const struct reduction *reduction)
{
    const ptrdiff_t item = (ptrdiff_t)reduction->kernel->item_size;
    const ptrdiff_t sum_size = (ptrdiff_t)reduction->kernel->sum_size;
    const ptrdiff_t results = ROW_BYTES / sum_size;
    const ptrdiff_t columns = least(results, reduction->inner);
    const ptrdiff_t slices = ceiling(reduction->inner, results);
    const ptrdiff_t most_rows = reduction->policy->small_blocks ? LEAF_ROWS : MOST_ROWS;
    const ptrdiff_t rows = least(most_rows, reduction->n);
    const ptrdiff_t blocks = ceiling(reduction->n, most_rows);
    const ptrdiff_t all_bytes = reduction->outer * reduction->n * reduction->inner * item;
    const size_t slice_bytes = (size_t)(ceiling(columns * sum_size, LINE_BYTES) * LINE_BYTES);
    struct reduction_split split = {
        .reduction = reduction,
        .run = run_columns,
        .blocks = reduction->outer * slices * blocks,
        .chunk = ceiling(REDUCTION_CHUNK_BYTES, rows * columns * item),
        .results = results,
        .slices = slices,
        .blocks_per_result = blocks,
        .elements = most_rows,
        .from_memory = all_bytes > REDUCTION_FROM_MEMORY_BYTES,
        .scratch_bytes = reduction_scratch_bytes(rows, slice_bytes),
    };
    if (blocks > 1) {
        split.partial_bytes = (size_t)(reduction->outer * blocks * row_bytes(reduction));
    } else {
        split.slice_bytes = slice_bytes;
        split.scratch_bytes += slice_bytes;
    }
    return split;
}

/* ---- which of them ---- */

static bool is_contiguous(const struct reduction *reduction)
{
    return reduction->step == (ptrdiff_t)reduction->kernel->item_size;
}

static bool suits_columns(const struct reduction *reduction)
{
    return reduction->groups == 1 && row_bytes(reduction) >= ACCUMULATORS_BYTES &&
           (reduction->n == 1 || labs(reduction->inner_step) < labs(reduction->step));
}

static int threads_for(const struct reduction *reduction)
{
    const ptrdiff_t n = reduction->outer * reduction->inner * reduction->groups * reduction->n;
    const ptrdiff_t forced = reduction->policy->threshold;
    const ptrdiff_t pays = forced != 0 ? forced
                           : is_contiguous(reduction) || suits_columns(reduction)
                               ? REDUCTION_THREADS_BYTES / (ptrdiff_t)reduction->kernel->item_size
                               : REDUCTION_THREADS_ELEMENTS;
    return n >= pays && region_available() ? threads_limit().threads : 1;
}

static struct reduction_split split_reduction(const struct reduction *reduction, int threads)
{
    if (suits_columns(reduction)) {
        return split_by_columns(reduction);
    }
    const ptrdiff_t elements = elements_of_block(reduction);
    const ptrdiff_t results = reduction->outer * reduction->inner;
    /* Results in the same cache lines are computed side by side. */
    const bool is_interleaved = results > 1 && results <= LINE_BYTES &&
                                labs(reduction->inner_step) < LINE_BYTES &&
                                !is_contiguous(reduction);
    const bool are_few = threads > 1 && results < 8 * (ptrdiff_t)threads;
    if (reduction->groups > 1 || (reduction->n > elements && (is_interleaved || are_few))) {
        return split_by_elements(reduction, elements);
    }
    return split_by_results(reduction);
}

/* ---- carried out ---- */

/* A worker that is refused memory leaves the blocks to the others. */
static void run_blocks(void *context, int index)
{
    struct reduction_split *split = context;
    _Alignas(LINE_BYTES) char few[STACK_BYTES];
    struct workspace own = {0};
    char *scratch = few;
    if (split->scratch_bytes > sizeof few) {
        own = index > 0 ? workspace_take(split->scratch_bytes) : own;
        scratch = index > 0 ? own.data : split->scratch;
    }
    ptrdiff_t first;
    while (scratch != NULL &&
           (first = atomic_fetch_add(&split->next, split->chunk)) < split->blocks) {
        const ptrdiff_t end = least(first + split->chunk, split->blocks);
        for (ptrdiff_t block = first; block < end; block++) {
            split->run(split, block, scratch);
        }
    }
    workspace_give_back(own);
}

static void run_and_finish(struct reduction_split *split, int threads)
{
    atomic_init(&split->next, 0);
    if (split->reduction->policy->small_blocks) {
        split->chunk = 1;
    }
    region_run(split->reduction->policy, split->blocks > split->chunk ? threads : 1, run_blocks,
               split);
    if (split->run == run_elements) {
        finish_elements(split);
    } else if (split->blocks_per_result > 1) {
        finish_columns(split);
    }
}

bool reduction_compute(const struct reduction *given)
{
    struct reduction reduction = *given;
    if (reduction.inner == 1) {
        reduction.inner = reduction.outer;
        reduction.inner_step = reduction.outer_step;
        reduction.out_inner_step = reduction.out_outer_step;
        reduction.outer = 1;
    }
    const int threads = threads_for(&reduction);
    struct reduction_split split = split_reduction(&reduction, threads);
    _Alignas(LINE_BYTES) char few[STACK_BYTES];
    struct workspace workspace = {0};
    split.partials = few;
    if (split.partial_bytes > sizeof few || split.scratch_bytes > sizeof few) {
        workspace = workspace_take(split.scratch_bytes + split.partial_bytes);
        if (workspace.data == NULL) {
            return false;
        }
        split.scratch = workspace.data;
        split.partials = workspace.data + split.scratch_bytes;
    }
    run_and_finish(&split, threads);
    workspace_give_back(workspace);
    return true;
}
