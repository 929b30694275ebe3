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

/* How often a true one follows a false one, or the begin; of bytes other than 0 and 1, about. */
static inline ptrdiff_t count_runs(const char *mask, ptrdiff_t step, ptrdiff_t n)
{
    typedef uint8_t vector __attribute__((vector_size(16)));
    enum { WIDTH = sizeof(vector), MOST_COUNTED = 255 };
    ptrdiff_t changes = mask[0] != 0, i = 1;
    while (step == 1 && i + WIDTH <= n) {
        vector counts = {0};
        for (int words = 0; words < MOST_COUNTED && i + WIDTH <= n; words++, i += WIDTH) {
            vector these, before;
            memcpy(&these, mask + i, sizeof these);
            memcpy(&before, mask + i - 1, sizeof before);
            counts += (these ^ before) & 1;
        }
        for (int at = 0; at < WIDTH; at++) {
            changes += counts[at];
        }
    }
    for (; i < n; i++) {
        changes += (mask[i * step] != 0) != (mask[(i - 1) * step] != 0);
    }
    return (changes + 1) / 2;
}

#endif
