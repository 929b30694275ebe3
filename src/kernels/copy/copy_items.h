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
    if (step == 0 && to_step == (ptrdiff_t)size && n > 0 && memcmp(from, from + 1, size - 1) == 0) {
        memset(to, *from, (size_t)n * size); /* results are filled with an identity, mostly 0 */
        return;
    }
#define COPY(bytes) copy_items_of(bytes, to, to_step, from, step, n)
    BY_ITEM_SIZE(COPY)
#undef COPY
}

#endif
