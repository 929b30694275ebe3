/* Waiting for a word to change: by spinning, by sleeping. */
#ifndef NUMC_FUTEX_H
#define NUMC_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Spins until the word changes; false after `ns`. Yields the CPU to other threads now and then. */
bool spin_while(_Atomic unsigned *word, unsigned value, int64_t ns);

/* Sleeps if the word has that value. Returns when woken, sometimes before; false: after the timeout
 * (0: none). */
bool futex_sleep(_Atomic unsigned *word, unsigned value, int64_t timeout_ns);

/* Wakes one sleeper. */
void futex_wake(_Atomic unsigned *word);

#endif
