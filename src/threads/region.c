#include "clock.h"
#include "limit.h"
#include "openmp.h"
#include "pool.h"
#include "region.h"

#include <fenv.h>
#include <pthread.h>

enum {
    /* In calls of so many break-evens, threads pay even if workers must be woken, which takes some tens of
     * us. Cold cells of `python benchmarks/never_slower.py` */
    COLD_BREAK_EVENS = 5,
    COLD_AGAIN_WITHIN_NS = 5000000, /* calls that follow each other so soon go on */
    CHUNKS_PER_THREAD = 8,          /* of ranges: none waits long for the last one */
};

struct region {
    region_share *share;
    void *context;
    fenv_t environment;
    _Atomic int raised; /* exception flags */
};

static _Atomic int threads_active;
static _Atomic uint64_t regions;
static _Thread_local bool inside;
static _Atomic unsigned forks; /* that this process comes from */

/* The parent's other threads may have been within regions, or about to call workers. */
static void start_anew(void)
{
    pool_reset();
    atomic_store(&threads_active, 0);
    atomic_fetch_add(&forks, 1);
    inside = false;
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, start_anew);
}

static bool is_within_none(void)
{
    return !inside && !openmp_in_parallel();
}

bool region_available(void)
{
    if (!inside) {
        openmp_find();
    }
    return is_within_none();
}

bool region_is_cold(int threads)
{
    return pool_is_asleep(threads - 1);
}

bool region_leaves_asleep(int threads, ptrdiff_t n, ptrdiff_t break_even)
{
    static _Atomic int64_t cold_call_ns;
    if (threads == 1 || n / COLD_BREAK_EVENS >= break_even || !region_is_cold(threads)) {
        return false;
    }
    const int64_t now = clock_ns();
    const int64_t before = atomic_exchange_explicit(&cold_call_ns, now, memory_order_relaxed);
    return before == 0 || now - before > COLD_AGAIN_WITHIN_NS;
}

int threads_for(const struct policy *policy, ptrdiff_t n, ptrdiff_t break_even)
{
    const ptrdiff_t forced = policy->threshold, pays = forced != 0 ? forced : break_even;
    if (n < pays || !region_available()) {
        return 1;
    }
    const int threads = threads_limit().threads;
    return threads > 1 && forced == 0 && region_leaves_asleep(threads, n, pays) ? 1 : threads;
}

int threads_for_ns(const struct policy *policy, double ns, double break_even)
{
    const bool pays = policy->threshold != 0 || ns >= break_even;
    return pays && region_available() ? threads_limit().threads : 1;
}

int region_active(void)
{
    return atomic_load(&threads_active);
}

uint64_t region_count(void)
{
    return atomic_load(&regions);
}

/* Takes up to `wanted` threads, the caller's own among them, out of those of the machine that are not in
 * use. */
static int take_threads(int wanted)
{
    int active = atomic_load(&threads_active);
    const int machine = active > 0 ? threads_limit_by_default().threads : 0;
    int taken;
    do {
        const int unused = (machine > wanted ? machine : wanted) - active;
        taken = unused < 1 ? 1 : unused < wanted ? unused : wanted;
    } while (!atomic_compare_exchange_weak(&threads_active, &active, active + taken));
    return taken;
}

static void run_on_worker(void *context, int index)
{
    struct region *region = context;
    inside = true;
    fesetenv(&region->environment);
    feclearexcept(FE_ALL_EXCEPT);
    region->share(region->context, index);
    atomic_fetch_or(&region->raised, fetestexcept(FE_ALL_EXCEPT));
}

static int run_with_workers(const struct policy *policy, int workers, region_share *share,
                            void *context)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct region region = {.share = share, .context = context};
    struct team team;
    pthread_once(&once, install_fork_handler);
    team.task = run_on_worker;
    team.context = &region;
    fegetenv(&region.environment);
    pool_call(&team, workers);
    if (policy->awaits_workers) {
        pool_await(&team);
    }
    const unsigned forks_before = atomic_load(&forks);
    inside = true;
    share(context, 0);
    inside = false;
    if (atomic_load(&forks) != forks_before) {
        return 1; /* a child of a fork within the share: the workers stayed in the parent */
    }
    const int came = pool_dismiss(&team);
    atomic_fetch_add(&regions, came > 0);
    if (region.raised != 0) {
        feraiseexcept(region.raised);
    }
    return 1 + came;
}

int region_run(const struct policy *policy, int threads, region_share *share, void *context)
{
    if (threads <= 1 || !is_within_none()) {
        share(context, 0);
        return 1;
    }
    const unsigned forks_before = atomic_load(&forks);
    const int taken = take_threads(threads);
    int count = 1;
    if (taken > 1) {
        count = run_with_workers(policy, taken - 1, share, context);
    } else {
        share(context, 0);
    }
    if (atomic_load(&forks) == forks_before) {
        atomic_fetch_sub(&threads_active, taken);
    }
    return count;
}

struct region_ranges {
    region_range *run;
    void *context;
    ptrdiff_t end, chunk;
    _Atomic ptrdiff_t next;
};

static void run_ranges(void *context, int index)
{
    (void)index;
    struct region_ranges *ranges = context;
    ptrdiff_t first;
    while ((first = atomic_fetch_add(&ranges->next, ranges->chunk)) < ranges->end) {
        const ptrdiff_t left = ranges->end - first;
        ranges->run(ranges->context, first, left < ranges->chunk ? left : ranges->chunk);
    }
}

void region_run_ranges(const struct policy *policy, int threads, ptrdiff_t end, ptrdiff_t chunk,
                       region_range *run, void *context)
{
    if (threads <= 1 || end <= (chunk > 1 ? chunk : 1)) {
        run(context, 0, end);
        return;
    }
    const ptrdiff_t share = chunk > 0 ? chunk : end / (CHUNKS_PER_THREAD * (ptrdiff_t)threads);
    struct region_ranges ranges = {run, context, end, share > 0 ? share : 1, 0};
    region_run(policy, threads, run_ranges, &ranges);
}
