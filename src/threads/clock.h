/* The monotonic clock. */
#ifndef NUMC_CLOCK_H
#define NUMC_CLOCK_H

#include <stdint.h>

int64_t clock_ns(void);

#endif
