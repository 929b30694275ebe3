/* Where runs of a mask begin and end. */
#ifndef NUMC_FIND_BOOL_H
#define NUMC_FIND_BOOL_H

#include "kernels/vector.h"

/* The first of the bools from `from` on that is true, or false; n: there is none. */
static inline ptrdiff_t find_bool_from(bool wanted, const char *mask, ptrdiff_t step,
                                       ptrdiff_t from, ptrdiff_t n)
{
    const uint64_t ones = 0x0101010101010101;
    for (uint64_t eight; step == 1 && from + 8 <= n; from += 8) {
        memcpy(&eight, mask + from, sizeof eight);
        /* The lowest byte that is 0x80 is the first zero. */
        const uint64_t found = wanted ? eight : (eight - ones) & ~eight & ones << 7;
        if (found != 0) {
            return from + __builtin_ctzll(found) / 8;
        }
    }
    while (from < n && (mask[from * step] != 0) != wanted) {
        from++;
    }
    return from;
}

#endif
