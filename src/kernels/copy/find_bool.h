/* Where runs of a mask begin and end. */
#ifndef NUMC_FIND_BOOL_H
#define NUMC_FIND_BOOL_H

#include "gather_words.h"

/* So many bools that lie apart; of bytes other than 0 and 1, `false` may be wrong. */
enum { AT_ONCE = 8 };
static inline bool are_all(bool wanted, const char *mask, ptrdiff_t step)
{
    char any = 0, all = 1;
    for (int i = 0; i < AT_ONCE; i++) {
        any |= mask[i * step];
        all &= mask[i * step];
    }
    return wanted ? all != 0 : any == 0;
}

/* Other than 0 if one of eight bools is true, or false: the lowest byte that is so is the first one. */
static inline uint64_t find_in_eight(bool wanted, const char *mask)
{
    const uint64_t ones = 0x0101010101010101;
    uint64_t eight;
    memcpy(&eight, mask, sizeof eight);
    return wanted ? eight : (eight - ones) & ~eight & ones << 7;
}

/* The first of the bools from `from` on that is true, or false; n: there is none. */
static inline ptrdiff_t find_bool_from(bool wanted, const char *mask, ptrdiff_t step,
                                       ptrdiff_t from, ptrdiff_t n)
{
    for (uint64_t found; step == 1 && from + 8 <= n; from += 8) {
        found = find_in_eight(wanted, mask + from);
        if (found != 0) {
            return from + __builtin_ctzll(found) / 8;
        }
        while (from + 40 <= n &&
               (find_in_eight(wanted, mask + from + 8) | find_in_eight(wanted, mask + from + 16) |
                find_in_eight(wanted, mask + from + 24) |
                find_in_eight(wanted, mask + from + 32)) == 0) {
            from += 32;
        }
    }
    while (step != 1 && from + AT_ONCE <= n && are_all(!wanted, mask + from * step, step)) {
        from += AT_ONCE;
    }
    while (from < n && (mask[from * step] != 0) != wanted) {
        from++;
    }
    return from;
}

typedef uint8_t bool_vector __attribute__((vector_size(16)));

/* Bools that lie apart, to contiguous ones. Every other one, as of a[::2], by vectors. */
static inline void gather_bools(char *to, const char *mask, ptrdiff_t step, ptrdiff_t n)
{
    enum { WIDTH = sizeof(bool_vector) };
    ptrdiff_t i = 0;
    for (; step == 2 && i + WIDTH < n; i += WIDTH) {
        bool_vector low, high;
        memcpy(&low, mask + 2 * i, WIDTH);
        memcpy(&high, mask + 2 * i + WIDTH, WIDTH);
        const bool_vector even = __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16,
                                                         18, 20, 22, 24, 26, 28, 30);
        memcpy(to + i, &even, WIDTH);
    }
    gather_words(mask + i * step, step, 1, n - i, to + i);
}

enum { BOOLS_AT_ONCE = 4 };

/* The indices of all that are true; returns how many. `index` has room for BOOLS_AT_ONCE more. Four at a time, without a
 * branch: which bools are true would be a guess. */
static inline ptrdiff_t find_all_true(const char *mask, ptrdiff_t n, uint16_t index[])
{
    static const uint16_t found[1 << BOOLS_AT_ONCE][BOOLS_AT_ONCE] = {
        {0}, {0},    {1},    {0, 1},    {2},    {0, 2},    {1, 2},    {0, 1, 2},
        {3}, {0, 3}, {1, 3}, {0, 1, 3}, {2, 3}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3}};
    const uint32_t ones = 0x01010101;
    ptrdiff_t count = 0, i = 0;
    for (uint32_t four; i + BOOLS_AT_ONCE <= n; i += BOOLS_AT_ONCE) {
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
        count += mask[i] != 0;
    }
    return count;
}

/* How many bools are true, and how often a true one follows a false one, or the begin. */
struct true_bools {
    ptrdiff_t count, runs;
};

static inline ptrdiff_t sum_of_bytes(bool_vector bytes)
{
    const uint64_t low = 0x00ff00ff00ff00ff, ones = 0x0001000100010001;
    uint64_t half[2];
    memcpy(half, &bytes, sizeof half);
    const uint64_t pairs =
        (half[0] & low) + (half[0] >> 8 & low) + (half[1] & low) + (half[1] >> 8 & low);
    return (ptrdiff_t)(pairs * ones >> 48);
}

static inline struct true_bools count_true(const char *mask, ptrdiff_t step, ptrdiff_t n)
{
    enum { WIDTH = sizeof(bool_vector), MOST_COUNTED = 255 };
    struct true_bools found = {0, 0};
    ptrdiff_t i = 0;
    while (step == 1 && i + WIDTH <= n) {
        bool_vector count = {0}, runs = {0};
        for (int words = 0; words < MOST_COUNTED && i + WIDTH <= n; words++, i += WIDTH) {
            bool_vector these, before = {0};
            memcpy(&these, mask + i, WIDTH);
            if (i > 0) {
                memcpy(&before, mask + i - 1, WIDTH);
            } else {
                memcpy((char *)&before + 1, mask, WIDTH - 1);
            }
            const bool_vector is_true = (bool_vector)(these != 0);
            count -= is_true;
            runs -= is_true & (bool_vector)(before == 0);
        }
        found.count += sum_of_bytes(count);
        found.runs += sum_of_bytes(runs);
    }
    if (step == 1 && i < n && i > 0) { /* those that are left, at the end of a vector */
        static const bool_vector lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        bool_vector these, before;
        memcpy(&these, mask + n - WIDTH, WIDTH);
        memcpy(&before, mask + n - WIDTH - 1, WIDTH);
        const bool_vector is_left = (bool_vector)(lane >= (uint8_t)(WIDTH - (n - i)));
        const bool_vector is_true = (bool_vector)(these != 0) & is_left;
        found.count += sum_of_bytes(-is_true);
        found.runs += sum_of_bytes(-(is_true & (bool_vector)(before == 0)));
        return found;
    }
    bool was_true = i > 0 && mask[i - 1] != 0;
    for (; i < n; i++) {
        const bool is_true = mask[i * step] != 0;
        found.count += is_true;
        found.runs += is_true && !was_true;
        was_true = is_true;
    }
    return found;
}

#endif
