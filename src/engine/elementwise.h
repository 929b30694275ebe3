/* One call of an inner loop: whether to use threads, in what order, and which part goes where. */
#ifndef NUMC_ELEMENTWISE_H
#define NUMC_ELEMENTWISE_H

#include "threads/policy.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_OPERANDS = 32 };

enum order {
    IN_ORDER,           /* operands overlap: element k may read what element k-1 wrote */
    ANY_ORDER,          /* elements_commute() */
    ANY_ORDER_STREAMING /* and the outputs are larger than the cache */
};

/* An inner loop, and what has been learnt of it. */
struct elementwise {
    /* Computes n elements. With ANY_ORDER it is called by several threads at once, for disjoint
     * parts of one call; `first` is the index of the part's first element in the call. */
    void (*run)(const struct elementwise *loop, void *call, enum order order, char *const data[],
                const ptrdiff_t step[], ptrdiff_t first, ptrdiff_t n);
    /* Computes rows of n elements, in any order; only nested.c asks for it. */
    void (*run_rows)(const struct elementwise *loop, void *call, enum order order,
                     char *const data[], const ptrdiff_t row_step[], const ptrdiff_t step[],
                     ptrdiff_t rows, ptrdiff_t n);
    /* Whether several threads may run it now; NULL: always. */
    bool (*allows_threads)(const struct elementwise *loop);
    /* Around the part of a call that runs on several threads. */
    void (*before_threads)(void *call);
    void (*after_threads)(void *call);
    bool asks_for_order; /* runs faster where it knows more than IN_ORDER */
    int inputs, operands;
    size_t item_size[MOST_OPERANDS];
    const struct policy *policy;
    ptrdiff_t tiny;
    _Atomic ptrdiff_t serial_below; /* calls of fewer elements stay on the calling thread */
    _Atomic unsigned calls;         /* that were not tiny */
};

/* Completes a loop whose operands are described: nothing is learnt yet. */
void elementwise_initialize(struct elementwise *loop);

/* Whether a call of n elements gains nothing here: it should run its loop directly, in order. */
static inline bool elementwise_is_tiny(const struct elementwise *loop, ptrdiff_t n)
{
    return n < loop->tiny && (loop->policy->threshold == 0 || n < loop->policy->threshold);
}

/* Computes n elements, on several threads where that is allowed and pays. `call` is handed on. */
void elementwise_run(struct elementwise *loop, void *call, char *const data[],
                     const ptrdiff_t step[], ptrdiff_t n);

/* For those who split a call themselves: the number of threads that n elements should run on now, and
 * what they tell of each call. Some calls are to be timed, in part: what they learn decides later. */
int elementwise_threads(const struct elementwise *loop, ptrdiff_t n);
void elementwise_count_call(struct elementwise *loop);
bool elementwise_is_timed(const struct elementwise *loop);
void elementwise_learn(struct elementwise *loop, ptrdiff_t elements, int64_t ns);

/* Whether the outputs of n elements are too large for the cache. */
bool elementwise_streams(const struct elementwise *loop, ptrdiff_t n);

#endif
