#include "clock.h"

#include <errno.h>
#include <time.h>

int64_t clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void clock_sleep_ms(int ms)
{
    struct timespec left = {.tv_nsec = ms * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}
