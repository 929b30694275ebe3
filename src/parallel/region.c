/* Runs a function on several threads, and keeps concurrent callers within the machine. */
#include "parallel.h"
#include "region.h"

#include <fenv.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>

static _Atomic int threads_active;
static _Atomic uint64_t regions;
static bool forked;

/* libgomp's pool does not survive fork: the first region of a child would wait for threads that
 * are not there. Threads of the parent that were active are gone, too. */
static void after_fork_in_child(void)
{
    forked = true;
    atomic_store(&threads_active, 0);
}

void region_initialize(void)
{
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

bool region_available(void)
{
    return !forked && !omp_in_parallel();
}

int region_active(void)
{
    return atomic_load(&threads_active);
}

uint64_t region_count(void)
{
    return atomic_load(&regions);
}

/* Takes up to `wanted` threads, the caller's own among them, out of what is not in use. */
static int take_threads(int wanted)
{
    int active = atomic_load(&threads_active);
    int taken;
    do {
        const int unused = wanted - active;
        taken = unused > 1 ? unused : 1;
    } while (!atomic_compare_exchange_weak(&threads_active, &active, active + taken));
    return taken;
}

static void *wait_for_probe(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

/* libgomp ends the process when the system refuses it a thread (RLIMIT_NPROC, a pids limit, memory).
 * So a team that is larger than any before on this thread is tried out first: the number of threads,
 * up to `wanted`, that could be started at once. */
static int threads_granted(int wanted)
{
    static _Thread_local int granted_before = 1;
    if (wanted <= granted_before) {
        return wanted;
    }
    pthread_t *probes = malloc((size_t)wanted * sizeof *probes);
    if (probes == NULL) {
        return granted_before;
    }
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    int started = 0;
    while (started < wanted - 1 &&
           pthread_create(&probes[started], NULL, wait_for_probe, &lock) == 0) {
        started++;
    }
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < started; i++) {
        pthread_join(probes[i], NULL);
    }
    free(probes);
    /* One that was refused was the last that there was: leave some to others. */
    granted_before = started == wanted - 1 ? wanted : started / 2 + 1;
    return granted_before;
}

int region_run(int threads, region_share *share, void *context)
{
    if (threads <= 1 || !region_available()) {
        share(context, 0, 1);
        return 1;
    }
    const int taken = take_threads(threads_granted(threads));
    int count = 1;
    if (taken == 1) {
        share(context, 0, 1);
    } else {
        fenv_t environment;
        fegetenv(&environment);
        _Atomic int raised = 0;
#pragma omp parallel num_threads(taken)
        {
            const int index = omp_get_thread_num();
            if (index == 0) {
                count = omp_get_num_threads();
                share(context, 0, count);
            } else {
                /* Other libraries use these threads, too: they get their environment back. */
                fenv_t own;
                fegetenv(&own);
                fesetenv(&environment);
                feclearexcept(FE_ALL_EXCEPT);
                share(context, index, omp_get_num_threads());
                atomic_fetch_or(&raised, fetestexcept(FE_ALL_EXCEPT));
                fesetenv(&own);
            }
        }
        atomic_fetch_add(&regions, 1);
        if (raised != 0) {
            feraiseexcept(raised);
        }
    }
    atomic_fetch_sub(&threads_active, taken);
    return count;
}
