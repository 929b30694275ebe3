/* Reductions on several threads. What is cut, and combined with what, follows the tree of the kernels:
 * it depends on the number of elements alone, so that results do not depend on threads. */
#include "reduction.h"
#include "threads/limit.h"
#include "threads/region.h"

#include "kernels/kernels.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    /* Of one result, what a thread computes in one go. */
    BLOCK_BYTES = 256 << 10,
    COLUMN_BYTES = 32768, /* of sums */
    FROM_MEMORY_BYTES = 16 << 20,
    /* Units are taken several at a time until they are worth the trip. */
    GRAIN_BYTES = 64 << 10,
    BUFFER_BYTES = 4096,
    LINE_BYTES = 64,
    /* A reduction is worth threads when it takes longer than 20 us on one. Caches deliver contiguous
     * elements at 40 bytes per ns; others take half a ns each. */
    BREAK_EVEN_BYTES = 800000,
    BREAK_EVEN_ELEMENTS = 40000,
};

/* A reduction cut into `units` that threads may compute in any order. */
struct work {
    const struct reduce *reduce;
    void (*run)(const struct work *work, ptrdiff_t unit);
    ptrdiff_t units, grain;
    ptrdiff_t per_unit; /* results of one unit */
    ptrdiff_t slices;   /* units with results of one outer index */
    ptrdiff_t blocks;   /* units that make up a result */
    ptrdiff_t block;    /* elements in each but the last */
    bool from_memory;   /* what is reduced is large */
    char *partials;     /* of each result, those of each block, if there are several blocks */
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

static void run_results(const struct work *work, ptrdiff_t unit)
{
    const struct reduce *reduce = work->reduce;
    _Alignas(LINE_BYTES) char sums[BUFFER_BYTES];
    const ptrdiff_t outer = unit / work->slices;
    const ptrdiff_t inner = unit % work->slices * work->per_unit;
    const ptrdiff_t n = least(work->per_unit, reduce->inner - inner);
    reduce->kernel->reduce_each(data_of(reduce, outer, inner), reduce->step, reduce->n,
                                reduce->inner_step, n, sums);
    store(reduce, sums, outer, inner, n);
}

static struct work by_results(const struct reduce *reduce)
{
    const ptrdiff_t item = (ptrdiff_t)reduce->kernel->item_size;
    const ptrdiff_t bytes = item * reduce->n;
    const ptrdiff_t most = BUFFER_BYTES / (ptrdiff_t)reduce->kernel->sum_size;
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
    };
}

/* ---- results that are cut into blocks ---- */

/* Neighbouring units are of neighbouring results: they may share cache lines. */
static void run_block(const struct work *work, ptrdiff_t unit)
{
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
static ptrdiff_t block_of(const struct reduction *kernel, const struct policy *policy)
{
    ptrdiff_t block = kernel->piece;
    while (!policy->small_blocks && block * (ptrdiff_t)kernel->item_size < BLOCK_BYTES) {
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
    };
}

/* ---- columns of rows ---- */

static ptrdiff_t row_bytes(const struct reduce *reduce)
{
    return reduce->inner * (ptrdiff_t)reduce->kernel->sum_size;
}

static void run_columns(const struct work *work, ptrdiff_t unit)
{
    const struct reduce *reduce = work->reduce;
    const ptrdiff_t slice = unit % work->slices, block = unit / work->slices % work->blocks;
    const ptrdiff_t outer = unit / work->slices / work->blocks;
    const ptrdiff_t inner = slice * work->per_unit, first = block * work->block;
    const ptrdiff_t n = least(work->per_unit, reduce->inner - inner);
    _Alignas(LINE_BYTES) char sums[COLUMN_BYTES];
    char *to = work->blocks == 1
                   ? sums
                   : work->partials + (outer * work->blocks + block) * row_bytes(reduce) +
                         inner * (ptrdiff_t)reduce->kernel->sum_size;
    reduce->kernel->reduce_rows(data_of(reduce, outer, inner) + first * reduce->step, reduce->step,
                                least(work->block, reduce->n - first), reduce->inner_step, n,
                                work->from_memory, to);
    if (work->blocks == 1) {
        store(reduce, sums, outer, inner, n);
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
    const ptrdiff_t per_unit = COLUMN_BYTES / (ptrdiff_t)reduce->kernel->sum_size;
    const ptrdiff_t slices = ceiling(reduce->inner, per_unit);
    const ptrdiff_t block = reduce->policy->small_blocks ? PIECE_ROWS : MOST_ROWS;
    const ptrdiff_t blocks = ceiling(reduce->n, block);
    const ptrdiff_t bytes = least(block, reduce->n) * least(per_unit, reduce->inner) *
                            (ptrdiff_t)reduce->kernel->item_size;
    return (struct work){
        .reduce = reduce,
        .run = run_columns,
        .units = reduce->outer * slices * blocks,
        .grain = ceiling(GRAIN_BYTES, bytes),
        .per_unit = per_unit,
        .slices = slices,
        .blocks = blocks,
        .block = block,
        .from_memory =
            reduce->outer * reduce->n * reduce->inner * (ptrdiff_t)reduce->kernel->item_size >
            FROM_MEMORY_BYTES,
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
    const ptrdiff_t forced = reduce->policy->threshold;
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
    const ptrdiff_t block = block_of(reduce->kernel, reduce->policy);
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

static void run_units(void *context, int index)
{
    (void)index;
    struct work *work = context;
    for (;;) {
        const ptrdiff_t first = atomic_fetch_add(&work->next, work->grain);
        if (first >= work->units) {
            return;
        }
        for (ptrdiff_t unit = first; unit < least(first + work->grain, work->units); unit++) {
            work->run(work, unit);
        }
    }
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
    _Alignas(LINE_BYTES) char few[BUFFER_BYTES];
    char *allocated = NULL;
    if (work.blocks > 1) {
        const size_t size = work.run == run_block
                                ? (size_t)(reduce.outer * reduce.inner * work.blocks) * LANES_BYTES
                                : (size_t)(reduce.outer * work.blocks) * (size_t)row_bytes(&reduce);
        work.partials = size <= sizeof few ? few : (allocated = malloc(size));
        if (work.partials == NULL) {
            return false;
        }
    }
    atomic_init(&work.next, 0);
    if (reduce.policy->small_blocks) {
        work.grain = 1;
    }
    region_run(reduce.policy, work.units > work.grain ? threads : 1, run_units, &work);
    if (work.run == run_block) {
        finish_blocks(&work);
    } else if (work.blocks > 1) {
        finish_columns(&work);
    }
    free(allocated);
    return true;
}
