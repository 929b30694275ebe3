/* A reduction cut into blocks, which threads compute in any order; and what all ways of cutting need. */
#ifndef NUMC_REDUCTION_SPLIT_H
#define NUMC_REDUCTION_SPLIT_H

#include "kernels/kernels.h"
#include "reduction_cutoffs.h"
#include "reduction_task.h"

#include <stdatomic.h>

struct reduction_split {
    const struct reduction *reduction;
    void (*run)(const struct reduction_split *split, ptrdiff_t block, char *scratch);
    ptrdiff_t blocks, chunk; /* that a thread takes at a time */
    ptrdiff_t results;       /* of the fastest kept axis in a block */
    ptrdiff_t slices;        /* of the fastest kept axis: so many blocks side by side */
    ptrdiff_t places;        /* by packed columns: of the second kept axis in a block */
    ptrdiff_t calls;         /* inner calls for a result */
    ptrdiff_t gathered;      /* by results: so many are reduced at a time */
    ptrdiff_t first_call;    /* by elements: of this batch */
    int halvings;            /* by elements: an inner call is 2^halvings blocks */
    int cut;                 /* by columns: the repeated axis that is cut into `cuts`, */
    ptrdiff_t cuts;          /* each with results of its own, which are combined in pairs: */
    atomic_bool *arrived;    /* one of a pair is there */
    bool from_memory;        /* the operand is larger than the caches */
    size_t scratch_bytes;    /* of each thread */
    size_t gathered_bytes;   /* the part of it where elements are gathered */
    char *scratch;           /* the caller's */
    size_t partial_bytes;
    char *partials;
    _Atomic ptrdiff_t next;
    _Atomic bool is_found; /* by elements: a block has the result that ends a search */
};

/* Of n that threads share, those of a block: several for each thread, but all on one. */
static inline ptrdiff_t even_share(ptrdiff_t n, int threads)
{
    return threads > 1 ? n / (threads * REDUCTION_BLOCKS_PER_THREAD) : n;
}

/* Bytes of all elements. */
static inline ptrdiff_t total_bytes(const struct reduction *reduction)
{
    return size_from(&reduction->kept, 0) * size_from(&reduction->repeated, 0) *
           size_from(&reduction->inner, 0) * (ptrdiff_t)reduction->conversion.from_size;
}

/* Stores the results of `n` sums, or combines them with what is in the output. */
static inline void store_results(const struct reduction *reduction, const void *sums,
                                 ptrdiff_t out_offset, ptrdiff_t n, bool onto)
{
    reduction->kernel->store(reduction->kernel, sums, n, reduction->out + out_offset,
                             fastest(&reduction->kept).out_step, reduction->out_size, onto);
}

#endif
