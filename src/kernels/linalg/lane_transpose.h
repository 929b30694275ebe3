/* How elements of several matrices get into the lanes of vectors, and back: vector e has element e of matrix
 * i in lane i. */
#ifndef NUMC_LANE_TRANSPOSE_H
#define NUMC_LANE_TRANSPOSE_H

#include "lane_arithmetic.h"

/* Swaps the blocks of SIZE lanes off the diagonal of each square of 2 * SIZE lanes of x and y. */
#define EXCHANGE(size, low, high)                                                                  \
    INLINE void exchange_##size(vector *x, vector *y)                                              \
    {                                                                                              \
        const vector a = *x, b = *y;                                                               \
        *x = low;                                                                                  \
        *y = high;                                                                                 \
    }
#define PICK(...) __builtin_shufflevector(a, b, __VA_ARGS__)
#if LANE_COUNT == 2
EXCHANGE(1, PICK(0, 2), PICK(1, 3))
#elif LANE_COUNT == 4
EXCHANGE(1, PICK(0, 4, 2, 6), PICK(1, 5, 3, 7))
EXCHANGE(2, PICK(0, 1, 4, 5), PICK(2, 3, 6, 7))
#elif LANE_COUNT == 8
EXCHANGE(1, PICK(0, 8, 2, 10, 4, 12, 6, 14), PICK(1, 9, 3, 11, 5, 13, 7, 15))
EXCHANGE(2, PICK(0, 1, 8, 9, 4, 5, 12, 13), PICK(2, 3, 10, 11, 6, 7, 14, 15))
EXCHANGE(4, PICK(0, 1, 2, 3, 8, 9, 10, 11), PICK(4, 5, 6, 7, 12, 13, 14, 15))
#elif LANE_COUNT == 16
EXCHANGE(1, PICK(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30),
         PICK(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
EXCHANGE(2, PICK(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29),
         PICK(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
EXCHANGE(4, PICK(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27),
         PICK(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
EXCHANGE(8, PICK(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23),
         PICK(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
#endif
#undef PICK
#undef EXCHANGE

#define FOR_PAIRS(size)                                                                            \
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++)                                       \
    {                                                                                              \
        if ((i & (size)) == 0) {                                                                   \
            exchange_##size(&square[i], &square[i | (size)]);                                      \
        }                                                                                          \
    }

INLINE void transpose_square(vector square[LANES])
{
    FOR_PAIRS(1)
#if LANE_COUNT >= 4
    FOR_PAIRS(2)
#endif
#if LANE_COUNT >= 8
    FOR_PAIRS(4)
#endif
#if LANE_COUNT >= 16
    FOR_PAIRS(8)
#endif
}
#undef FOR_PAIRS

/* Where the matrices of a vector begin. */
struct lane_addresses {
    char *of[LANES];
};

INLINE void load_square(const struct lane_addresses *from, ptrdiff_t offset, vector *to)
{
    vector square[LANES];
    _Pragma("GCC unroll 16") for (int lane = 0; lane < LANES; lane++)
    {
        memcpy(&square[lane], from->of[lane] + offset, sizeof(vector));
    }
    transpose_square(square);
    _Pragma("GCC unroll 16") for (int e = 0; e < LANES; e++)
    {
        to[e] = square[e];
    }
}

INLINE void store_square(const struct lane_addresses *to, ptrdiff_t offset, int lanes,
                         const vector *from)
{
    vector square[LANES];
    _Pragma("GCC unroll 16") for (int e = 0; e < LANES; e++)
    {
        square[e] = from[e];
    }
    transpose_square(square);
    _Pragma("GCC unroll 16") for (int lane = 0; lane < LANES; lane++)
    {
        if (lane < lanes) {
            memcpy(to->of[lane] + offset, &square[lane], sizeof(vector));
        }
    }
}

INLINE void load_element(const struct lane_addresses *from, ptrdiff_t offset, vector *to)
{
    element loaded[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        memcpy(&loaded[lane], from->of[lane] + offset, sizeof(element));
    }
    memcpy(to, loaded, sizeof loaded);
}

INLINE void store_element(const struct lane_addresses *to, ptrdiff_t offset, int lanes,
                          const vector *from)
{
    for (int lane = 0; lane < lanes; lane++) {
        memcpy(to->of[lane] + offset, (const char *)from + lane * (ptrdiff_t)sizeof(element),
               sizeof(element));
    }
}

/* The last square of a line overlaps the one before: up to this many elements are moved one by one. */
enum { LONE_ELEMENTS = LANES / 4 };

/* `length` contiguous elements. */
NOINLINE void load_line(const struct lane_addresses *from, ptrdiff_t offset, ptrdiff_t length,
                        vector *to)
{
    const ptrdiff_t size = sizeof(element);
    ptrdiff_t e = 0;
    for (; e + LANES <= length; e += LANES) {
        load_square(from, offset + e * size, to + e);
    }
    if (length >= LANES && length - e > LONE_ELEMENTS) {
        load_square(from, offset + (length - LANES) * size, to + length - LANES);
        return;
    }
    for (; e < length; e++) {
        load_element(from, offset + e * size, to + e);
    }
}

NOINLINE void store_line(const struct lane_addresses *to, ptrdiff_t offset, ptrdiff_t length,
                         int lanes, const vector *from)
{
    const ptrdiff_t size = sizeof(element);
    ptrdiff_t e = 0;
    for (; e + LANES <= length; e += LANES) {
        store_square(to, offset + e * size, lanes, from + e);
    }
    if (length >= LANES && length - e > LONE_ELEMENTS) {
        store_square(to, offset + (length - LANES) * size, lanes, from + length - LANES);
        return;
    }
    for (; e < length; e++) {
        store_element(to, offset + e * size, lanes, from + e);
    }
}

#endif
