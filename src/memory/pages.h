/* The pages of new memory. */
#ifndef NUMC_PAGES_H
#define NUMC_PAGES_H

#include <stdbool.h>
#include <stddef.h>

enum { LARGE_PAGE_BYTES = 2 << 20 };

/* New memory, all zeros; as huge pages where the system has them. NULL: refused. */
void *pages_map(size_t bytes, bool is_huge);

/* Faults in the pages in [first, end) from the calling thread; present ones keep their contents. Does nothing
 * before Linux 5.14. */
void pages_populate(const char *first, const char *end);

/* Whether memory has been used before, going by a page in its middle and its last one: an allocator may hand out
 * what somebody has freed. */
bool pages_are_there(const char *first, const char *end);

#endif
