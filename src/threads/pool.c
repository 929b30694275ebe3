/* Threads that wait to be called. OpenMP's would not do: its regions end when every thread has come and
 * gone, which takes milliseconds where other libraries' threads keep the processors busy. */
#include "clock.h"
#include "pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LINES = 128, /* processors fetch lines of 64 bytes in pairs */
    /* How long they look whether something happens before they sleep. To wake a thread takes as long as to
     * add some 10^5 numbers; programs that call again soon should not have to. */
    WORKER_LOOKS_NS = 5000000,
    CALLER_LOOKS_NS = 20000,
    LOOKS = 128, /* before others may have the processor */
    /* Whom a thread wakes before it begins, if there are so many: to wake all of 15 would keep the caller
     * from its own work for 40 us, and the last of a chain would be awake too late. */
    WAKES = 4,
    REFUSED_NS = 1000000000, /* until the system is asked for threads again */
};

enum state {
    RESTING,
    ASLEEP, /* or about to wake up */
    CALLED,
    CALLED_ASLEEP,
    AT_WORK,
    AWAITED, /* by a sleeping caller */
    RETIRED
};

static struct worker {
    _Alignas(LINES) _Atomic unsigned state;
    int index;
    struct call *call;
} workers[MOST_WORKERS];

/* What workers need not see lies elsewhere: to write where others look takes long. */
static pthread_t threads[MOST_WORKERS];
static cpu_set_t allowed[MOST_WORKERS]; /* CPUs; empty: not known */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static int started;                                      /* the first workers are */
static int64_t refused;                                  /* when the system last refused a thread */
static bool engaged[MOST_WORKERS];

/* Workers who are awake look here for calls, and nothing else is near. */
static struct {
    _Alignas(LINES) _Atomic unsigned rung;
} bell;

/* Unless the state is another one already. Returns when it is woken, and sometimes before. */
static void sleep_in(unsigned value, _Atomic unsigned *state)
{
    syscall(SYS_futex, state, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(_Atomic unsigned *state)
{
    syscall(SYS_futex, state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Whether a word gets another value within that time. Who else needs the processor gets it. */
static bool changes_within(int64_t ns, _Atomic unsigned *word, unsigned value)
{
    const int64_t end = clock_ns() + ns;
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) {
                return true;
            }
            relax();
        }
        sched_yield();
    } while (clock_ns() < end);
    return false;
}

/* ---- what workers do ---- */

static void wake_some(struct call *call)
{
    const int asleep = atomic_load(&call->asleep);
    if (atomic_load(&call->woken) < asleep) {
        const int first = atomic_fetch_add(&call->woken, WAKES);
        for (int i = first; i < first + WAKES && i < asleep; i++) {
            wake(&workers[call->sleeper[i]].state);
        }
    }
}

/* A sleeper may wake up on the processor of the caller, and the system leave both there. */
static void leave_the_caller(const struct call *call)
{
    cpu_set_t before, others;
    if (call->cpu < 0 || sched_getcpu() != call->cpu ||
        sched_getaffinity(0, sizeof before, &before) != 0) {
        return;
    }
    others = before;
    CPU_CLR(call->cpu, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0) {
        sched_setaffinity(0, sizeof before, &before);
    }
}

static void answer(struct worker *worker, bool slept)
{
    struct call *call = worker->call;
    wake_some(call);
    if (slept) {
        leave_the_caller(call);
    }
    call->task(call->context, worker->index);
    if (atomic_exchange(&worker->state, RESTING) == AWAITED) {
        wake(&worker->state);
    }
}

static void rest(struct worker *worker, unsigned heard)
{
    unsigned state = RESTING;
    if (!changes_within(WORKER_LOOKS_NS, &bell.rung, heard) &&
        atomic_compare_exchange_strong(&worker->state, &state, ASLEEP)) {
        sleep_in(ASLEEP, &worker->state);
    }
}

static void *work(void *of)
{
    struct worker *worker = of;
    for (;;) {
        const unsigned heard = atomic_load(&bell.rung);
        unsigned state = atomic_load(&worker->state);
        switch (state) {
        case RESTING:
            rest(worker, heard);
            break;
        case ASLEEP: /* woken, if too late: there may be another call soon */
            atomic_compare_exchange_strong(&worker->state, &state, RESTING);
            break;
        case RETIRED:
            return NULL;
        default: /* called */
            if (atomic_compare_exchange_strong(&worker->state, &state, AT_WORK)) {
                answer(worker, state == CALLED_ASLEEP);
            }
        }
    }
}

/* ---- how many there are ---- */

/* Workers get no signals: those are for threads that know of them. */
static bool start(int number)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&workers[number].state, RESTING);
    CPU_ZERO(&allowed[number]);
    const bool runs = pthread_create(&threads[number], NULL, work, &workers[number]) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return runs;
}

