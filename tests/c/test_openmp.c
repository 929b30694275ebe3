/* What OpenMP runtimes say that the process loads: arguments are two of them, made up. */
#include "expect.h"
#include "threads/limit.h"
#include "threads/openmp.h"
#include "threads/region.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3, CALLERS = 2, FORKS = 20, MOST_SECONDS = 60 };

static const struct policy awaiting = {1, true, true};

struct runtime {
    void *library;
    int (*get)(void);
    void (*set)(int);
    void (*be_in_parallel)(int);
};

static void *function_of(void *library, const char *name)
{
    void *function = dlsym(library, name);
    if (function == NULL) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(EXIT_FAILURE);
    }
    return function;
}

/* As packages load theirs: nobody else sees its names. */
static struct runtime load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct runtime runtime = {.library = library};
    void *get = function_of(library, "omp_get_max_threads");
    void *set = function_of(library, "omp_set_num_threads");
    void *be_in_parallel = function_of(library, "fake_be_in_parallel");
    memcpy(&runtime.get, &get, sizeof get);
    memcpy(&runtime.set, &set, sizeof set);
    memcpy(&runtime.be_in_parallel, &be_in_parallel, sizeof be_in_parallel);
    return runtime;
}

/* ---- no runtime ---- */

static void check_environment(const char *num_threads, const char *thread_limit, int expected,
                              const char *expected_reason)
{
    num_threads != NULL ? setenv("OMP_NUM_THREADS", num_threads, 1) : unsetenv("OMP_NUM_THREADS");
    thread_limit != NULL ? setenv("OMP_THREAD_LIMIT", thread_limit, 1)
                         : unsetenv("OMP_THREAD_LIMIT");
    const char *reason = "";
    openmp_initialize();
    const int threads = openmp_limit(&reason);
    const char *shown = num_threads != NULL ? num_threads : "nothing";
    expect(threads == expected, "OMP_NUM_THREADS is %s: %d threads, not %d", shown, threads,
           expected);
    expect(expected == INT_MAX || strcmp(reason, expected_reason) == 0,
           "OMP_NUM_THREADS is %s: the reason is %s", shown, reason);
}

static void check_without_runtime(void)
{
    openmp_find();
    check_environment(NULL, NULL, INT_MAX, "");
    check_environment("3", NULL, 3, "OMP_NUM_THREADS");
    check_environment("4,2", NULL, 4, "OMP_NUM_THREADS");
    check_environment(" 5 , 2", NULL, 5, "OMP_NUM_THREADS");
    check_environment(NULL, "2", 2, "OMP_THREAD_LIMIT");
    check_environment("3", "2", 2, "OMP_THREAD_LIMIT");
    check_environment("3", "7", 3, "OMP_NUM_THREADS");
    static const char *const bad[] = {"", " ", "two", "0", "-1", "3x", "1.5", ",2", "99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_environment(bad[i], bad[i], INT_MAX, "");
    }
    expect(!openmp_in_parallel() && region_available(), "in parallel without a runtime");
}

/* ---- runtimes that are loaded later ---- */

static int limit(void)
{
    const char *reason;
    openmp_find();
    return openmp_limit(&reason);
}

static void expect_limit(int expected, const char *when)
{
    const int threads = limit();
    expect(threads == expected, "%s: %d threads, not %d", when, threads, expected);
}

struct seen {
    const struct runtime *runtime;
    _Atomic int threads[THREADS];
};

static void note_threads(void *context, int index)
{
    struct seen *seen = context;
    seen->threads[index] = seen->runtime->get();
}

/* Workers may be older than the runtime. */
static void check_workers(const struct runtime *runtime, const char *which)
{
    struct seen seen = {.runtime = runtime};
    const int callers = runtime->get();
    const int ran = region_run(&awaiting, THREADS, note_threads, &seen);
    expect(ran == THREADS, "%d of %d threads came", ran, THREADS);
    expect(seen.threads[0] == callers, "%s runtime: the caller has %d threads, not %d", which,
           (int)seen.threads[0], callers);
    for (int i = 1; i < THREADS; i++) {
        expect(seen.threads[i] == 1, "%s runtime: worker %d has %d threads", which, i,
               (int)seen.threads[i]);
    }
}

static void count_shares(void *context, int index)
{
    (void)index;
    ++*(_Atomic int *)context;
}

static void check_in_parallel(const struct runtime *runtime, const char *which)
{
    _Atomic int shares = 0;
    runtime->be_in_parallel(1);
    expect(!region_available(), "%s runtime: threads within its region", which);
    region_run(&awaiting, THREADS, count_shares, &shares);
    expect(shares == 1, "%s runtime: %d shares within its region", which, (int)shares);
    runtime->be_in_parallel(0);
    expect(region_available(), "%s runtime: no threads after its region", which);
}

static void check_one_runtime(const struct runtime *first)
{
    check_environment("3", NULL, 3, "OMP_NUM_THREADS"); /* nobody has looked yet */
    expect_limit(8, "a runtime was loaded");
    dlclose(first->library);
    expect_limit(8, "whoever loaded it has closed it");
    check_environment("3", "5", 5, "OMP_THREAD_LIMIT");
    check_environment("3", NULL, 8, "omp_get_max_threads(): OMP_NUM_THREADS or threadpoolctl");
    first->set(6);
    expect_limit(6, "its number was set");
    first->set(9);
    expect_limit(9, "its number was set to more");
    check_workers(first, "first");
    check_in_parallel(first, "first");
}

static void check_two_runtimes(const struct runtime *first, const struct runtime *second)
{
    expect_limit(8, "a second runtime was loaded, which allows less");
    first->set(4);
    expect_limit(4, "the first allows less");
    second->set(2);
    expect_limit(2, "the second allows less");
    check_workers(first, "first");
    check_workers(second, "second");
    check_in_parallel(first, "first");
    check_in_parallel(second, "second");
}

/* ---- fork ---- */

static _Atomic bool stops;

static void *find_until_stopped(void *unused)
{
    while (!stops) {
        openmp_find();
    }
    return unused;
}

static int see_nothing(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)object, (void)size, (void)context;
    return 0;
}

/* A child has the loader's list for itself, though a thread of the parent may have been reading it. */
static void check_fork(void)
{
    pthread_t callers[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        pthread_create(&callers[i], NULL, find_until_stopped, NULL);
    }
    for (int i = 0; i < FORKS; i++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            alarm(MOST_SECONDS / 4); /* a hang is a failure */
            dl_iterate_phdr(see_nothing, NULL);
            _exit(limit() == 2 ? 0 : 1);
        }
        int status = -1;
        expect(child > 0 && waitpid(child, &status, 0) == child && status == 0,
               "a child that was forked beside searches ended with status %d", status);
        if (status != 0) {
            break;
        }
    }
    stops = true;
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i], NULL);
    }
}

int main(int argc, char *argv[])
{
    alarm(MOST_SECONDS);
    if (argc < 3) {
        fputs("usage: test_openmp RUNTIME RUNTIME\n", stderr);
        return EXIT_FAILURE;
    }
    threads_initialize(0, "");
    check_without_runtime();
    struct seen seen = {.threads = {0}};
    region_run(&awaiting, THREADS, count_shares, &seen.threads[0]); /* starts workers */
    const struct runtime first = load(argv[1]);
    check_one_runtime(&first);
    const struct runtime second = load(argv[2]);
    check_two_runtimes(&first, &second);
    if (argc < 4 || strcmp(argv[3], "--no-fork") != 0) {
        check_fork();
    }
    return expect_result("openmp");
}
