/* Where the order does not matter, pieces are copied with something neutral in the place of what is masked:
 * that takes no branches. Else sums of runs are computed by all threads, and added to the result by one. */
#include "masked_reduction.h"

#include "kernels/copy/find_bool.h"
#include "memory/workspace.h"
#include "reduction_cutoffs.h"
#include "sizes.h"
#include "threads/region.h"

enum {
    MOST_SUM_BYTES = 16, /* of one sum */
    RUN_BLOCK = 8192,    /* elements whose runs a thread sums at a time */
    ROUND_BLOCKS = 64,   /* blocks whose sums are in memory */
};

struct masked_split {
    const struct masked_reduction *masked;
    struct axes reduced; /* of elements whose order does not matter */
    ptrdiff_t results;   /* or slices of columns */
    ptrdiff_t cuts;      /* blocks of each result, */
    char *partials;      /* which have sums of their own if there are several */
    void (*run)(const struct masked_split *split, ptrdiff_t block);
};

/* A step of the mask, of one of the elements. */
static ptrdiff_t mask_step_of(const struct masked_reduction *masked, ptrdiff_t step)
{
    return step * masked->mask_step / masked->step;
}

static const char *mask_of(const struct masked_reduction *masked, const char *data)
{
    return masked->mask + mask_step_of(masked, data - masked->reduction.data);
}

/* ---- neutral elements ---- */

/* Without branches, which random masks would mispredict. Steps are constants where it is inlined. */
#define BLEND(type)                                                                                \
    INLINE void blend_##type(type *to, const char *from, ptrdiff_t step, const char *mask,         \
                             ptrdiff_t mask_step, type neutral, ptrdiff_t n)                       \
    {                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            const type kept = (type) - (type)(mask[i * mask_step] != 0);                           \
            const type item = *(const type *)(from + i * step);                                    \
            to[i] = (type)((item & kept) | (neutral & (type)~kept));                               \
        }                                                                                          \
    }
BLEND(uint8_t)
BLEND(uint16_t)
BLEND(uint32_t)
BLEND(uint64_t)

/* Elements that are contiguous then, with `neutral` where the mask is false. */
static void blend_items(size_t size, char *to, const char *from, ptrdiff_t step, const char *mask,
                        ptrdiff_t mask_step, const char *neutral, ptrdiff_t n)
{
#define BLEND_ANY(type)                                                                            \
    if (step == (ptrdiff_t)sizeof(type) && mask_step == 1) {                                       \
        blend_##type((type *)to, from, sizeof(type), mask, 1, *(const type *)neutral, n);          \
    } else {                                                                                       \
        blend_##type((type *)to, from, step, mask, mask_step, *(const type *)neutral, n);          \
    }
    switch (size) { /* kernels that reduce in any order have no larger items */
    case 1:
        BLEND_ANY(uint8_t)
        break;
    case 2:
        BLEND_ANY(uint16_t)
        break;
    case 4:
        BLEND_ANY(uint32_t)
        break;
    default:
        BLEND_ANY(uint64_t)
    }
#undef BLEND_ANY
}

/* Of the elements of a result. */
static ptrdiff_t pieces_of(const struct masked_split *split)
{
    const ptrdiff_t length =
        REDUCTION_PIECE_BYTES / (ptrdiff_t)split->masked->reduction.kernel->item_size;
    return ceiling(fastest(&split->reduced).n, length) * size_from(&split->reduced, 1);
}

static void run_pieces(const struct masked_split *split, ptrdiff_t block)
{
    const struct masked_reduction *masked = split->masked;
    const struct reduction *reduction = &masked->reduction;
    const struct reduction_kernel *kernel = reduction->kernel;
    const struct axis along = fastest(&split->reduced);
    const ptrdiff_t item = (ptrdiff_t)kernel->item_size, length = REDUCTION_PIECE_BYTES / item;
    const ptrdiff_t pieces = ceiling(along.n, length), all = pieces_of(split);
    const ptrdiff_t result = block / split->cuts, cut = block % split->cuts;
    const char *data = reduction->data + offset_of(&reduction->kept, 0, result, false);
    const ptrdiff_t begin = all * cut / split->cuts, end = all * (cut + 1) / split->cuts;
    _Alignas(LINE_BYTES) char piece[REDUCTION_PIECE_BYTES], sum[MOST_SUM_BYTES],
        total[MOST_SUM_BYTES];
    for (ptrdiff_t i = begin; i < end; i++) {
        const ptrdiff_t first = i % pieces * length, n = size_min(length, along.n - first);
        const char *from =
            data + first * along.step + offset_of(&split->reduced, 1, i / pieces, false);
        blend_items(kernel->item_size, piece, from, along.step, mask_of(masked, from),
                    mask_step_of(masked, along.step), masked->neutral, n);
        kernel->reduce_each(kernel, piece, item, n, 0, 1, i > begin ? sum : total);
        if (i > begin) {
            kernel->combine(kernel, total, sum, kernel->sum_size);
        }
    }
    if (split->cuts > 1) {
        memcpy(split->partials + (size_t)block * kernel->sum_size, total, kernel->sum_size);
    } else {
        kernel->store(kernel, total, 1,
                      reduction->out + offset_of(&reduction->kept, 0, result, true), 0,
                      reduction->out_size, true);
    }
}

