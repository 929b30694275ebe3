/* Two threads that write to new memory would fault in the same large page, and both fill it with
 * zeros: so each thread populates the chunk that it is about to write. */
#include "pages.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* of Linux 5.14 */
#endif

static uintptr_t page_size(void)
{
    static _Atomic uintptr_t known;
    uintptr_t size = atomic_load_explicit(&known, memory_order_relaxed);
    if (size == 0) {
        size = (uintptr_t)sysconf(_SC_PAGESIZE);
        atomic_store_explicit(&known, size, memory_order_relaxed);
    }
    return size;
}

void *pages_map(size_t bytes, bool is_huge)
{
    const size_t more = is_huge ? LARGE_PAGE_BYTES : 0;
    char *data =
        mmap(NULL, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        return NULL;
    }
    if (!is_huge) {
        return data;
    }
    const size_t before = -(uintptr_t)data % LARGE_PAGE_BYTES;
    if (before > 0) {
        munmap(data, before);
    }
    munmap(data + before + bytes, LARGE_PAGE_BYTES - before);
    madvise(data + before, bytes, MADV_HUGEPAGE);
    return data + before;
}

static bool page_is_there(uintptr_t address, uintptr_t page)
{
    unsigned char is_there;
    return mincore((void *)(address / page * page), page, &is_there) == 0 && (is_there & 1) != 0;
}

bool pages_are_there(const char *first, const char *end)
{
    const uintptr_t page = page_size();
    return page_is_there((uintptr_t)(first + (end - first) / 2), page) &&
           page_is_there((uintptr_t)end - 1, page);
}

/* Whether the system knows the advice: of memory of a device it refuses it, whatever it knows. */
static bool can_populate(uintptr_t page)
{
    static _Atomic int known; /* 0: not yet */
    int can = atomic_load_explicit(&known, memory_order_relaxed);
    if (can == 0) {
        can = madvise((void *)page, 0, MADV_POPULATE_WRITE) == 0 ? 1 : -1;
        atomic_store_explicit(&known, can, memory_order_relaxed);
    }
    return can > 0;
}

void pages_populate(const char *first, const char *end)
{
    const uintptr_t page = page_size();
    /* Whole pages only: what lies in front and behind belongs to others. */
    const uintptr_t from = ((uintptr_t)first + page - 1) / page * page;
    const uintptr_t to = (uintptr_t)end / page * page;
    if (from >= to || !can_populate(page)) {
        return;
    }
    /* The allocator may have used this memory before. A thread that writes to the same large page
     * further on may have populated its end alone. */
    if (!(page_is_there(from, page) && page_is_there(to - page, page))) {
        madvise((void *)from, to - from, MADV_POPULATE_WRITE);
    }
}
