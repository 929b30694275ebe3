/* Threads that have nothing to copy let the system make pages. */
#include "fresh.h"

#include "device_plan.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* of Linux 5.14; older ones refuse it */
#endif

enum { LEAST_BYTES = 4 << 20, STEP = 2 << 20 };

void fresh_initialize(struct fresh *fresh, const struct matmul_task *task)
{
    const struct panel all = {task->product.c, task->product.batch, task->product.m,
                              task->product.n, 0};
    const uintptr_t bytes = (uintptr_t)panel_elements(&all) * task->type.size;
    if (bytes >= LEAST_BYTES && panel_is_contiguous(&all, task->type.size)) {
        /* Whole pages only: what lies in front and behind belongs to others. */
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        fresh->first = ((uintptr_t)task->product.c.data + page - 1) / page * page;
        fresh->next = fresh->first / STEP * STEP;
        fresh->end = ((uintptr_t)task->product.c.data + bytes) / page * page;
    }
}

int fresh_steps(const struct fresh *fresh)
{
    const uintptr_t steps = (fresh->end - fresh->next + STEP - 1) / STEP;
    return steps < INT_MAX ? (int)steps : INT_MAX;
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
    const uintptr_t first = at > fresh->first ? at : fresh->first;
    const uintptr_t end = fresh->end - at > STEP ? at + STEP : fresh->end;
    if (madvise((void *)first, end - first, MADV_POPULATE_WRITE) != 0) {
        fresh->next = fresh->end;
    }
    return true;
}
