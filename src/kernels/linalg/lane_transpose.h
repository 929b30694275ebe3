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

/* Transposes the squares of `width` lanes in as many vectors. */
INLINE void transpose_squares(vector block[LANES], int width)
{
#define FOR_PAIRS(size)                                                                            \
    UNROLL                                                                                         \
    for (int i = 0; i < width && (size) < width; i++) {                                            \
        if ((i & (size)) == 0) {                                                                   \
            exchange_##size(&block[i], &block[i | (size)]);                                        \
        }                                                                                          \
    }
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
#undef FOR_PAIRS
}

/* Where the matrices of a vector begin. */
struct lane_addresses {
    char *of[LANES];
};

/* Vectors of pieces: joined in registers, as a vector that was stored in pieces is loaded late. */
enum { SHORT_LANES = 16 / sizeof(element) };

typedef element short_vector __attribute__((vector_size(16)));

#if LANE_BYTES == 16
INLINE vector join_shorts(const short_vector *x)
{
    return *x;
}
#elif LANE_BYTES == 32
INLINE vector join_shorts(const short_vector *x)
{
#if IS_FLOAT
    return __builtin_shufflevector(x[0], x[1], 0, 1, 2, 3, 4, 5, 6, 7);
#else
    return __builtin_shufflevector(x[0], x[1], 0, 1, 2, 3);
#endif
}
#else
typedef element half_vector __attribute__((vector_size(32)));

INLINE vector join_halves(half_vector low, half_vector high)
{
#if IS_FLOAT
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}

INLINE vector join_shorts(const short_vector *x)
{
#if IS_FLOAT
    return join_halves(__builtin_shufflevector(x[0], x[1], 0, 1, 2, 3, 4, 5, 6, 7),
                       __builtin_shufflevector(x[2], x[3], 0, 1, 2, 3, 4, 5, 6, 7));
#else
    return join_halves(__builtin_shufflevector(x[0], x[1], 0, 1, 2, 3),
                       __builtin_shufflevector(x[2], x[3], 0, 1, 2, 3));
#endif
}
#endif

/* Loads `width` elements of each lane: a vector's, half a vector's, 16 bytes', or one. */
INLINE void load_squares(const struct lane_addresses *from, ptrdiff_t offset, int width, vector *to)
{
    vector block[LANES];
    UNROLL for (int i = 0; i < width; i++)
    {
        short_vector pieces[LANES / SHORT_LANES];
        if (width == LANES) {
            memcpy(&block[i], from->of[i] + offset, sizeof(vector));
#if LANE_BYTES == 64
        } else if (width == LANES / 2) {
            half_vector low, high;
            memcpy(&low, from->of[i] + offset, sizeof low);
            memcpy(&high, from->of[i + width] + offset, sizeof high);
            block[i] = join_halves(low, high);
#endif
        } else if (width == SHORT_LANES) {
            UNROLL for (int piece = 0; piece < LANES / SHORT_LANES; piece++)
            {
                memcpy(&pieces[piece], from->of[i + piece * width] + offset, sizeof pieces[piece]);
            }
            block[i] = join_shorts(pieces);
        } else {
            UNROLL for (int lane = 0; lane < LANES; lane++)
            {
                element x;
                memcpy(&x, from->of[lane] + offset, sizeof x);
                pieces[lane / SHORT_LANES][lane % SHORT_LANES] = x;
            }
            block[i] = join_shorts(pieces);
        }
    }
    transpose_squares(block, width);
    UNROLL for (int e = 0; e < width; e++)
    {
        to[e] = block[e];
    }
}

INLINE void store_squares(const struct lane_addresses *to, ptrdiff_t offset, int width, int lanes,
                          const vector *from)
{
    vector block[LANES];
    UNROLL for (int e = 0; e < width; e++)
    {
        block[e] = from[e];
    }
    transpose_squares(block, width);
    UNROLL for (int lane = 0; lane < LANES; lane++)
    {
        if (lane < lanes) {
            memcpy(to->of[lane] + offset,
                   (const char *)&block[lane % width] + lane / width * width * (int)sizeof(element),
                   (size_t)width * sizeof(element));
        }
    }
}

/* `length` contiguous elements. */
NOINLINE void load_line(const struct lane_addresses *from, ptrdiff_t offset, ptrdiff_t length,
                        vector *to)
{
    for (; length >= LANES; length -= LANES) {
        load_squares(from, offset, LANES, to);
        offset += (ptrdiff_t)sizeof(vector);
        to += LANES;
    }
    if (LANE_BYTES == 64 && length >= LANES / 2) {
        load_squares(from, offset, LANES / 2, to);
        offset += (ptrdiff_t)sizeof(vector) / 2;
        length -= LANES / 2;
        to += LANES / 2;
    }
    if (LANE_BYTES >= 32 && length >= SHORT_LANES) {
        load_squares(from, offset, SHORT_LANES, to);
        offset += (ptrdiff_t)sizeof(short_vector);
        length -= SHORT_LANES;
        to += SHORT_LANES;
    }
    for (; length > 0; length--) {
        load_squares(from, offset, 1, to++);
        offset += (ptrdiff_t)sizeof(element);
    }
}

NOINLINE void store_line(const struct lane_addresses *to, ptrdiff_t offset, ptrdiff_t length,
                         int lanes, const vector *from)
{
    for (; length >= LANES; length -= LANES) {
        store_squares(to, offset, LANES, lanes, from);
        offset += (ptrdiff_t)sizeof(vector);
        from += LANES;
    }
    if (LANE_BYTES == 64 && length >= LANES / 2) {
        store_squares(to, offset, LANES / 2, lanes, from);
        offset += (ptrdiff_t)sizeof(vector) / 2;
        length -= LANES / 2;
        from += LANES / 2;
    }
    if (LANE_BYTES >= 32 && length >= SHORT_LANES) {
        store_squares(to, offset, SHORT_LANES, lanes, from);
        offset += (ptrdiff_t)sizeof(short_vector);
        length -= SHORT_LANES;
        from += SHORT_LANES;
    }
    for (; length > 0; length--) {
        store_squares(to, offset, 1, lanes, from++);
        offset += (ptrdiff_t)sizeof(element);
    }
}

#endif
