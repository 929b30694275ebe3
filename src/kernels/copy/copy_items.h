/* Copies items of 1, 2, 4, 8 or 16 bytes, from any step to any step. */
#ifndef NUMC_COPY_ITEMS_H
#define NUMC_COPY_ITEMS_H

#include "kernels/vector.h"

/* `size` is a constant where it is inlined. */
INLINE void copy_items_of(size_t size, char *to, ptrdiff_t to_step, const char *from,
                          ptrdiff_t step, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        memcpy(to, from, size);
        to += to_step;
        from += step;
    }
}

static inline void copy_items(size_t size, char *to, ptrdiff_t to_step, const char *from,
                              ptrdiff_t step, ptrdiff_t n)
{
    if (to_step == (ptrdiff_t)size && step == (ptrdiff_t)size) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1:
        copy_items_of(1, to, to_step, from, step, n);
        break;
    case 2:
        copy_items_of(2, to, to_step, from, step, n);
        break;
    case 4:
        copy_items_of(4, to, to_step, from, step, n);
        break;
    case 8:
        copy_items_of(8, to, to_step, from, step, n);
        break;
    default:
        copy_items_of(16, to, to_step, from, step, n);
    }
}

#endif
