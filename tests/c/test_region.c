/* Running on threads: shares, floating-point state, concurrent callers, fork. */
#include "expect.h"
#include "threads/clock.h"
#include "threads/limit.h"
#include "threads/pool.h"
#include "threads/region.h"

#include <dirent.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS = 4,
    CALLERS = 16,
    ROUNDS = 50,
    SHORT_ROUNDS = 10000,
    FORKS = 20,
    MANY = 40,
    MOST_SECONDS = 60
};

static const struct policy production, awaiting = {1, true, true};
static struct policy policy;

static volatile double zero; /* the compiler must not know the value */

/* ---- shares ---- */

struct visits {
    _Atomic int of_index[64];
    pthread_t caller;
    _Atomic bool index_0_on_caller;
};

static void visit(void *context, int index)
{
    struct visits *visits = context;
    visits->of_index[index]++;
    if (index == 0) {
        visits->index_0_on_caller = pthread_equal(pthread_self(), visits->caller) != 0;
    }
}

static void check_shares(void)
{
    for (int threads = 0; threads <= 40; threads++) {
        struct visits visits = {.caller = pthread_self()};
        const uint64_t before = region_count();
        const int ran = region_run(&policy, threads, visit, &visits);
        expect(ran == (threads > 1 ? threads : 1), "%d threads ran, not %d", ran, threads);
        expect(visits.index_0_on_caller, "index 0 ran on a worker");
        expect(region_count() - before == (ran > 1), "region_count grew by the wrong number");
        for (int index = 0; index < 64; index++) {
            expect(visits.of_index[index] == (index < ran), "share %d of %d ran %d times", index,
                   ran, visits.of_index[index]);
        }
    }
}

static void run_nested(void *context, int index)
{
    struct visits inner = {.caller = pthread_self()};
    expect(!region_available(), "threads seem available within a region");
    ((_Atomic int *)context)[index] = region_run(&policy, THREADS, visit, &inner);
}

static void check_nested(void)
{
    _Atomic int ran[THREADS] = {0};
    region_run(&policy, THREADS, run_nested, ran);
    for (int i = 0; i < THREADS; i++) {
        expect(ran[i] == 1, "a region within a region ran on %d threads", ran[i]);
    }
    expect(region_available(), "threads are not available after a region");
}

/* ---- who comes late, or not at all ---- */

struct work {
    _Atomic int next, done, at_work;
    int chunks;
    int64_t worker_ns; /* how long a worker takes for a chunk */
};

static void take_chunks(void *context, int index)
{
    struct work *work = context;
    work->at_work++;
    while (work->next < work->chunks && atomic_fetch_add(&work->next, 1) < work->chunks) {
        const int64_t end = clock_ns() + (index == 0 ? 0 : work->worker_ns);
        while (clock_ns() < end) {
        }
        work->done++;
    }
    work->at_work--;
}

static bool sleeps(int thread)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return true; /* it has ended */
    }
    const char *name = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    const bool asleep = name == NULL || name[2] == 'S';
    fclose(file);
    return asleep;
}

/* Whether all threads of this process but the calling one sleep. */
static bool others_sleep(void)
{
    bool all = true;
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *entry;
    while (threads != NULL && (entry = readdir(threads)) != NULL) {
        const int thread = atoi(entry->d_name); /* 0: "." and ".." */
        all = all && (thread == 0 || thread == getpid() || sleeps(thread));
    }
    if (threads != NULL) {
        closedir(threads);
    }
    return all;
}

static void check_late_workers(void)
{
    int most = 0, least = THREADS;
    for (int round = 0; round < SHORT_ROUNDS; round++) {
        struct work work = {.chunks = round % 40};
        const int ran = region_run(&policy, THREADS, take_chunks, &work);
        const int at_work = work.at_work;
        expect(work.done == work.chunks, "%d of %d chunks were done", work.done, work.chunks);
        expect(at_work == 0, "%d threads were at work after their region", at_work);
        most = ran > most ? ran : most;
        least = ran < least ? ran : least;
    }
    printf("short regions: %d to %d of %d threads came\n", least, most, THREADS);
    expect(most > 1, "nobody ever came");
}

/* Workers come, but take nothing before the caller has done all. */
static void come_late(void *context, int index)
{
    struct work *work = context;
    while (index != 0 && work->done < work->chunks) {
        sched_yield();
    }
    take_chunks(work, index);
}

