/* The pool: worker threads that spin, then sleep, until a region calls them. OpenMP's would not do: its
 * regions end when every thread has come and gone, which takes milliseconds where other libraries'
 * threads keep the processors busy. Knows nothing of what is computed. */
#include "pool.h"

#include "clock.h"
#include "futex.h"
#include "openmp.h"
#include "quiet_thread.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>

/* See docs/decisions/0011-threads.md and docs/measurements/threads.md. */
enum {
    LINE_PAIR_BYTES = 128, /* processors fetch lines of 64 bytes in pairs */
    CALLER_SPIN_NS = 20000,
    /* Futex wakes by one thread before it computes: the caller alone would be kept from its work for
     * 40 us by 15 of them, and a chain of single wakes ends too late. */
    WAKES = 4,
    SURPLUS_NS = 1000000000, /* asleep for so long, a worker that is not needed ends */
    RETRY_NS = 1000000000,   /* after pthread_create hit a limit */
    /* Independent of RLIMIT_STACK. Ours need at most 56 KiB (measured by the tests), but loops of
     * other packages run here, too. 8 MiB each would be too much where address space is limited. */
    STACK_BYTES = 1 << 20,
};

enum state {
    ABSENT, /* no thread */
    RESTING,
    ASLEEP, /* or about to wake up */
    CALLED,
    CALLED_ASLEEP,
    AT_WORK,
    AWAITED, /* by a sleeping caller */
    RETIRED
};

/* What a caller writes first lies apart from what a spinning worker polls: that line would go back and
 * forth. A worker's epoch changes with each call of its own, and no other. */
static struct worker {
    _Alignas(LINE_PAIR_BYTES) _Atomic unsigned state;
    int index;
    struct team *team;
    _Alignas(LINE_PAIR_BYTES) _Atomic unsigned call_epoch;
} workers[MOST_WORKERS];

enum slot { EMPTY, FREE, ENGAGED };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static unsigned char slots[MOST_WORKERS];                /* an enum slot for each worker */
static int slots_used; /* the slots from here on were never used */
static uint64_t calls, last_call[MOST_WORKERS];
static _Atomic int64_t refused_ns; /* when pthread_create last hit a limit; 0: never */

/* Of engaged workers, for their caller. */
static pthread_t threads[MOST_WORKERS];
static cpu_set_t allowed[MOST_WORKERS]; /* CPUs; empty: not known */

static _Thread_local bool is_kept; /* this worker does not end as surplus */
static _Atomic unsigned resets;

/* Spin before sleeping on the futex: a call on 16 cores takes 10 us then, 100 once workers sleep. */
static _Atomic int worker_spin_us = WORKER_SPIN_US;

/* Called by whoever engaged the worker: one writer at a time. */
static void advance_epoch(struct worker *worker)
{
    const unsigned epoch = atomic_load_explicit(&worker->call_epoch, memory_order_relaxed);
    atomic_store_explicit(&worker->call_epoch, epoch + 1, memory_order_release);
}

/* ---- workers ---- */

static void wake_some(struct team *team)
{
    const int asleep = atomic_load(&team->asleep);
    if (atomic_load(&team->woken) < asleep) {
        const int first = atomic_fetch_add(&team->woken, WAKES);
        for (int i = first; i < first + WAKES && i < asleep; i++) {
            futex_wake(&workers[team->sleeper[i]].state);
        }
    }
}

/* A woken worker may find itself on its caller's CPU, and the scheduler may leave both there: move
 * away. */
static void leave_the_caller(const struct team *team)
{
    cpu_set_t before, others;
    if (team->cpu < 0 || sched_getcpu() != team->cpu ||
        sched_getaffinity(0, sizeof before, &before) != 0) {
        return;
    }
    others = before;
    CPU_CLR(team->cpu, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0) {
        sched_setaffinity(0, sizeof before, &before);
    }
}

