/* Threads without a chunk to copy populate pages of the result. */
#include "fresh.h"

#include "device_plan.h"
#include "memory/pages.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>

enum { LEAST_BYTES = 4 << 20 };

void fresh_cover(struct fresh *fresh, const void *data, size_t bytes)
{
    if (bytes >= LEAST_BYTES) {
        fresh->first = (uintptr_t)data;
        fresh->next = fresh->first / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
        fresh->end = fresh->first + bytes;
    }
}

void fresh_initialize(struct fresh *fresh, const struct matmul_task *task)
{
    const struct panel all = {task->product.c, task->product.batch, task->product.m,
                              task->product.n, 0};
    if (panel_is_contiguous(&all, task->type.size)) {
        fresh_cover(fresh, all.from.data, (size_t)panel_elements(&all) * task->type.size);
    }
}

int fresh_steps(const struct fresh *fresh)
{
    const uintptr_t steps = (fresh->end - fresh->next + LARGE_PAGE_BYTES - 1) / LARGE_PAGE_BYTES;
    return steps < INT_MAX ? (int)steps : INT_MAX;
}

bool fresh_touch_some(struct fresh *fresh)
{
    if (fresh->next >= fresh->end) {
        return false;
    }
    const uintptr_t at = atomic_fetch_add(&fresh->next, LARGE_PAGE_BYTES);
    if (at >= fresh->end) {
        return false;
    }
    const uintptr_t first = at > fresh->first ? at : fresh->first;
    const uintptr_t end = fresh->end - at > LARGE_PAGE_BYTES ? at + LARGE_PAGE_BYTES : fresh->end;
    pages_populate((const char *)first, (const char *)end);
    return true;
}
