/* An OpenMP runtime whose parallel regions are only said to be. Like a real one's, its number of threads
 * belongs to the calling thread, and other threads begin with the first. */
#include <stdatomic.h>
#include <stdbool.h>

#define EXPORTED __attribute__((visibility("default")))

static _Atomic int first_threads = 8;
static _Atomic bool in_parallel;
/* As libgomp's: LeakSanitizer fails on what is made when a thread first needs it. */
static _Thread_local int threads __attribute__((tls_model("initial-exec")));

EXPORTED int omp_get_max_threads(void);
EXPORTED void omp_set_num_threads(int number);
EXPORTED int omp_in_parallel(void);
EXPORTED void fake_be_in_parallel(int is);

int omp_get_max_threads(void)
{
    return threads != 0 ? threads : first_threads;
}

void omp_set_num_threads(int number)
{
    threads = number;
}

int omp_in_parallel(void)
{
    return in_parallel;
}

void fake_be_in_parallel(int is)
{
    in_parallel = is != 0;
}
