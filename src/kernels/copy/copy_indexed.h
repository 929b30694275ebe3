/* Gathers items by index, and scatters them. */
#ifndef NUMC_COPY_INDEXED_H
#define NUMC_COPY_INDEXED_H

#include "copy_items.h"

/* `size` is a constant where it is inlined. */
INLINE void gather_items_of(size_t size, char *to, const char *from, ptrdiff_t step,
                            const uint16_t index[], ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        memcpy(to, from + index[i] * step, size);
        to += size;
    }
}

INLINE void scatter_items_of(size_t size, char *to, ptrdiff_t step, const char *from,
                             const uint16_t index[], ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        memcpy(to + index[i] * step, from, size);
        from += size;
    }
}

/* Items `step` bytes apart to contiguous ones. */
static inline void gather_items(size_t size, char *to, const char *from, ptrdiff_t step,
                                const uint16_t index[], ptrdiff_t n)
{
#define GATHER(bytes) gather_items_of(bytes, to, from, step, index, n)
    BY_ITEM_SIZE(GATHER)
#undef GATHER
}

/* The other way. */
static inline void scatter_items(size_t size, char *to, ptrdiff_t step, const char *from,
                                 const uint16_t index[], ptrdiff_t n)
{
#define SCATTER(bytes) scatter_items_of(bytes, to, step, from, index, n)
    BY_ITEM_SIZE(SCATTER)
#undef SCATTER
}

#endif
