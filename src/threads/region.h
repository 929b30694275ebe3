/* Runs a function on several threads, and keeps concurrent callers within the machine. */
#ifndef NUMC_REGION_H
#define NUMC_REGION_H

#include "policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls share(context, index) on the calling thread, index 0, and on up to `threads` - 1 others at once,
 * each with an index of its own below `threads`. Any of those may come late or not at all: because
 * concurrent callers use the machine, or the system grants no more threads or keeps them from a
 * processor. So every share takes work until none is left; then those that came have
 * done it all. Workers compute in the caller's floating-point environment, and the exception flags that
 * they raise are raised in the caller. Returns the number of threads that came. */
typedef void region_share(void *context, int index);
int region_run(const struct policy *policy, int threads, region_share *share, void *context);

/* Calls run(context, first, count) for ranges that together are [0, end): on this thread, or on up to
 * `threads` threads, which take `chunk` indices at a time, or an eighth of what is there for each if that
 * is 0. */
typedef void region_range(void *context, ptrdiff_t first, ptrdiff_t count);
void region_run_ranges(const struct policy *policy, int threads, ptrdiff_t end, ptrdiff_t chunk,
                       region_range *run, void *context);

/* Whether region_run could use more than one thread now. */
bool region_available(void);

/* Whether so many threads would have to be woken or started: then a region costs some tens of us, not 1
 * to 5, until all compute. An estimate, from one load. */
bool region_is_cold(int threads);

/* Whether a call of n elements, for which `threads` threads pay from `break_even` on, should do without
 * workers that sleep: it is short, and none has found them so for some ms. A program that goes on calling
 * gains by waking them, one that calls now and then does not. */
bool region_leaves_asleep(int threads, ptrdiff_t n, ptrdiff_t break_even);

/* How many threads n elements should run on now; threads pay from `break_even` on, unless the policy says
 * otherwise. */
int threads_for(const struct policy *policy, ptrdiff_t n, ptrdiff_t break_even);

/* The same for work that takes `ns` on one, whether workers sleep or not. */
int threads_for_ns(const struct policy *policy, double ns, double break_even);

/* Threads that region_run with more than one thread occupies now, callers included. */
int region_active(void);

/* How often more than one thread came so far. */
uint64_t region_count(void);

#endif
