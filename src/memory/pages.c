/* Two threads that write to new memory would fault in the same large page, and both fill it with
 * zeros: so each thread populates the chunk that it is about to write. */
#include "pages.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* of Linux 5.14 */
#endif

void pages_populate(const char *first, const char *end)
{
    static _Atomic bool is_refused;
    static _Atomic uintptr_t known_size;
    uintptr_t page = atomic_load_explicit(&known_size, memory_order_relaxed);
    if (page == 0) {
        page = (uintptr_t)sysconf(_SC_PAGESIZE);
        atomic_store_explicit(&known_size, page, memory_order_relaxed);
    }
    /* Whole pages only: what lies in front and behind belongs to others. */
    const uintptr_t from = ((uintptr_t)first + page - 1) / page * page;
    const uintptr_t to = (uintptr_t)end / page * page;
    unsigned char is_there;
    if (from >= to || atomic_load_explicit(&is_refused, memory_order_relaxed)) {
        return;
    }
    /* The allocator may have used this memory before. */
    const bool is_used = mincore((void *)(to - page), page, &is_there) == 0 && (is_there & 1) != 0;
    if (!is_used && madvise((void *)from, to - from, MADV_POPULATE_WRITE) != 0 && errno == EINVAL) {
        atomic_store_explicit(&is_refused, true, memory_order_relaxed);
    }
}
