/* How much memory is kept. */
#ifndef NUMC_MEMORY_LIMITS_H
#define NUMC_MEMORY_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* Call once, before a block is kept. `limit`: bytes, 0 for an eighth of the memory. */
void memory_limits_initialize(size_t limit);

/* For tests. Of the machine and the control group below another root; NULL: the real one. */
void memory_limits_read(const char *root);
/* Nanoseconds; NULL: the real clock. */
void memory_limits_replace_clock(int64_t (*clock)(void));

#endif