static void answer(struct worker *worker, bool slept)
{
    struct team *team = worker->team;
    wake_some(team);
    if (slept) {
        leave_the_caller(team);
    }
    openmp_use_one_thread(); /* loops of other packages may call it */
    const unsigned resets_before = atomic_load(&resets);
    team->task(team->context, worker->index);
    if (atomic_load(&resets) != resets_before) {
        pthread_exit(NULL); /* a child of a fork within the task: this is no worker of its pool */
    }
    if (atomic_exchange(&worker->state, RESTING) == AWAITED) {
        futex_wake(&worker->state);
    }
}

/* The last step of a worker: frees its slot for a new thread. Under the lock. */
static void leave_slot(struct worker *worker)
{
    atomic_store(&worker->state, ABSENT);
    slots[worker - workers] = EMPTY;
}

/* Surplus: more workers than CPUs, or than the latest call took. */
static bool leave_if_surplus(struct worker *worker)
{
    const ptrdiff_t number = worker - workers;
    pthread_mutex_lock(&lock);
    bool leaves = slots[number] == FREE && !is_kept;
    if (leaves) {
        const int cpus = CPU_COUNT(&allowed[number]);
        leaves = (cpus > 0 && number + 1 >= cpus) || last_call[number] != calls;
    }
    if (leaves) {
        leave_slot(worker);
    }
    pthread_mutex_unlock(&lock);
    return leaves;
}

/* False if the worker is surplus. The timeout doubles, so that idle processes wake up ever less. */
static bool sleep_until_called(struct worker *worker)
{
    int64_t timeout_ns = SURPLUS_NS;
    while (!futex_sleep(&worker->state, ASLEEP, timeout_ns)) {
        if (leave_if_surplus(worker)) {
            return false;
        }
        timeout_ns *= 2;
    }
    return true;
}

static bool rest(struct worker *worker, unsigned seen_epoch)
{
    unsigned state = RESTING;
    const int64_t ns = INT64_C(1000) * atomic_load_explicit(&worker_spin_us, memory_order_relaxed);
    return spin_while(&worker->call_epoch, seen_epoch, ns) ||
           !atomic_compare_exchange_strong(&worker->state, &state, ASLEEP) ||
           sleep_until_called(worker);
}

static void *work(void *of)
{
    struct worker *worker = of;
    for (;;) {
        const unsigned seen_epoch = atomic_load(&worker->call_epoch);
        unsigned state = atomic_load(&worker->state);
        switch (state) {
        case RESTING:
            if (!rest(worker, seen_epoch)) {
                return NULL;
            }
            break;
        case ASLEEP: /* woken, but dismissed before it came: spin, the next call may be near */
            atomic_compare_exchange_strong(&worker->state, &state, RESTING);
            break;
        case RETIRED:
            pthread_mutex_lock(&lock);
            leave_slot(worker);
            pthread_mutex_unlock(&lock);
            return NULL;
        default: /* called */
            if (atomic_compare_exchange_strong(&worker->state, &state, AT_WORK)) {
                answer(worker, state == CALLED_ASLEEP);
            }
        }
    }
}

/* ---- starting workers ---- */

static bool start(int number)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    atomic_store(&workers[number].state, RESTING);
    CPU_ZERO(&allowed[number]);
    const bool runs = quiet_thread_create(&threads[number], &attributes, work, &workers[number]);
    pthread_attr_destroy(&attributes);
    if (!runs) {
        atomic_store(&workers[number].state, ABSENT);
    }
    return runs;
}

/* ---- calls ---- */

static void engage(struct team *team, int number)
{
    slots[number] = ENGAGED;
    last_call[number] = calls;
    team->member[team->count++] = (uint16_t)number;
    __builtin_prefetch(&workers[number], 1);
}

static void start_more(struct team *team, int count)
{
    const int before = team->count;
    if (refused_ns != 0 && clock_ns() - refused_ns < RETRY_NS) {
        return;
    }
    for (int i = 0; i < MOST_WORKERS && team->count < count; i++) {
        if (slots[i] != EMPTY) {
            continue;
        }
        if (!start(i)) {
            /* pthread_create hit a limit: give half of the new threads back, others may need them. */
            refused_ns = clock_ns();
            const int kept = before + (team->count - before) / 2;
            while (team->count > kept) {
                struct worker *worker = &workers[team->member[--team->count]];
                atomic_store(&worker->state, RETIRED);
                advance_epoch(worker);
                futex_wake(&worker->state);
            }
            return;
        }
        slots_used = i >= slots_used ? i + 1 : slots_used;
        engage(team, i);
    }
}

