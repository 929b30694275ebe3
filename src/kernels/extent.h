/* The bytes that an operand lies in. */
#ifndef NUMC_EXTENT_H
#define NUMC_EXTENT_H

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

#endif