static void check_workers_without_work(void)
{
    for (int awaits = 0; awaits < 2; awaits++) {
        for (int round = 0; round < ROUNDS; round++) {
            struct work work = {.chunks = 1 + round};
            const int ran = region_run(awaits ? &awaiting : &production, THREADS, come_late, &work);
            expect(ran == THREADS || !awaits, "%d of %d threads came", ran, THREADS);
            expect(work.done == work.chunks && work.at_work == 0, "%d of %d chunks were done",
                   work.done, work.chunks);
        }
    }
}

static void check_sleeping(void)
{
    for (int round = 0; round < 3; round++) {
        while (!others_sleep()) {
        }
        /* The caller is done long before a worker that took a chunk, and sleeps, too. */
        struct work work = {.chunks = 20, .worker_ns = 2000000};
        int ran = 1;
        while (ran == 1) {
            work.next = work.done = 0;
            work.chunks *= 10;
            ran = region_run(&policy, THREADS, take_chunks, &work);
            expect(work.done == work.chunks, "%d of %d chunks were done", work.done, work.chunks);
        }
    }
}

static void note_cpus(void *context, int index)
{
    cpu_set_t cpus;
    sched_getaffinity(0, sizeof cpus, &cpus);
    ((_Atomic int *)context)[index] = CPU_COUNT(&cpus);
}

static void check_affinity(void)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_getaffinity(0, sizeof all, &all);
    for (int round = 0; round < 4; round++) {
        const cpu_set_t *cpus = round % 2 == 0 ? &one : &all;
        _Atomic int found[THREADS];
        sched_setaffinity(0, sizeof *cpus, cpus);
        region_run(&policy, THREADS, note_cpus, found);
        for (int i = 0; i < THREADS; i++) {
            expect(found[i] == CPU_COUNT(cpus), "thread %d may run on %d CPUs, its caller on %d", i,
                   found[i], CPU_COUNT(cpus));
        }
    }
}

/* ---- floating-point state ---- */

static void divide_on_workers(void *context, int index)
{
    const volatile double quotient = index == *(int *)context ? 1.0 / zero : 1.0;
    (void)quotient;
}

static void check_flags(void)
{
    for (int who = 0; who < THREADS; who++) {
        feclearexcept(FE_ALL_EXCEPT);
        region_run(&policy, THREADS, divide_on_workers, &who);
        expect(fetestexcept(FE_ALL_EXCEPT) == FE_DIVBYZERO, "thread %d divided by 0, flags %#x",
               who, (unsigned)fetestexcept(FE_ALL_EXCEPT));
    }
    int nobody = -1;
    feclearexcept(FE_ALL_EXCEPT);
    region_run(&policy, THREADS, divide_on_workers, &nobody);
    expect(fetestexcept(FE_ALL_EXCEPT) == 0, "flags out of nothing");
    feraiseexcept(FE_INVALID);
    region_run(&policy, THREADS, divide_on_workers, &nobody);
    expect(fetestexcept(FE_ALL_EXCEPT) == FE_INVALID, "the caller's own flag got lost");
    feclearexcept(FE_ALL_EXCEPT);
}

static void note_rounding(void *context, int index)
{
    ((_Atomic int *)context)[index] = fegetround();
}

static void check_rounding(void)
{
    const int modes[] = {FE_UPWARD, FE_TOWARDZERO, FE_DOWNWARD, FE_TONEAREST};
    for (int mode = 0; mode < 4; mode++) {
        _Atomic int found[THREADS];
        fesetround(modes[mode]);
        region_run(&policy, THREADS, note_rounding, found);
        fesetround(FE_TONEAREST);
        for (int i = 0; i < THREADS; i++) {
            expect(found[i] == modes[mode], "thread %d rounds by %#x, its caller by %#x", i,
                   (unsigned)found[i], (unsigned)modes[mode]);
        }
    }
}

/* ---- concurrent callers ---- */

static _Atomic int pretended_cpus; /* 0: those of the machine */

/* In the place of libc's. */
int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *cpus)
{
    const int count = pretended_cpus;
    memset(cpus, 0, bytes);
    for (int i = 0; i < count; i++) {
        CPU_SET_S(i, bytes, cpus);
    }
    return count > 0 || syscall(SYS_sched_getaffinity, pid, bytes, cpus) >= 0 ? 0 : -1;
}

static _Atomic int active, most_active;

static void be_active(void *context, int index)
{
    (void)index;
    const int now = ++active;
    int most = most_active;
    while (now > most && !atomic_compare_exchange_weak(&most_active, &most, now)) {
    }
    usleep(200);
    active--;
    ++*(_Atomic int *)context;
}

