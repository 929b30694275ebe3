/* Running sums and products of integers. Several threads make two passes over blocks: first reduce each
 * block, then accumulate it with the result of the blocks before as carry. */
#include "accumulate.h"

#include "kernels/sizes.h"
#include "reduction_cutoffs.h"
#include "threads/limit.h"
#include "threads/region.h"

enum { MOST_BLOCKS = 64 };

struct accumulation_split {
    const struct accumulation *accumulation;
    ptrdiff_t elements; /* of each block but the last */
    ptrdiff_t blocks;
    uint64_t carry[MOST_BLOCKS]; /* what precedes each block */
};

static ptrdiff_t length(const struct accumulation_split *split, ptrdiff_t block)
{
    const ptrdiff_t left = split->accumulation->n - block * split->elements;
    return size_min(left, split->elements);
}

static uint64_t reduced(const struct reduction_kernel *kernel, const char *in, ptrdiff_t step,
                        ptrdiff_t n)
{
    uint64_t result;
    kernel->reduce_each(kernel, in, step, n, 0, 1, false, &result);
    return result;
}

/* How many elements are converted at once. */
static ptrdiff_t next_piece(const struct accumulation *accumulation, ptrdiff_t left)
{
    return size_min(left, REDUCTION_PIECE_BYTES / (ptrdiff_t)accumulation->kernel->item_size);
}

static uint64_t reduce_converted(const struct accumulation *accumulation, const char *in,
                                 ptrdiff_t n)
{
    const struct reduction_kernel *kernel = accumulation->kernel;
    _Alignas(uint64_t) char piece[REDUCTION_PIECE_BYTES];
    uint64_t result = 0;
    for (ptrdiff_t done = 0, count; done < n; done += count) {
        count = next_piece(accumulation, n - done);
        accumulation->convert(in + done * accumulation->in_step, accumulation->in_step, piece,
                              count);
        uint64_t of_piece = reduced(kernel, piece, (ptrdiff_t)kernel->item_size, count);
        if (done > 0) {
            kernel->combine(kernel, &of_piece, &result, sizeof result);
        }
        result = of_piece;
    }
    return result;
}

static void accumulate_converted(const struct accumulation *accumulation, const char *before,
                                 const char *in, char *out, ptrdiff_t n)
{
    const struct reduction_kernel *kernel = accumulation->kernel;
    const ptrdiff_t out_step = accumulation->out_step;
    _Alignas(uint64_t) char piece[REDUCTION_PIECE_BYTES];
    for (ptrdiff_t done = 0, count; done < n; done += count) {
        count = next_piece(accumulation, n - done);
        accumulation->convert(in + done * accumulation->in_step, accumulation->in_step, piece,
                              count);
        kernel->accumulate(before, piece, (ptrdiff_t)kernel->item_size, out + done * out_step,
                           out_step, count);
        before = out + (done + count - 1) * out_step;
    }
}

static void accumulate_elements(const struct accumulation *accumulation, const char *before,
                                ptrdiff_t first, ptrdiff_t n)
{
    const char *in = accumulation->in + first * accumulation->in_step;
    char *out = accumulation->out + first * accumulation->out_step;
    if (accumulation->convert != NULL) {
        accumulate_converted(accumulation, before, in, out, n);
    } else {
        accumulation->kernel->accumulate(before, in, accumulation->in_step, out,
                                         accumulation->out_step, n);
    }
}

/* The carry of a block is first the reduction of the block before it alone. */
static void reduce_blocks(void *context, ptrdiff_t first, ptrdiff_t count)
{
    struct accumulation_split *split = context;
    const struct accumulation *accumulation = split->accumulation;
    for (ptrdiff_t block = first; block < first + count; block++) {
        const char *in = accumulation->in + block * split->elements * accumulation->in_step;
        const ptrdiff_t n = length(split, block);
        split->carry[block + 1] = accumulation->convert != NULL
                                      ? reduce_converted(accumulation, in, n)
                                      : reduced(accumulation->kernel, in, accumulation->in_step, n);
    }
}

static void accumulate_blocks(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct accumulation_split *split = context;
    for (ptrdiff_t block = first; block < first + count; block++) {
        accumulate_elements(split->accumulation, (const char *)&split->carry[block],
                            block * split->elements, length(split, block));
    }
}

void accumulate_compute(const struct accumulation *accumulation)
{
    const ptrdiff_t n = accumulation->n, forced = accumulation->policy->threshold;
    const bool pays = n >= (forced != 0 ? forced : REDUCTION_THREADS_ELEMENTS);
    const int threads = pays && region_available() ? threads_limit().threads : 1;
    int blocks = threads == 1 ? 1 : threads * REDUCTION_BLOCKS_PER_THREAD;
    blocks = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
    struct accumulation_split split = {
        .accumulation = accumulation,
        .elements = ceiling(n, blocks),
    };
    split.blocks = ceiling(n, split.elements);
    const struct reduction_kernel *kernel = accumulation->kernel;
    split.carry[0] = reduced(kernel, accumulation->before, 0, 1);
    if (split.blocks > 1) {
        region_run_ranges(accumulation->policy, threads, split.blocks - 1, 1, reduce_blocks,
                          &split);
        for (ptrdiff_t block = 1; block < split.blocks; block++) {
            kernel->combine(kernel, &split.carry[block], &split.carry[block - 1], sizeof(uint64_t));
        }
    }
    region_run_ranges(accumulation->policy, threads, split.blocks, 1, accumulate_blocks, &split);
}
