#include "blas_threads.h"

#include "loaded.h"

#include <pthread.h>
#include <stdbool.h>

/* How to tell a library its number of threads. SciPy's builds of OpenBLAS have names of their own. */
static const struct library_names kinds[] = {
    {"openblas", {"scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"}},
    {"openblas", {"scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"}},
    {"openblas", {"openblas_get_num_threads64_", "openblas_set_num_threads64_"}},
    {"blas", {"openblas_get_num_threads", "openblas_set_num_threads"}},
    {"flexiblas", {"flexiblas_get_num_threads", "flexiblas_set_num_threads"}},
    {"mkl_rt", {"MKL_Get_Max_Threads", "MKL_Set_Num_Threads"}},
    {"blis", {"bli_thread_get_num_threads", "bli_thread_set_num_threads"}},
};

static struct loaded_libraries libraries = {
    .kinds = kinds,
    .count_of_kinds = sizeof kinds / sizeof kinds[0],
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int holders;
static int held_to;
static int before[MOST_LOADED]; /* threads of each library, when the first caller came */

static int get_threads(int library)
{
    return ((int (*)(void))libraries.library[library].functions[0])();
}

static void set_threads(int library, int threads)
{
    ((void (*)(int))libraries.library[library].functions[1])(threads);
}

/* In a forked child: who held them stayed in the parent. */
static void start_anew(void)
{
    pthread_mutex_init(&lock, NULL);
    holders = 0;
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, start_anew);
}

void blas_threads_hold(int most)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_fork_handler);
    pthread_mutex_lock(&lock);
    const bool is_first = holders++ == 0;
    if (is_first) {
        loaded_search(&libraries);
        for (int i = 0; i < libraries.count; i++) {
            before[i] = get_threads(i);
        }
    }
    if (is_first || most < held_to) {
        held_to = most;
        for (int i = 0; i < libraries.count; i++) {
            if (before[i] > most) {
                set_threads(i, most);
            }
        }
    }
    pthread_mutex_unlock(&lock);
}

void blas_threads_release(void)
{
    pthread_mutex_lock(&lock);
    if (holders > 0 && --holders == 0) {
        for (int i = 0; i < libraries.count; i++) {
            /* Unless somebody else has set another number meanwhile. */
            if (before[i] > held_to && get_threads(i) == held_to) {
                set_threads(i, before[i]);
            }
        }
    }
    pthread_mutex_unlock(&lock);
}
