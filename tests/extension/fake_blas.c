/* What a library for linear algebra tells of its threads, by the names that it has for that. */
#include <stdatomic.h>

static _Atomic int threads = 5;

__attribute__((visibility("default"))) int GET(void)
{
    return atomic_load(&threads);
}

__attribute__((visibility("default"))) void SET(int number)
{
    atomic_store(&threads, number);
}
