/* Gathers items that lie apart, of up to four bytes, several at a time. */
#ifndef NUMC_GATHER_WORDS_H
#define NUMC_GATHER_WORDS_H

#include "copy_items.h"
#include "transpose.h"

/* Items to prefetch ahead: the processor keeps few loads in flight among so many instructions. */
enum { GATHER_AHEAD = 128 };

INLINE quad32 load_32_bits(const char *from)
{
    uint32_t item;
    memcpy(&item, from, sizeof item);
    return (quad32){item, 0, 0, 0};
}

/* Four of 32 bits that lie apart. */
INLINE quad32 gather_quad(const char *from, ptrdiff_t step)
{
    const quad32 low = INTERLEAVE_4(load_32_bits(from), load_32_bits(from + step));
    from += 2 * step;
    const quad32 high = INTERLEAVE_4(load_32_bits(from), load_32_bits(from + step));
    return (quad32)INTERLEAVE_2(low, high);
}

/* Elements to contiguous ones, word by word: there are fewer stores than elements. */
INLINE void gather_words(const char *from, ptrdiff_t step, size_t size, ptrdiff_t n, char *gathered)
{
    const ptrdiff_t in_word = (ptrdiff_t)(sizeof(uint64_t) / size);
    ptrdiff_t k = 0;
    for (; size == sizeof(uint32_t) && k + 4 <= n; k += 4) {
        const quad32 quad = gather_quad(from + k * step, step);
        __builtin_prefetch(from + (k + GATHER_AHEAD) * step);
        memcpy(gathered + k * (ptrdiff_t)size, &quad, sizeof quad);
    }
#pragma GCC unroll 2
    for (; in_word > 1 && k + in_word <= n; k += in_word) {
        uint64_t word = 0;
        __builtin_prefetch(from + (k + GATHER_AHEAD) * step);
#pragma GCC unroll 8
        for (ptrdiff_t i = 0; i < in_word; i++) {
            uint64_t item = 0;
            memcpy(&item, from + (k + i) * step, size);
            word |= item << (i * (ptrdiff_t)size * 8);
        }
        memcpy(gathered + k * (ptrdiff_t)size, &word, sizeof word);
    }
    const ptrdiff_t item = (ptrdiff_t)size;
    copy_items_of(size, gathered + k * item, item, from + k * step, step, n - k);
}

#endif
