/* Element-wise calls: what computes the elements, in what order, on how many threads. */
#ifndef NUMC_ELEMENTWISE_H
#define NUMC_ELEMENTWISE_H

#include "kernels/kernels.h"
#include "threads/policy.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_OPERANDS = 32 };

/* An inner loop of NumPy's for *n elements. */
typedef void inner_loop(char *data[], const ptrdiff_t *n, const ptrdiff_t step[], void *loop_data);

/* What an inner loop needs that may raise Python exceptions; `hook_data` is the plan's. */
struct inner_loop_hooks {
    /* Around the part of a call that runs on several threads. */
    void (*before_threads)(void *hook_data);
    void (*after_threads)(void *hook_data);
    /* Around each chunk, on the thread that computes it; `first` is the index of its first element. */
    void (*before_chunk)(void *hook_data);
    void (*after_chunk)(void *hook_data, ptrdiff_t first);
};

/* For which operands an inner loop gives an element the same bits: */
enum same_bits {
    SAME_IN_LINE, /* contiguous or repeated inputs and a contiguous output, one after the other as NumPy hands them */
    SAME_FORWARD, /* any but those that run backwards, and a contiguous output, in any parts */
    SAME_ANYWHERE,
};

/* What computes the elements of one row of a ufunc's table, and what has been learnt of it. */
struct elementwise {
    inner_loop *function; /* NULL: a kernel does all */
    void *function_data;
    const struct inner_loop_hooks *hooks;
    const struct kernel *kernel; /* NULL: the inner loop does all */
    bool kernel_takes_any_step;  /* and beats the inner loop there */
    enum same_bits same_bits;    /* of the inner loop */
    bool zeros_tie; /* which zero results depends on where in a call of the inner loop they are */
    /* Whether several threads may run the inner loop now; NULL: always. */
    bool (*allows_threads)(const struct elementwise *loop);
    int inputs, operands;
    size_t item_size[MOST_OPERANDS + 1]; /* the last one that of a mask */
    const struct policy *policy;
    ptrdiff_t tiny_elements;
    _Atomic ptrdiff_t break_even; /* calls of fewer elements stay on the calling thread */
    _Atomic unsigned calls;       /* that were not tiny */
};

/* Completes a loop whose operands are described: nothing is learnt yet. */
void elementwise_initialize(struct elementwise *loop);

/* Whether a call of n elements gains nothing here: it is computed at once, in this thread. */
static inline bool elementwise_is_tiny(const struct elementwise *loop, ptrdiff_t n)
{
    return n < loop->tiny_elements && (loop->policy->threshold == 0 || n < loop->policy->threshold);
}

/* Whether the outputs of n elements are to be stored past the cache. */
bool elementwise_streams(const struct elementwise *loop, char *const data[], ptrdiff_t n);

/* The kernel for n elements with these steps that may be computed in any order; NULL: the inner loop. */
elementwise_kernel *elementwise_choose(const struct elementwise *loop, const ptrdiff_t step[],
                                       bool streams);

/* One call over n elements that may be computed in any order, see elements_commute(). */
struct elementwise_plan {
    struct elementwise *loop;
    elementwise_kernel *kernel; /* NULL: the inner loop */
    bool streams;               /* the kernel stores past the cache */
    bool output_is_new;         /* its memory has no pages yet */
    void *hook_data;            /* of the call */
    char *const *data;
    const ptrdiff_t *step;
    ptrdiff_t n;
};

/* Fills in the kernel of a plan that has its operands. */
void elementwise_plan_kernel(struct elementwise_plan *plan);

/* Carries it out, on several threads where that pays. */
void elementwise_run(const struct elementwise_plan *plan);

/* Plans and carries out a call that an inner loop gets: its operands may overlap. */
void elementwise_run_loop(struct elementwise *loop, void *hook_data, char *const data[],
                          const ptrdiff_t step[], ptrdiff_t n);

/* Computes n elements with the inner loop, as a chunk of a call that `first` is the first one of. */
void elementwise_run_chunk(const struct elementwise *loop, void *hook_data, char *const data[],
                           const ptrdiff_t step[], ptrdiff_t first, ptrdiff_t n);

/* The chunks of a call's units that one thread computes. */
struct chunks {
    int thread;
    ptrdiff_t first, end;  /* which come before all others; none if they are equal */
    struct shares *shares; /* of the others; NULL: there are none */
};

/* Takes the next units [*first, *end); false when none is left. */
bool chunks_take(struct chunks *chunks, ptrdiff_t *first, ptrdiff_t *end);

/* Work that is shared out among threads: `units` of elements, tiles, or what else is not to be divided.
 * run(context, chunks) computes all chunks that it can take, so what a thread has prepared for one chunk,
 * such as a packed tile, serves the next. */
struct shared_work {
    struct elementwise *loop;
    void *hook_data; /* NULL: no hooks are needed */
    void (*run)(void *context, struct chunks *chunks);
    void *context;
    ptrdiff_t units, elements_of_unit;
    ptrdiff_t timed;         /* units that are timed to learn the break-even; 0: none */
    ptrdiff_t block, offset; /* chunks begin at `offset` plus multiples of `block` units */
    int threads;             /* as elementwise_threads() says; 0: it is to be asked */
};

void elementwise_share_out(const struct shared_work *work);

/* How many threads n elements should run on now. */
int elementwise_threads(const struct elementwise *loop, ptrdiff_t n);

#endif
