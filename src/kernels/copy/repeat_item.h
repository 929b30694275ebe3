#ifndef NUMC_REPEAT_ITEM_H
#define NUMC_REPEAT_ITEM_H

#include "kernels/vector.h"

/* An item of up to 8 bytes, so often that it fills words. */
INLINE void repeat_item(const char *from, size_t size, size_t times, char *to)
{
    uint64_t word = 0;
    memcpy(&word, from, size);
    for (size_t bytes = size; bytes < sizeof word; bytes *= 2) {
        word |= word << 8 * bytes;
    }
    for (size_t at = 0; at < times * size; at += sizeof word) {
        memcpy(to + at, &word, sizeof word);
    }
}

#endif
