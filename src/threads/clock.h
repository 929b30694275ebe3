/* The monotonic clock. */
#ifndef NUMC_CLOCK_H
#define NUMC_CLOCK_H

#include <stdint.h>

int64_t clock_ns(void);

/* For less than a second. */
void clock_sleep_ms(int ms);

#endif
