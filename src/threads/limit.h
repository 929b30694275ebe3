/* How many threads a call may use: options, environment, affinity, OpenMP, CPU quota. */
#ifndef NUMC_LIMIT_H
#define NUMC_LIMIT_H

#include <stddef.h>
/* Call once, before anything else here. `most` is an upper limit, 0 for none; the control group's
 * quota is read below `cgroup_root`, see cgroup_cpus(). */
void threads_initialize(int most, const char *cgroup_root);

/* The quota again, of another root: for tests. */
void threads_read_quota(const char *cgroup_root);

/* 0 means unset. The calling thread's own number comes first, then the process's. */
void threads_set_for_process(int threads);
void threads_set_for_this_thread(int threads);
int threads_of_process(void);
int threads_of_this_thread(void);

/* The number of threads that a call of this thread may use, and the rule that decided it. */
struct thread_limit {
    int threads;
    const char *reason; /* a static string */
};
struct thread_limit threads_limit(void);

/* What threads_limit() is where no option sets it. */
struct thread_limit threads_limit_by_default(void);

/* CPUs that the calling thread may run on. */
int threads_cpus(void);

#endif
