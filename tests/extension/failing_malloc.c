/* To be preloaded: the Nth allocation fails that one library makes, all others succeed. */
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))

/* glibc's own names for what is replaced here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

struct library {
    const char *name;
    uintptr_t first, end;
};
static struct library watched;
static _Atomic long allocations, failing;

static int find_library(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    struct library *library = context;
    if (strstr(info->dlpi_name, library->name) == NULL) {
        return 0;
    }
    library->first = UINTPTR_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const uintptr_t first = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD) {
            library->first = first < library->first ? first : library->first;
            library->end =
                first + segment->p_memsz > library->end ? first + segment->p_memsz : library->end;
        }
    }
    return 1;
}

/* From now on the `nth` allocation fails that is made by the library with `name` in its path; 0: none.
 * Returns whether there is one. */
SHOWN int failing_malloc_arm(const char *name, long nth)
{
    struct library library = {.name = name};
    if (dl_iterate_phdr(find_library, &library) == 0) {
        return 0;
    }
    watched = library;
    atomic_store(&failing, nth);
    atomic_store(&allocations, 0);
    return 1;
}

/* Allocations of the library since then. */
SHOWN long failing_malloc_count(void)
{
    return atomic_load(&allocations);
}

static bool fails(const void *caller)
{
    if ((uintptr_t)caller < watched.first || (uintptr_t)caller >= watched.end ||
        atomic_fetch_add(&allocations, 1) + 1 != atomic_load(&failing)) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

#define FAILS() fails(__builtin_return_address(0))

SHOWN void *malloc(size_t size)
{
    return FAILS() ? NULL : __libc_malloc(size);
}

SHOWN void *calloc(size_t count, size_t size)
{
    return FAILS() ? NULL : __libc_calloc(count, size);
}

SHOWN void *realloc(void *memory, size_t size)
{
    return FAILS() ? NULL : __libc_realloc(memory, size);
}

SHOWN void *aligned_alloc(size_t alignment, size_t size)
{
    return FAILS() ? NULL : __libc_memalign(alignment, size);
}
