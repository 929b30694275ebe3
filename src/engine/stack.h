/* Stacks: items that are computed one by one, in any order, on all cores. */
#ifndef NUMC_STACK_H
#define NUMC_STACK_H

#include "elementwise.h"

#include "threads/policy.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What has been learnt of a loop over items. */
struct stack_speed {
    _Atomic int64_t ps; /* per element of an item; 0: unknown */
    _Atomic unsigned calls;
};

struct stack {
    const struct policy *policy;
    struct stack_speed *speed;
    /* Computes items [first, first + count). False if one has failed: the rest need not be computed. */
    bool (*run)(void *context, ptrdiff_t first, ptrdiff_t count);
    void *context;
    const struct inner_loop_hooks *hooks; /* around threads */
    void *hook_data;
    bool (*allows_threads)(void *context); /* asked before; NULL: always */
    ptrdiff_t count;
    ptrdiff_t item_elements; /* of all operands */
    ptrdiff_t at_once;       /* items that run() takes together */
};

/* Whether so many elements are known to take so little time that the clock is not worth reading: then they
 * are computed at once, in this thread. */
bool stack_is_short(const struct policy *policy, struct stack_speed *speed, ptrdiff_t elements);

void stack_run(const struct stack *stack);

#endif
