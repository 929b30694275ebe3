/* What the OpenMP runtimes that the process has loaded say. */
#include "openmp.h"

#include "loaded.h"

#include <ctype.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>

/* GCC's, LLVM's and Intel's; wheels bring them as libgomp-a34b3233.so.1.0.0 and the like. */
#define FUNCTIONS "omp_get_max_threads", "omp_in_parallel", "omp_set_num_threads"
static const struct library_names kinds[] = {
    {"libgomp", {FUNCTIONS}},
    {"libomp", {FUNCTIONS}},
    {"libiomp", {FUNCTIONS}},
};
enum { MAX_THREADS, IN_PARALLEL, SET_NUM_THREADS }; /* in the order of FUNCTIONS */

static struct loaded_libraries runtimes = {
    .kinds = kinds,
    .count_of_kinds = sizeof kinds / sizeof kinds[0],
};

/* What a runtime would read when it is loaded; INT_MAX: not set. */
static int num_threads = INT_MAX, thread_limit = INT_MAX;

/* The first number of a list, which is for regions that are in no other. */
static int first_number(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL) {
        return INT_MAX;
    }
    char *end;
    const long number = strtol(value, &end, 10);
    while (isspace((unsigned char)*end)) {
        end++;
    }
    const bool is_valid = end != value && (*end == '\0' || *end == ',') && number >= 1;
    return is_valid && number < INT_MAX ? (int)number : INT_MAX;
}

void openmp_initialize(void)
{
    num_threads = first_number("OMP_NUM_THREADS");
    thread_limit = first_number("OMP_THREAD_LIMIT");
}

void openmp_find(void)
{
    loaded_search(&runtimes);
}

int openmp_limit(const char **reason)
{
    const int count = atomic_load_explicit(&runtimes.count, memory_order_acquire);
    int least = count == 0 ? num_threads : INT_MAX;
    *reason =
        count == 0 ? "OMP_NUM_THREADS" : "omp_get_max_threads(): OMP_NUM_THREADS or threadpoolctl";
    for (int i = 0; i < count; i++) {
        const int threads = ((int (*)(void))runtimes.library[i].functions[MAX_THREADS])();
        least = threads >= 1 && threads < least ? threads : least;
    }
    if (thread_limit < least) {
        least = thread_limit;
        *reason = "OMP_THREAD_LIMIT";
    }
    return least;
}

bool openmp_in_parallel(void)
{
    const int count = atomic_load_explicit(&runtimes.count, memory_order_acquire);
    bool is = false;
    for (int i = 0; i < count && !is; i++) {
        is = ((int (*)(void))runtimes.library[i].functions[IN_PARALLEL])() != 0;
    }
    return is;
}

void openmp_use_one_thread(void)
{
    static _Thread_local int told;
    const int count = atomic_load_explicit(&runtimes.count, memory_order_acquire);
    for (; told < count; told++) {
        ((void (*)(int))runtimes.library[told].functions[SET_NUM_THREADS])(1);
    }
}
