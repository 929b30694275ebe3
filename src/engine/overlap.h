/* The order guard: may the elements of a call be computed in any order? */
#ifndef NUMC_OVERLAP_H
#define NUMC_OVERLAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes [first, end), in which all elements of an operand lie. */
struct extent {
    uintptr_t first, end;
};

static inline struct extent extent_of(const void *data, size_t item_size, int axes,
                                      const ptrdiff_t n[], const ptrdiff_t step[])
{
    struct extent extent = {(uintptr_t)data, (uintptr_t)data + item_size};
    for (int i = 0; i < axes; i++) {
        const ptrdiff_t reach = (n[i] - 1) * step[i];
        extent.first += (uintptr_t)(reach < 0 ? reach : 0);
        extent.end += (uintptr_t)(reach < 0 ? 0 : reach);
    }
    return extent;
}

static inline bool extents_meet(struct extent a, struct extent b)
{
    return a.first < b.end && b.first < a.end;
}

/* Whether the elements of a call may be computed in any order: every output coincides exactly with
 * an operand or shares no byte with it, and does not overlap itself. */
bool elements_commute(int inputs, int operands, char *const data[], const ptrdiff_t step[],
                      const size_t item_size[], ptrdiff_t n);

#endif
