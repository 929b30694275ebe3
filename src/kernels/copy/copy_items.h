/* Copies items from any step to any step. */
#ifndef NUMC_COPY_ITEMS_H
#define NUMC_COPY_ITEMS_H

#include "kernels/vector.h"

/* DO(size), with a constant for the sizes that dtypes of up to 16 bytes have. */
#define BY_ITEM_SIZE(DO)                                                                           \
    switch (size) {                                                                                \
    case 1:                                                                                        \
        DO(1);                                                                                     \
        break;                                                                                     \
    case 2:                                                                                        \
        DO(2);                                                                                     \
        break;                                                                                     \
    case 4:                                                                                        \
        DO(4);                                                                                     \
        break;                                                                                     \
    case 8:                                                                                        \
        DO(8);                                                                                     \
        break;                                                                                     \
    case 16:                                                                                       \
        DO(16);                                                                                    \
        break;                                                                                     \
    default:                                                                                       \
        DO(size);                                                                                  \
    }

/* `size` is a constant where it is inlined. */
INLINE void copy_items_of(size_t size, char *to, ptrdiff_t to_step, const char *from,
                          ptrdiff_t step, ptrdiff_t n)
{
    _Pragma("GCC unroll 4") for (ptrdiff_t i = 0; i < n; i++)
    {
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
    if (to_step == 1 && step == 0 && size == 1 && n > 0) { /* bools are filled with an identity */
        memset(to, *from, (size_t)n);
        return;
    }
#define COPY(bytes) copy_items_of(bytes, to, to_step, from, step, n)
    BY_ITEM_SIZE(COPY)
#undef COPY
}

#endif
