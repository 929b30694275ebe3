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

enum { BOOLS_AT_ONCE = 4 };

/* The indices of all that are true; returns how many. `index` has room for BOOLS_AT_ONCE more. Four at a time, without a
 * branch: which bools are true would be a guess. */
static inline ptrdiff_t find_all_true(const char *mask, ptrdiff_t step, ptrdiff_t n,
                                      uint16_t index[])
{
    static const uint16_t found[1 << BOOLS_AT_ONCE][BOOLS_AT_ONCE] = {
        {0}, {0},    {1},    {0, 1},    {2},    {0, 2},    {1, 2},    {0, 1, 2},
        {3}, {0, 3}, {1, 3}, {0, 1, 3}, {2, 3}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3}};
    const uint32_t ones = 0x01010101;
    ptrdiff_t count = 0, i = 0;
    for (uint32_t four; step == 1 && i + BOOLS_AT_ONCE <= n; i += BOOLS_AT_ONCE) {
        memcpy(&four, mask + i, sizeof four);
        if ((four & ~ones) != 0) {
            break; /* other values than 0 and 1 */
        }
        uint64_t indices;
        memcpy(&indices, found[four * 0x10204080 >> 28], sizeof indices);
        indices += (uint64_t)i * 0x0001000100010001;
        memcpy(index + count, &indices, sizeof indices);
        count += four * ones >> 24;
    }
    for (; i < n; i++) {
        index[count] = (uint16_t)i;
        count += mask[i * step] != 0;
    }
    return count;
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
