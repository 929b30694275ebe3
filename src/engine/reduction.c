/* Reductions on several threads. What is cut, and combined with what, follows the tree of the kernels:
 * it depends on the number of elements alone, so that results do not depend on threads. */
#include "elementwise.h"
#include "reduction.h"
#include "threads/limit.h"
#include "threads/region.h"

#include "kernels/kernels.h"
#include "memory/workspace.h"

#include <stdlib.h>

enum {
    /* Of one result, what a thread computes in one go. */
    BLOCK_BYTES = 256 << 10,
    FROM_MEMORY_BYTES = 16 << 20,
    /* Units are taken several at a time until they are worth the trip. */
    GRAIN_BYTES = 64 << 10,
    STACK_BYTES = 4096, /* of scratch memory; what needs more is in a workspace */
    LINE_BYTES = 64,
    /* A reduction is worth threads when it takes longer than 20 us on one. Caches deliver contiguous
     * elements at 40 bytes per ns; others take half a ns each. */
    BREAK_EVEN_BYTES = 800000,
    BREAK_EVEN_ELEMENTS = 40000,
};

/* A reduction cut into `units` that threads may compute in any order. */
struct work {
    const struct reduce *reduce;
    void (*run)(const struct work *work, ptrdiff_t unit, char *scratch);
    ptrdiff_t units, grain;
    ptrdiff_t per_unit;   /* results of one unit */
    ptrdiff_t slices;     /* units with results of one outer index */
    ptrdiff_t blocks;     /* units that make up a result */
    ptrdiff_t block;      /* elements in each but the last */
    bool from_memory;     /* what is reduced is large */
    size_t slice_bytes;   /* of a unit's results in scratch memory, if that is where they go */
    size_t scratch_bytes; /* of each thread */
    char *scratch;        /* the caller's */
    size_t partial_bytes;
    char *partials; /* of each result, those of each block, if there are several blocks */
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

static const char *data_of(const struct reduce *reduce, ptrdiff_t outer, ptrdiff_t inner)
{
    return reduce->data + outer * reduce->outer_step + inner * reduce->inner_step;
}

static char *out_of(const struct reduce *reduce, ptrdiff_t outer, ptrdiff_t inner)
{
    return reduce->out + outer * reduce->out_outer_step + inner * reduce->out_inner_step;
}

static void store(const struct reduce *reduce, const void *sums, ptrdiff_t outer, ptrdiff_t inner,
                  ptrdiff_t n)
{
    reduce->kernel->store(sums, n, out_of(reduce, outer, inner), reduce->out_inner_step,
                          reduce->out_size, reduce->onto);
}

/* Combines `count` arrays of `bytes` in pairs, by index; the result is the first. */
static void combine_in_pairs(const struct reduction *kernel, char *arrays, ptrdiff_t count,
                             ptrdiff_t bytes)
{
    for (ptrdiff_t apart = 1; apart < count; apart *= 2) {
        for (ptrdiff_t i = 0; i + apart < count; i += 2 * apart) {
            kernel->combine(arrays + i * bytes, arrays + (i + apart) * bytes, (size_t)bytes);
        }
    }
}

/* ---- whole results, several at a time ---- */

static void run_results(const struct work *work, ptrdiff_t unit, char *scratch)
{
    const struct reduce *reduce = work->reduce;
    const ptrdiff_t outer = unit / work->slices;
    const ptrdiff_t inner = unit % work->slices * work->per_unit;
    const ptrdiff_t n = least(work->per_unit, reduce->inner - inner);
    reduce->kernel->reduce_each(data_of(reduce, outer, inner), reduce->step, reduce->n,
                                reduce->inner_step, n, scratch);
    store(reduce, scratch, outer, inner, n);
}

static struct work by_results(const struct reduce *reduce)
{
    const ptrdiff_t item = (ptrdiff_t)reduce->kernel->item_size;
    const ptrdiff_t bytes = item * reduce->n;
    const ptrdiff_t most = STACK_BYTES / (ptrdiff_t)reduce->kernel->sum_size;
    const ptrdiff_t per_unit = least(ceiling(GRAIN_BYTES, bytes), most);
    const ptrdiff_t slices = ceiling(reduce->inner, per_unit);
    return (struct work){
        .reduce = reduce,
        .run = run_results,
        .units = reduce->outer * slices,
        .grain = ceiling(GRAIN_BYTES, least(per_unit, reduce->inner) * bytes),
        .per_unit = per_unit,
        .slices = slices,
        .blocks = 1,
        .scratch_bytes = (size_t)per_unit * reduce->kernel->sum_size,
    };
}

/* ---- results that are cut into blocks ---- */

/* Neighbouring units are of neighbouring results: they may share cache lines. */
static void run_block(const struct work *work, ptrdiff_t unit, char *scratch)
{
    (void)scratch;
    const struct reduce *reduce = work->reduce;
    const ptrdiff_t results = reduce->outer * reduce->inner;
    const ptrdiff_t block = unit / results, result = unit % results;
    const char *data = data_of(reduce, result / reduce->inner, result % reduce->inner);
    char *lanes = work->partials + (result * work->blocks + block) * LANES_BYTES;
    if (reduce->groups > 1) {
        reduce->kernel->reduce(data + block * reduce->group_step, reduce->step, reduce->n, lanes);
        return;
    }
    const ptrdiff_t first = block * work->block;
    reduce->kernel->reduce(data + first * reduce->step, reduce->step,
                           least(work->block, reduce->n - first), lanes);
}

static void finish_blocks(const struct work *work)
{
    const struct reduce *reduce = work->reduce;
    for (ptrdiff_t result = 0; result < reduce->outer * reduce->inner; result++) {
        char *lanes = work->partials + result * work->blocks * LANES_BYTES;
        _Alignas(LINE_BYTES) char sum[LANES_BYTES];
        combine_in_pairs(reduce->kernel, lanes, work->blocks, LANES_BYTES);
        reduce->kernel->fold(lanes, sum);
        store(reduce, sum, result / reduce->inner, result % reduce->inner, 1);
    }
}

/* Elements of a block: a power of two of pieces. */
static ptrdiff_t block_of(const struct reduction *kernel)
{
    ptrdiff_t block = kernel->piece;
    while (elementwise_threshold() == 0 && block * (ptrdiff_t)kernel->item_size < BLOCK_BYTES) {
        block *= 2;
    }
    return block;
}

static struct work by_blocks(const struct reduce *reduce, ptrdiff_t block)
{
    const ptrdiff_t blocks = reduce->groups > 1 ? reduce->groups : ceiling(reduce->n, block);
    const ptrdiff_t item = (ptrdiff_t)reduce->kernel->item_size;
    return (struct work){
        .reduce = reduce,
        .run = run_block,
        .units = reduce->outer * reduce->inner * blocks,
        .grain = ceiling(GRAIN_BYTES, least(block, reduce->n) * item),
        .blocks = blocks,
        .block = block,
        .partial_bytes = (size_t)(reduce->outer * reduce->inner * blocks) * LANES_BYTES,
    };
}

/* ---- columns of rows ---- */

static ptrdiff_t row_bytes(const struct reduce *reduce)
{
    return reduce->inner * (ptrdiff_t)reduce->kernel->sum_size;
}

static void run_columns(const struct work *work, ptrdiff_t unit, char *scratch)
{
    const struct reduce *reduce = work->reduce;
    const ptrdiff_t slice = unit % work->slices, block = unit / work->slices % work->blocks;
    const ptrdiff_t outer = unit / work->slices / work->blocks;
    const ptrdiff_t inner = slice * work->per_unit, first = block * work->block;
    const ptrdiff_t n = least(work->per_unit, reduce->inner - inner);
    char *to = work->blocks == 1
                   ? scratch
                   : work->partials + (outer * work->blocks + block) * row_bytes(reduce) +
                         inner * (ptrdiff_t)reduce->kernel->sum_size;
    reduce->kernel->reduce_rows(data_of(reduce, outer, inner) + first * reduce->step, reduce->step,
                                least(work->block, reduce->n - first), reduce->inner_step, n,
                                work->from_memory, scratch + work->slice_bytes, to);
    if (work->blocks == 1) {
        store(reduce, scratch, outer, inner, n);
    }
}

static void finish_columns(const struct work *work)
{
    const struct reduce *reduce = work->reduce;
    for (ptrdiff_t outer = 0; outer < reduce->outer; outer++) {
        char *rows = work->partials + outer * work->blocks * row_bytes(reduce);
        combine_in_pairs(reduce->kernel, rows, work->blocks, row_bytes(reduce));
        store(reduce, rows, outer, 0, reduce->inner);
    }
}

static struct work by_columns(const struct reduce *reduce)
{
    const ptrdiff_t per_unit = ROW_BYTES / (ptrdiff_t)reduce->kernel->sum_size;
    const ptrdiff_t columns = least(per_unit, reduce->inner);
    const ptrdiff_t slices = ceiling(reduce->inner, per_unit);
    const ptrdiff_t block = elementwise_threshold() != 0 ? PIECE_ROWS : MOST_ROWS;
    const ptrdiff_t rows = least(block, reduce->n), blocks = ceiling(reduce->n, block);
    const ptrdiff_t item = (ptrdiff_t)reduce->kernel->item_size;
    const ptrdiff_t slice_bytes =
        ceiling(columns * (ptrdiff_t)reduce->kernel->sum_size, LINE_BYTES) * LINE_BYTES;
    return (struct work){
        .reduce = reduce,
        .run = run_columns,
        .units = reduce->outer * slices * blocks,
        .grain = ceiling(GRAIN_BYTES, rows * columns * item),
        .per_unit = per_unit,
        .slices = slices,
        .blocks = blocks,
        .block = block,
        .from_memory = reduce->outer * reduce->n * reduce->inner * item > FROM_MEMORY_BYTES,
        .slice_bytes = blocks == 1 ? (size_t)slice_bytes : 0,
        .scratch_bytes = (blocks == 1 ? (size_t)slice_bytes : 0) +
                         reduction_scratch_bytes(rows, (size_t)slice_bytes),
        .partial_bytes = blocks == 1 ? 0 : (size_t)(reduce->outer * blocks * row_bytes(reduce)),
    };
}

/* ---- what they share ---- */

static bool is_contiguous(const struct reduce *reduce)
{
    return reduce->step == (ptrdiff_t)reduce->kernel->item_size;
}

static bool suits_columns(const struct reduce *reduce)
{
    return reduce->groups == 1 && row_bytes(reduce) >= LANES_BYTES &&
           (reduce->n == 1 || labs(reduce->inner_step) < labs(reduce->step));
}

static int threads_for(const struct reduce *reduce)
{
    const ptrdiff_t n = reduce->outer * reduce->inner * reduce->groups * reduce->n;
    const ptrdiff_t forced = elementwise_threshold();
    const ptrdiff_t at_least = forced != 0 ? forced
                               : is_contiguous(reduce) || suits_columns(reduce)
                                   ? BREAK_EVEN_BYTES / (ptrdiff_t)reduce->kernel->item_size
                                   : BREAK_EVEN_ELEMENTS;
    return n >= at_least && region_available() ? threads_limit().threads : 1;
}

static struct work work_of(const struct reduce *reduce, int threads)
{
    if (suits_columns(reduce)) {
        return by_columns(reduce);
    }
    const ptrdiff_t block = block_of(reduce->kernel);
    const ptrdiff_t results = reduce->outer * reduce->inner;
    /* Results in the same cache lines are computed side by side. */
    const bool shares_lines = results > 1 && results <= LINE_BYTES &&
                              labs(reduce->inner_step) < LINE_BYTES && !is_contiguous(reduce);
    if (reduce->groups > 1 ||
        (reduce->n > block &&
         (shares_lines || (threads > 1 && results < 8 * (ptrdiff_t)threads)))) {
        return by_blocks(reduce, block);
    }
    return by_results(reduce);
}

/* A worker that gets no memory leaves the units to the others. */
static void run_units(void *context, int index)
{
    struct work *work = context;
    _Alignas(LINE_BYTES) char few[STACK_BYTES];
    struct workspace own = {0};
    char *scratch = few;
    if (work->scratch_bytes > sizeof few) {
        own = index > 0 ? workspace_take(work->scratch_bytes) : own;
        scratch = index > 0 ? own.data : work->scratch;
    }
    ptrdiff_t first;
    while (scratch != NULL && (first = atomic_fetch_add(&work->next, work->grain)) < work->units) {
        const ptrdiff_t end = least(first + work->grain, work->units);
        for (ptrdiff_t unit = first; unit < end; unit++) {
            work->run(work, unit, scratch);
        }
    }
    workspace_give_back(own);
}

bool reduce_run(const struct reduce *given)
{
    struct reduce reduce = *given;
    if (reduce.inner == 1) {
        reduce.inner = reduce.outer;
        reduce.inner_step = reduce.outer_step;
        reduce.out_inner_step = reduce.out_outer_step;
        reduce.outer = 1;
    }
    const int threads = threads_for(&reduce);
    struct work work = work_of(&reduce, threads);
    _Alignas(LINE_BYTES) char few[STACK_BYTES];
    struct workspace workspace = {0};
    work.partials = few;
    if (work.partial_bytes > sizeof few || work.scratch_bytes > sizeof few) {
        workspace = workspace_take(work.scratch_bytes + work.partial_bytes);
        if (workspace.data == NULL) {
            return false;
        }
        work.scratch = workspace.data;
        work.partials = workspace.data + work.scratch_bytes;
    }
    atomic_init(&work.next, 0);
    if (elementwise_threshold() != 0) {
        work.grain = 1;
    }
    region_run(work.units > work.grain ? threads : 1, run_units, &work);
    if (work.run == run_block) {
        finish_blocks(&work);
    } else if (work.blocks > 1) {
        finish_columns(&work);
    }
    workspace_give_back(workspace);
    return true;
}
