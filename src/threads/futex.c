#include "futex.h"

#include "clock.h"
#include "spin.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS_BEFORE_YIELD = 128 };

bool spin_while(_Atomic unsigned *word, unsigned value, int64_t ns)
{
    const int64_t end = clock_ns() + ns;
    do {
        for (int i = 0; i < SPINS_BEFORE_YIELD; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) {
                return true;
            }
            spin_pause();
        }
        sched_yield();
    } while (clock_ns() < end);
    return false;
}

bool futex_sleep(_Atomic unsigned *word, unsigned value, int64_t timeout_ns)
{
    const struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout_ns != 0 ? &timeout : NULL,
                   NULL, 0) == 0 ||
           errno != ETIMEDOUT;
}

void futex_wake(_Atomic unsigned *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
