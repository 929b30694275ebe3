/* Waiting without giving the processor away. Where threads of other libraries spin on all processors, as
 * OpenBLAS's do for 100 ms after a product, who sleeps or yields comes back a tick later, which is 4 ms:
 * what is over in microseconds is waited for like this. */
#ifndef NUMC_SPIN_H
#define NUMC_SPIN_H

#include <pthread.h>

static inline void spin_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* For a millisecond, then sleeps. */
static inline void spin_lock(pthread_mutex_t *mutex)
{
    enum { TRIES = 3000, PAUSES = 8 };
    for (int i = 0; i < TRIES; i++) {
        if (pthread_mutex_trylock(mutex) == 0) {
            return;
        }
        for (int j = 0; j < PAUSES; j++) {
            spin_pause();
        }
    }
    pthread_mutex_lock(mutex);
}

#endif
