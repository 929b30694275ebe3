/* Running sums and products of integers. Several threads make two passes over blocks: first reduce each
 * block, then accumulate it with the result of the blocks before as carry. */
#include "accumulate.h"

#include "kernels/kernels.h"
#include "reduction_cutoffs.h"
#include "threads/limit.h"
#include "threads/region.h"

#include <stdatomic.h>

enum {
    BLOCKS_PER_THREAD = 4, /* short waits for a preempted thread */
    MOST_BLOCKS = 64,
};

struct accumulation_split {
    const struct accumulation *accumulation;
    ptrdiff_t elements; /* of each block but the last */
    int blocks;
    _Atomic int next;
    uint64_t carry[MOST_BLOCKS]; /* what precedes each block */
};

static ptrdiff_t length(const struct accumulation_split *split, int block)
{
    const ptrdiff_t left = split->accumulation->n - block * split->elements;
    return left < split->elements ? left : split->elements;
}

/* The carry of a block is first the reduction of the block before it alone. */
static void reduce_blocks(void *context, int index)
{
    (void)index;
    struct accumulation_split *split = context;
    const struct accumulation *accumulation = split->accumulation;
    int block;
    while ((block = atomic_fetch_add(&split->next, 1)) < split->blocks - 1) {
        const char *in = accumulation->in + block * split->elements * accumulation->in_step;
        accumulation->kernel->reduce_each(accumulation->kernel, in, accumulation->in_step,
                                          length(split, block), 0, 1, false,
                                          &split->carry[block + 1]);
    }
}

static void accumulate_blocks(void *context, int index)
{
    (void)index;
    struct accumulation_split *split = context;
    const struct accumulation *accumulation = split->accumulation;
    int block;
    while ((block = atomic_fetch_add(&split->next, 1)) < split->blocks) {
        const ptrdiff_t first = block * split->elements;
        accumulation->kernel->accumulate(
            split->carry[block], accumulation->in + first * accumulation->in_step,
            accumulation->in_step, accumulation->out + first * accumulation->out_step,
            accumulation->out_step, length(split, block));
    }
}

void accumulate_compute(const struct accumulation *accumulation)
{
    const ptrdiff_t n = accumulation->n, forced = accumulation->policy->threshold;
    const bool pays = n >= (forced != 0 ? forced : REDUCTION_THREADS_ELEMENTS);
    const int threads = pays && region_available() ? threads_limit().threads : 1;
    int blocks = threads == 1 ? 1 : threads * BLOCKS_PER_THREAD;
    blocks = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
    struct accumulation_split split = {
        .accumulation = accumulation,
        .elements = (n + blocks - 1) / blocks,
    };
    split.blocks = (int)((n + split.elements - 1) / split.elements);
    const struct reduction_kernel *kernel = accumulation->kernel;
    kernel->reduce_each(kernel, accumulation->before, 0, 1, 0, 1, false, &split.carry[0]);
    if (split.blocks > 1) {
        region_run(accumulation->policy, threads, reduce_blocks, &split);
        for (int block = 1; block < split.blocks; block++) {
            kernel->combine(kernel, &split.carry[block], &split.carry[block - 1], sizeof(uint64_t));
        }
    }
    split.next = 0;
    region_run(accumulation->policy, threads, accumulate_blocks, &split);
}
