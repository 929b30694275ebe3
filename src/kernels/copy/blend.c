/* Without branches, which random masks would mispredict. */
#include "blend.h"

#include "copy_items.h"
#include "kernels/vector.h"

enum { AT_ONCE = 16 }; /* bools in a vector */

typedef uint8_t bytes16 __attribute__((vector_size(16)));

INLINE bytes16 load_16(const char *from)
{
    bytes16 loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

/* From a byte for each of 16 items to `size` bytes for each: each step doubles them. */
INLINE void widen_mask(bytes16 kept[AT_ONCE], int size)
{
#pragma GCC unroll 4
    for (int count = 1; count < size; count *= 2) {
#pragma GCC unroll 8
        for (int i = count - 1; i >= 0; i--) {
            const bytes16 x = kept[i];
            kept[2 * i] =
                __builtin_shufflevector(x, x, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
            kept[2 * i + 1] = __builtin_shufflevector(x, x, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13,
                                                      13, 14, 14, 15, 15);
        }
    }
}

/* Contiguous items and bools; `size` is a constant. Returns how many items are done. */
INLINE ptrdiff_t blend_vectors(int size, char *to, const char *from, const char *mask,
                               const char *neutral, ptrdiff_t n)
{
    bytes16 instead;
    for (int at = 0; at < 16; at += size) {
        memcpy((char *)&instead + at, neutral, (size_t)size);
    }
    ptrdiff_t done = 0;
    for (; done + AT_ONCE <= n; done += AT_ONCE) {
        bytes16 kept[AT_ONCE];
        kept[0] = (bytes16)(load_16(mask + done) != 0);
        widen_mask(kept, size);
#pragma GCC unroll 16
        for (int i = 0; i < size; i++) {
            const ptrdiff_t at = done * size + 16 * i;
            const bytes16 items = (load_16(from + at) & kept[i]) | (instead & ~kept[i]);
            memcpy(to + at, &items, sizeof items);
        }
    }
    return done;
}

/* `size` is a constant where it is inlined. */
INLINE void blend_any(size_t size, char *to, const char *from, ptrdiff_t step, const char *mask,
                      ptrdiff_t mask_step, const char *neutral, ptrdiff_t n)
{
    const bool by_vectors = 16 % size == 0 && step == (ptrdiff_t)size && mask_step == 1;
    ptrdiff_t i = by_vectors ? blend_vectors((int)size, to, from, mask, neutral, n) : 0;
    for (; i < n; i++) {
        const char *items[] = {neutral, from + i * step};
        memcpy(to + (size_t)i * size, items[mask[i * mask_step] != 0], size);
    }
}

void blend_items(size_t size, char *to, const char *from, ptrdiff_t step, const char *mask,
                 ptrdiff_t mask_step, const char *neutral, ptrdiff_t n)
{
#define BLEND(bytes) blend_any(bytes, to, from, step, mask, mask_step, neutral, n)
    BY_ITEM_SIZE(BLEND)
#undef BLEND
}
