#include "cgroup.h"
#include "limit.h"
#include "openmp.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic int for_process;
static _Thread_local int for_this_thread;
static int upper_limit; /* 0: none */
static int from_cgroup;

void threads_initialize(int most, const char *cgroup_root)
{
    openmp_initialize();
    upper_limit = most;
    threads_read_quota(cgroup_root);
}

void threads_read_quota(const char *cgroup_root)
{
    from_cgroup = cgroup_cpus(cgroup_root);
}

void threads_set_for_process(int threads)
{
    atomic_store(&for_process, threads);
}

void threads_set_for_this_thread(int threads)
{
    for_this_thread = threads;
}

int threads_of_process(void)
{
    return atomic_load(&for_process);
}

int threads_of_this_thread(void)
{
    return for_this_thread;
}

int threads_cpus(void)
{
    cpu_set_t few;
    if (sched_getaffinity(0, sizeof few, &few) == 0) {
        return CPU_COUNT(&few);
    }
    /* More CPUs than fit into cpu_set_t. */
    for (int cpus = 4 * CPU_SETSIZE; cpus <= 1024 * CPU_SETSIZE; cpus *= 4) {
        cpu_set_t *many = CPU_ALLOC((size_t)cpus);
        if (many == NULL) {
            break;
        }
        const size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        const int count = sched_getaffinity(0, size, many) == 0 ? CPU_COUNT_S(size, many) : 0;
        CPU_FREE(many);
        if (count != 0) {
            return count;
        }
    }
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online < INT_MAX ? (int)online : 1;
}

struct thread_limit threads_limit_by_default(void)
{
    struct thread_limit limit;
    openmp_find();
    limit.threads = openmp_limit(&limit.reason);
    const int affinity = threads_cpus();
    if (affinity <= limit.threads) {
        limit = (struct thread_limit){affinity, "CPUs that this thread may run on"};
    }
    if (from_cgroup != 0 && from_cgroup < limit.threads) {
        limit = (struct thread_limit){from_cgroup, "CPU quota of the control group"};
    }
    if (upper_limit != 0 && upper_limit < limit.threads) {
        limit = (struct thread_limit){upper_limit, "NUMC_NUM_THREADS"};
    }
    return limit;
}

struct thread_limit threads_limit(void)
{
    if (for_this_thread != 0) {
        return (struct thread_limit){for_this_thread, "config(threads=)"};
    }
    const int process = atomic_load(&for_process);
    if (process != 0) {
        return (struct thread_limit){process, "set_config(threads=)"};
    }
    return threads_limit_by_default();
}
