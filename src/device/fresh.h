/* Populates the pages of a new result ahead of its download: the page faults take about as long as
 * the copy. */
#ifndef NUMC_FRESH_H
#define NUMC_FRESH_H

#include "device.h"

struct fresh {
    uintptr_t first, end;
    _Atomic uintptr_t next; /* where the next step begins */
};

/* `fresh` is all zero before. Covers a result that is large enough to pay, otherwise nothing. */
void fresh_cover(struct fresh *fresh, const void *data, size_t bytes);

/* The same for the result of a product, if it is contiguous. */
void fresh_initialize(struct fresh *fresh, const struct matmul_task *task);

/* In how many steps the pages are populated: more threads than that gain nothing. */
int fresh_steps(const struct fresh *fresh);

/* Populates the pages of one step without changing their contents. False if none are left. */
bool fresh_touch_some(struct fresh *fresh);

#endif
