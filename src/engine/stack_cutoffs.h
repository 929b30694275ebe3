/* When a stack is shared out. `python benchmarks/linalg.py` measures it again. */
#ifndef NUMC_STACK_CUTOFFS_H
#define NUMC_STACK_CUTOFFS_H

enum {
    /* Threads pay in stacks that take longer than this on one: twice what a region costs whose workers
     * sleep. */
    STACK_BREAK_EVEN_NS = 40000,
    /* The time that a thread computes at least before it takes items again. */
    STACK_CHUNK_NS = 4000,
    /* An item as short as that is timed again, with a few others: the clock takes as long. */
    SHORT_ITEM_NS = 2000,
    SHORT_ITEMS_TIMED = 16,
    /* An item as long as that is left to the threads of its own library, where there are fewer items than
     * half the threads. */
    LONG_ITEM_NS = 2000000,
    /* Items of so many elements may call the threads of a BLAS, and are no long ones: OpenBLAS's would spin for
     * 100 ms after the first item, on the cores that the others are to be computed on. */
    HELD_LEAST_ELEMENTS = 512,
    HELD_MOST_ELEMENTS = 1 << 16,
};

#endif