/* The first free ones: the same in every call, with warm caches. */
static void choose_team(struct team *team, int count)
{
    pthread_mutex_lock(&lock);
    calls++;
    team->count = 0;
    for (int i = 0; i < slots_used && team->count < count; i++) {
        if (slots[i] == FREE) {
            engage(team, i);
        }
    }
    if (team->count < count) {
        start_more(team, count);
    }
    pthread_mutex_unlock(&lock);
}

/* Workers run where the calling thread may. */
static void share_affinity(const struct team *team)
{
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) {
        return; /* more CPUs than cpu_set_t holds */
    }
    for (int i = 0; i < team->count; i++) {
        const int number = team->member[i];
        if (!CPU_EQUAL(&allowed[number], &cpus)) {
            pthread_setaffinity_np(threads[number], sizeof cpus, &cpus);
            allowed[number] = cpus;
        }
    }
}

void pool_call(struct team *team, int count)
{
    choose_team(team, count);
    share_affinity(team);
    atomic_init(&team->asleep, 0);
    atomic_init(&team->woken, 0);
    team->cpu = sched_getcpu();
    int asleep = 0;
    for (int i = 0; i < team->count; i++) {
        struct worker *worker = &workers[team->member[i]];
        worker->team = team;
        worker->index = i + 1;
        unsigned state = RESTING;
        if (!atomic_compare_exchange_strong(&worker->state, &state, CALLED)) {
            atomic_store(&worker->state, CALLED_ASLEEP);
            team->sleeper[asleep++] = team->member[i];
        }
    }
    for (int i = 0; i < team->count; i++) {
        advance_epoch(&workers[team->member[i]]);
    }
    if (asleep > 0) { /* else spare the caller the full barrier of this store */
        atomic_store(&team->asleep, asleep);
        wake_some(team);
    }
}

static bool has_come(unsigned state)
{
    return state != CALLED && state != CALLED_ASLEEP;
}

void pool_await(const struct team *team)
{
    for (int i = 0; i < team->count; i++) {
        while (!has_come(atomic_load(&workers[team->member[i]].state))) {
            sched_yield();
        }
    }
}

/* Whether it came, once it is done. */
static bool dismiss(struct worker *worker)
{
    unsigned state = atomic_load(&worker->state);
    const unsigned before = state == CALLED ? RESTING : ASLEEP;
    if (!has_come(state) && atomic_compare_exchange_strong(&worker->state, &state, before)) {
        return false;
    }
    if (state == AT_WORK && !spin_while(&worker->state, AT_WORK, CALLER_SPIN_NS) &&
        atomic_compare_exchange_strong(&worker->state, &state, AWAITED)) {
        while (atomic_load(&worker->state) == AWAITED) {
            futex_sleep(&worker->state, AWAITED, 0);
        }
    }
    return true;
}

int pool_dismiss(struct team *team)
{
    int came = 0;
    for (int i = 0; i < team->count; i++) {
        came += dismiss(&workers[team->member[i]]);
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < team->count; i++) {
        slots[team->member[i]] = FREE;
    }
    pthread_mutex_unlock(&lock);
    return came;
}

bool pool_is_asleep(int count)
{
    if (count < 1) {
        return false;
    }
    const int last = (count < MOST_WORKERS ? count : MOST_WORKERS) - 1;
    const unsigned state = atomic_load_explicit(&workers[last].state, memory_order_relaxed);
    return state == ASLEEP ||
           (state == ABSENT && atomic_load_explicit(&refused_ns, memory_order_relaxed) == 0);
}

void pool_set_spin_us(int us)
{
    atomic_store(&worker_spin_us, us);
}

void pool_keep_worker(void)
{
    is_kept = true;
}

void pool_reset(void)
{
    atomic_fetch_add(&resets, 1);
    pthread_mutex_init(&lock, NULL);
    for (int i = 0; i < slots_used; i++) {
        atomic_store(&workers[i].state, ABSENT);
        slots[i] = EMPTY;
    }
    refused_ns = 0;
}
