/* The sizes of the processor's caches. */
#ifndef NUMC_CACHES_H
#define NUMC_CACHES_H

#include <stddef.h>

/* Bytes of the last-level cache that the calling thread's CPU shares with its neighbours: on processors
 * of several dies a part of what the package has. No more than those that share it can expect to keep.
 * Read once; never 0. */
size_t cache_last_level(void);

/* The same for CPU number `cpu`, read from /sys below `root`, "" but in tests; 0 where that says nothing. */
size_t cache_last_level_in(const char *root, int cpu);

#endif
