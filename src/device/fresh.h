/* Memory of a new array has no pages yet: getting them takes about as long as a copy. */
#ifndef NUMC_FRESH_H
#define NUMC_FRESH_H

#include "device.h"

struct fresh {
    uintptr_t first, end;
    _Atomic uintptr_t next; /* where the step begins that is to be asked for next */
};

/* From zeros: all of the task's result, if it lies without gaps and is worth it; otherwise nothing. */
void fresh_initialize(struct fresh *fresh, const struct matmul_task *task);

/* How many threads could touch some of it at the same time. */
int fresh_steps(const struct fresh *fresh);

/* Asks for some pages; what is there stays as it is. False if there are none left. */
bool fresh_touch_some(struct fresh *fresh);

#endif