static void store_partials(const struct masked_split *split)
{
    const struct reduction *reduction = &split->masked->reduction;
    const struct reduction_kernel *kernel = reduction->kernel;
    for (ptrdiff_t result = 0; result < split->results; result++) {
        kernel->store(kernel, split->partials + (size_t)(result * split->cuts) * kernel->sum_size,
                      split->cuts, reduction->out + offset_of(&reduction->kept, 0, result, true), 0,
                      reduction->out_size, true);
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

static void run_result(const struct masked_split *split, ptrdiff_t block)
{
    const struct masked_reduction *masked = split->masked;
    const struct reduction *reduction = &masked->reduction;
    const ptrdiff_t n = reduction->inner.axis[0].n;
    const ptrdiff_t step = 2 * (REDUCTION_PIECE_BYTES / (ptrdiff_t)reduction->kernel->sum_size);
    const char *data = reduction->data + offset_of(&reduction->kept, 0, block, false);
    char *out = reduction->out + offset_of(&reduction->kept, 0, block, true);
    _Alignas(LINE_BYTES) char sums[REDUCTION_PIECE_BYTES];
    for (ptrdiff_t first = 0; first < n; first += step) {
        const ptrdiff_t runs = sum_runs(masked, data, first, size_min(first + step, n), n, sums);
        reduction->kernel->store(reduction->kernel, sums, runs, out, 0, reduction->out_size, true);
    }
}

/* A round of blocks of one result. While some threads sum their runs, one adds up those of the round before. */
struct masked_round {
    const struct masked_reduction *masked;
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

/* Task 0 is the round before, the others are blocks. */
static void run_round(void *context, ptrdiff_t first_task, ptrdiff_t count)
{
    struct masked_round *round = context;
    const struct reduction *reduction = &round->masked->reduction;
    const ptrdiff_t n = reduction->inner.axis[0].n;
    for (ptrdiff_t task = first_task; task < first_task + count; task++) {
        if (task == 0) {
            add_round_before(round);
            continue;
        }
        const ptrdiff_t first = (round->first + task - 1) * RUN_BLOCK;
        round->counts[task - 1] =
            sum_runs(round->masked, round->data, first, size_min(first + RUN_BLOCK, n), n,
                     round->sums + (size_t)(task - 1) * bytes_of_block(reduction->kernel));
    }
}

static void run_rounds(struct masked_round *round, int threads)
{
    const struct reduction *reduction = &round->masked->reduction;
    const ptrdiff_t blocks = ceiling(reduction->inner.axis[0].n, RUN_BLOCK);
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
    struct masked_round round = {
        .masked = masked,
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

bool masked_reduction_compute(const struct masked_reduction *masked)
{
    const struct reduction *reduction = &masked->reduction;
    const int threads = reduction->threads;
    struct masked_split split = {
        .masked = masked,
        .results = size_from(&reduction->kept, 0),
        .cuts = 1,
        .run = masked->neutral != NULL ? run_pieces : run_result,
    };
    const ptrdiff_t wanted = (ptrdiff_t)threads * REDUCTION_BLOCKS_PER_THREAD;
    const bool are_few = threads > 1 && split.results < wanted;
    if (are_few && masked->neutral == NULL) {
        return sum_few_results(masked, threads);
    }
    struct workspace workspace = {0};
    if (masked->neutral != NULL) {
        axes_append(&split.reduced, &reduction->inner);
        axes_append(&split.reduced, &reduction->repeated);
        split.cuts = are_few ? size_min(ceiling(wanted, split.results), pieces_of(&split)) : 1;
    }
    if (split.cuts > 1) {
        workspace =
            workspace_take((size_t)(split.results * split.cuts) * reduction->kernel->sum_size);
        if (workspace.data == NULL) {
            return false;
        }
        split.partials = workspace.data;
    }
    /* A few at a time, where there are many. */
    const ptrdiff_t blocks = split.results * split.cuts;
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
