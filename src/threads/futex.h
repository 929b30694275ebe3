/* Waiting for a word to change: by spinning, by sleeping. */
#ifndef NUMC_FUTEX_H
#define NUMC_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether a word gets another value within that time. Yields to whoever else needs the processor. */
bool spin_while(_Atomic unsigned *word, unsigned value, int64_t ns);

/* Sleeps if the word has that value. Returns when woken, sometimes before; false: after the timeout
 * (0: none). */
bool futex_sleep(_Atomic unsigned *word, unsigned value, int64_t timeout_ns);

/* Wakes one sleeper. */
void futex_wake(_Atomic unsigned *word);

#endif
