/* The pages of new memory. */
#ifndef NUMC_PAGES_H
#define NUMC_PAGES_H

enum { LARGE_PAGE_BYTES = 2 << 20 };

/* Lets the system make the pages in [first, end), at once and by this thread, where it has not; what is
 * there stays as it is. Nothing happens before Linux 5.14. */
void pages_populate(const char *first, const char *end);

#endif
