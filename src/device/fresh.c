/* Threads that would wait otherwise let the system make pages. */
#include "fresh.h"

#include "part.h"

#include <stdatomic.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* of Linux 5.14; older ones refuse it */
#endif

enum { LEAST_BYTES = 4 << 20, STEP = 2 << 20 };

void fresh_initialize(struct fresh *fresh, const struct matmul_task *task)
{
    const struct part all = {task->c, task->batch, task->m, task->n};
    const uintptr_t bytes = (uintptr_t)part_elements(&all) * task->type.size;
    if (bytes >= LEAST_BYTES && part_is_contiguous(&all, task->type.size)) {
        /* Whole steps only: what lies in front and behind belongs to others. */
        fresh->next = ((uintptr_t)task->c.data + STEP - 1) / STEP * STEP;
        fresh->end = ((uintptr_t)task->c.data + bytes) / STEP * STEP;
    }
}

bool fresh_touch_some(struct fresh *fresh)
{
    if (fresh->next >= fresh->end) {
        return false;
    }
    const uintptr_t at = atomic_fetch_add(&fresh->next, STEP);
    if (at >= fresh->end) {
        return false;
    }
    if (madvise((void *)at, STEP, MADV_POPULATE_WRITE) != 0) {
        fresh->next = fresh->end;
    }
    return true;
}