static void *call_often(void *unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        _Atomic int shares = 0;
        const int ran = region_run(&policy, THREADS, be_active, &shares);
        expect(shares == ran, "%d shares on %d threads", shares, ran);
    }
    return NULL;
}

static void call_within(void *context, int index)
{
    if (index == 0) {
        pthread_t caller;
        pthread_create(&caller, NULL, context, NULL);
        pthread_join(caller, NULL);
    }
}

static _Atomic int of_second;

static void *call_second(void *unused)
{
    (void)unused;
    _Atomic int shares = 0;
    of_second = region_run(&policy, THREADS, be_active, &shares);
    return NULL;
}

/* Each gets what it wants as long as the machine has it. */
static void check_two_callers(void)
{
    static const struct {
        int cpus, threads;
    } cases[] = {{2 * THREADS, THREADS}, {2 * THREADS - 1, THREADS - 1}, {THREADS, 1}, {1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pretended_cpus = cases[i].cpus;
        region_run(&policy, THREADS, call_within, call_second);
        expect(of_second == cases[i].threads, "%d threads of %d CPUs", of_second, cases[i].cpus);
    }
    pretended_cpus = 0;
}

static void check_concurrent_callers(void)
{
    pthread_t callers[CALLERS];
    pretended_cpus = THREADS;
    for (int i = 0; i < CALLERS; i++) {
        pthread_create(&callers[i], NULL, call_often, NULL);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i], NULL);
    }
    expect(most_active <= THREADS + CALLERS, "%d threads were active", most_active);
    struct visits visits = {.caller = pthread_self()};
    expect(region_run(&policy, THREADS, visit, &visits) == THREADS, "threads were not given back");
    pretended_cpus = 0;
}

/* ---- fork ---- */

static bool computes(void)
{
    struct visits visits = {.caller = pthread_self()};
    bool all = region_available() && region_active() == 0 &&
               region_run(&awaiting, THREADS, visit, &visits) == THREADS;
    for (int index = 0; index < THREADS; index++) {
        all = all && visits.of_index[index] == 1;
    }
    return all;
}

/* Whether children down to so many generations compute on all threads. */
static bool children_compute(int generations)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(MOST_SECONDS / 2);
        _exit(computes() && (generations == 1 || children_compute(generations - 1)) ? 0 : 1);
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void check_fork(void)
{
    expect(children_compute(2), "a forked child or its child did not compute on all threads");
    expect(computes(), "the parent of a fork lost its threads");
}

/* A loop may call back into a program that forks. */
static void fork_in_share(void *context, int index)
{
    pid_t *child = context;
    if (index == 0) {
        *child = fork();
    }
}

static void check_fork_within(void)
{
    fflush(NULL);
    pid_t child = -1;
    region_run(&awaiting, THREADS, fork_in_share, &child);
    if (child == 0) {
        alarm(MOST_SECONDS / 2);
        _exit(computes() && computes() ? 0 : 1);
    }
    int status = -1;
    expect(child > 0 && waitpid(child, &status, 0) == child && status == 0,
           "a child that was forked within a region did not compute on all threads");
    expect(computes(), "the parent of a fork within a region lost its threads");
}

static _Atomic bool stops;

static void *call_until_stopped(void *unused)
{
    (void)unused;
    while (!stops) {
        struct work work = {.chunks = 3};
        region_run(&production, THREADS, take_chunks, &work);
        expect(work.done == work.chunks, "%d of %d chunks were done", work.done, work.chunks);
    }
    return NULL;
}

static void check_fork_beside_callers(void)
{
    pthread_t callers[2];
    stops = false;
    for (int i = 0; i < 2; i++) {
        pthread_create(&callers[i], NULL, call_until_stopped, NULL);
    }
    for (int i = 0; i < FORKS; i++) {
        expect(children_compute(1), "a child did not compute that was forked beside callers");
    }
    stops = true;
    for (int i = 0; i < 2; i++) {
        pthread_join(callers[i], NULL);
    }
    expect(region_active() == 0, "%d threads seem active", region_active());
}

/* ---- how workers live ---- */

static void note_signals(void *context, int index)
{
    pthread_sigmask(SIG_SETMASK, NULL, (sigset_t *)context + index);
}

static void check_signals(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    static const int others[] = {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGPROF};
    sigset_t blocked[THREADS];
    region_run(&awaiting, THREADS, note_signals, blocked);
    for (int worker = 1; worker < THREADS; worker++) {
        for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
            expect(!sigismember(&blocked[worker], faults[i]), "workers block the fault %d",
                   faults[i]);
        }
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            expect(sigismember(&blocked[worker], others[i]), "workers get signal %d", others[i]);
        }
    }
}

