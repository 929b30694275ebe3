/* What a library for linear algebra tells of its threads, by the names that it has for that. */
#include <stdatomic.h>

static _Atomic int threads = 5, least = 5;

/* The least number since the last call of this. */
__attribute__((visibility("default"))) int numc_fake_least_threads(void)
{
    return atomic_exchange(&least, atomic_load(&threads));
}

__attribute__((visibility("default"))) int GET(void)
{
    return atomic_load(&threads);
}

__attribute__((visibility("default"))) void SET(int number)
{
    atomic_store(&threads, number);
    if (number < atomic_load(&least)) {
        atomic_store(&least, number);
    }
}