static void retire_all_but(int kept)
{
    for (int i = kept; i < started; i++) {
        atomic_store(&workers[i].state, RETIRED);
        wake(&workers[i].state);
    }
    atomic_fetch_add(&bell.rung, 1);
    while (started > kept) {
        pthread_join(threads[--started], NULL);
    }
}

static void start_up_to(int count)
{
    const int before = started;
    count = count < MOST_WORKERS ? count : MOST_WORKERS;
    if (started >= count || (refused != 0 && clock_ns() - refused < REFUSED_NS)) {
        return;
    }
    while (started < count && start(started)) {
        started++;
    }
    if (started < count) {
        /* One that was refused was the last that there was: leave some to others. */
        refused = clock_ns();
        retire_all_but(before + (started - before) / 2);
    }
}

/* ---- calls ---- */

/* The first ones that are free: in every call the same, which have its data in their caches. */
static void choose_team(struct call *call, int count)
{
    pthread_mutex_lock(&lock);
    start_up_to(count);
    call->count = 0;
    for (int i = 0; i < started && call->count < count; i++) {
        if (!engaged[i]) {
            engaged[i] = true;
            call->team[call->count++] = (uint16_t)i;
            __builtin_prefetch(&workers[i], 1);
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Workers run where the calling thread may. */
static void share_affinity(const struct call *call)
{
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) {
        return; /* there are more than fit */
    }
    for (int i = 0; i < call->count; i++) {
        const int number = call->team[i];
        if (!CPU_EQUAL(&allowed[number], &cpus)) {
            pthread_setaffinity_np(threads[number], sizeof cpus, &cpus);
            allowed[number] = cpus;
        }
    }
}

void workers_call(struct call *call, int count)
{
    choose_team(call, count);
    share_affinity(call);
    atomic_init(&call->asleep, 0);
    atomic_init(&call->woken, 0);
    call->cpu = sched_getcpu();
    int asleep = 0;
    for (int i = 0; i < call->count; i++) {
        struct worker *worker = &workers[call->team[i]];
        worker->call = call;
        worker->index = i + 1;
        unsigned state = RESTING;
        if (!atomic_compare_exchange_strong(&worker->state, &state, CALLED)) {
            atomic_store(&worker->state, CALLED_ASLEEP);
            call->sleeper[asleep++] = call->team[i];
        }
    }
    atomic_fetch_add(&bell.rung, 1);
    atomic_store(&call->asleep, asleep);
    wake_some(call);
}

static bool has_come(unsigned state)
{
    return state != CALLED && state != CALLED_ASLEEP;
}

void workers_await(const struct call *call)
{
    for (int i = 0; i < call->count; i++) {
        while (!has_come(atomic_load(&workers[call->team[i]].state))) {
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
    if (state == AT_WORK && !changes_within(CALLER_LOOKS_NS, &worker->state, AT_WORK) &&
        atomic_compare_exchange_strong(&worker->state, &state, AWAITED)) {
        while (atomic_load(&worker->state) == AWAITED) {
            sleep_in(AWAITED, &worker->state);
        }
    }
    return true;
}

int workers_dismiss(struct call *call)
{
    int came = 0;
    for (int i = 0; i < call->count; i++) {
        came += dismiss(&workers[call->team[i]]);
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < call->count; i++) {
        engaged[call->team[i]] = false;
    }
    pthread_mutex_unlock(&lock);
    return came;
}