static void note_stack(void *context, int index)
{
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstacksize(&attributes, (size_t *)context + index);
    pthread_attr_destroy(&attributes);
}

static void check_stack(void)
{
    size_t bytes[THREADS];
    region_run(&awaiting, THREADS, note_stack, bytes);
    for (int worker = 1; worker < THREADS; worker++) {
        expect(bytes[worker] == 1 << 20, "a worker has a stack of %zu bytes", bytes[worker]);
    }
}

static void *compute_on_small_stack(void *unused)
{
    (void)unused;
    expect(computes(), "a thread with a small stack got no workers");
    return NULL;
}

static void check_small_stack(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    pthread_create(&thread, &attributes, compute_on_small_stack, NULL);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
}

/* Calls of two threads keep one worker awake, and let the others sleep. */
static void check_uncalled_workers(void)
{
    struct visits visits = {.caller = pthread_self()};
    pool_set_spin_us(100000); /* longer than this thread may have to wait between two calls */
    region_run(&awaiting, THREADS, visit, &visits);
    while (!region_is_cold(THREADS)) { /* a hang is a failure */
        region_run(&awaiting, 2, visit, &visits);
    }
    for (int round = 0; round < ROUNDS; round++) {
        region_run(&awaiting, 2, visit, &visits);
        expect(region_is_cold(THREADS), "a call woke a worker that it did not call");
    }
    pool_set_spin_us(WORKER_SPIN_US);
}

static void check_spin(void)
{
    struct visits visits = {.caller = pthread_self()};
    pool_set_spin_us(MOST_SECONDS * 1000000);
    for (int round = 0; round < 2; round++) {
        region_run(&awaiting, THREADS, visit, &visits);
        const int64_t end = clock_ns() + 20000000;
        while (clock_ns() < end) {
            expect(!region_is_cold(THREADS), "workers slept instead of spinning");
        }
    }
    pool_set_spin_us(0);
    region_run(&awaiting, THREADS, visit, &visits);
    while (!region_is_cold(THREADS)) { /* a hang is a failure */
    }
    pool_set_spin_us(WORKER_SPIN_US);
}

/* Sanitizers and emulators have threads of their own, from the first one of the process on. */
static int first_threads;

static void *end_at_once(void *unused)
{
    return unused;
}

static int thread_count(void)
{
    int count = 0;
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *entry;
    while (threads != NULL && (entry = readdir(threads)) != NULL) {
        count += atoi(entry->d_name) != 0;
    }
    if (threads != NULL) {
        closedir(threads);
    }
    return count;
}

static void check_surplus(void)
{
    struct visits visits = {.caller = pthread_self()};
    /* Beyond what the latest call took. */
    expect(region_run(&awaiting, MANY, visit, &visits) == MANY, "fewer than %d threads", MANY);
    while (thread_count() > first_threads + 1) { /* a hang is a failure */
        region_run(&awaiting, 2, visit, &visits);
    }
    expect(computes(), "surplus workers ended, and no new ones came");
    /* Beyond the CPUs, without another call. */
    cpu_set_t all, one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_getaffinity(0, sizeof all, &all);
    sched_setaffinity(0, sizeof one, &one);
    expect(region_run(&awaiting, MANY, visit, &visits) == MANY, "fewer than %d threads", MANY);
    while (thread_count() > first_threads) {
        sched_yield();
    }
    sched_setaffinity(0, sizeof all, &all);
    expect(computes(), "surplus workers ended, and no new ones came");
}

#ifdef __SANITIZE_THREAD__
/* Children of ours start threads, which it would refuse. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}
#endif

int main(int argc, char *argv[])
{
    alarm(2 * MOST_SECONDS); /* a hang is a failure, not a wait */
    pthread_t thread;
    expect(pthread_create(&thread, NULL, end_at_once, NULL) == 0 && pthread_join(thread, NULL) == 0,
           "no thread");
    first_threads = thread_count();
    threads_initialize(0, "");
    check_late_workers();
    check_workers_without_work();
    check_sleeping();
    policy = awaiting;
    check_shares();
    check_nested();
    check_affinity();
    check_flags();
    check_rounding();
    check_concurrent_callers();
    check_two_callers();
    check_signals();
    check_stack();
    check_small_stack();
    check_uncalled_workers();
    check_spin();
    check_surplus();
    if (argc < 2 || strcmp(argv[1], "--no-fork") != 0) {
        check_fork();
        check_fork_within();
        check_fork_beside_callers();
    }
    return expect_result("region");
}
