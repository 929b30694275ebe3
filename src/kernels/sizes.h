/* Small arithmetic on sizes and steps. */
#ifndef NUMC_SIZES_H
#define NUMC_SIZES_H

#include <stddef.h>

static inline ptrdiff_t size_min(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

static inline ptrdiff_t size_max(ptrdiff_t a, ptrdiff_t b)
{
    return a > b ? a : b;
}

/* a / b, rounded up. */
static inline ptrdiff_t ceiling(ptrdiff_t a, ptrdiff_t b)
{
    return (a + b - 1) / b;
}

static inline ptrdiff_t magnitude(ptrdiff_t step)
{
    return step < 0 ? -step : step;
}

#endif
