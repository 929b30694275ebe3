/* What the OpenMP runtimes that the process has loaded say. Ours is not linked with any: a copy of our own
 * would not hear the limits that other packages set in theirs. */
#ifndef NUMC_OPENMP_H
#define NUMC_OPENMP_H

#include <stdbool.h>

/* Reads OMP_NUM_THREADS and OMP_THREAD_LIMIT. Call once, before anything else here. */
void openmp_initialize(void);

/* Looks for runtimes that were loaded since the last call, for all that follows. */
void openmp_find(void);

/* How many threads OpenMP allows the calling thread, by the runtime that allows the fewest, or by the
 * environment; INT_MAX: any number. `reason` is a static string. */
int openmp_limit(const char **reason);

/* Whether the calling thread is within a parallel region. */
bool openmp_in_parallel(void);

/* The runtimes use no more threads where the calling thread calls them. Costs nothing if they know. */
void openmp_use_one_thread(void);

#endif
