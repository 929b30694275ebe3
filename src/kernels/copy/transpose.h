/* Squares of elements, transposed in registers: lines from_step apart become lines to_step apart. */
#ifndef NUMC_TRANSPOSE_H
#define NUMC_TRANSPOSE_H

#include "kernels/vector.h"

typedef uint64_t pair64 __attribute__((vector_size(16)));
typedef uint32_t quad32 __attribute__((vector_size(16)));
typedef uint16_t eight16 __attribute__((vector_size(16)));
typedef uint8_t sixteen8 __attribute__((vector_size(16)));

#define INTERLEAVE_8(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_8_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define INTERLEAVE_4(a, b) __builtin_shufflevector((quad32)(a), (quad32)(b), 0, 4, 1, 5)
#define INTERLEAVE_4_HIGH(a, b) __builtin_shufflevector((quad32)(a), (quad32)(b), 2, 6, 3, 7)
#define INTERLEAVE_2(a, b) __builtin_shufflevector((pair64)(a), (pair64)(b), 0, 2)
#define INTERLEAVE_2_HIGH(a, b) __builtin_shufflevector((pair64)(a), (pair64)(b), 1, 3)

INLINE void transpose_2x2_of_64_bits(const char *from, ptrdiff_t from_step, char *to,
                                     ptrdiff_t to_step)
{
    pair64 a, b;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + from_step, sizeof b);
    const pair64 first = INTERLEAVE_2(a, b), second = INTERLEAVE_2_HIGH(a, b);
    memcpy(to, &first, sizeof first);
    memcpy(to + to_step, &second, sizeof second);
}

INLINE void transpose_4x4_of_32_bits(const char *from, ptrdiff_t from_step, char *to,
                                     ptrdiff_t to_step)
{
    quad32 column[4];
    for (int c = 0; c < 4; c++) {
        memcpy(&column[c], from + c * from_step, sizeof column[c]);
    }
    const quad32 top_01 = INTERLEAVE_4(column[0], column[1]);
    const quad32 top_23 = INTERLEAVE_4(column[2], column[3]);
    const quad32 end_01 = INTERLEAVE_4_HIGH(column[0], column[1]);
    const quad32 end_23 = INTERLEAVE_4_HIGH(column[2], column[3]);
    const pair64 row[4] = {INTERLEAVE_2(top_01, top_23), INTERLEAVE_2_HIGH(top_01, top_23),
                           INTERLEAVE_2(end_01, end_23), INTERLEAVE_2_HIGH(end_01, end_23)};
    for (int r = 0; r < 4; r++) {
        memcpy(to + r * to_step, &row[r], sizeof row[r]);
    }
}

INLINE void transpose_4x4_of_64_bits(const char *from, ptrdiff_t from_step, char *to,
                                     ptrdiff_t to_step)
{
    typedef uint64_t quad64 __attribute__((vector_size(32)));
    quad64 a, b, c, d;
    memcpy(&a, from, sizeof a);
    memcpy(&b, from + from_step, sizeof b);
    memcpy(&c, from + 2 * from_step, sizeof c);
    memcpy(&d, from + 3 * from_step, sizeof d);
    const quad64 ab_even = __builtin_shufflevector(a, b, 0, 4, 2, 6);
    const quad64 ab_odd = __builtin_shufflevector(a, b, 1, 5, 3, 7);
    const quad64 cd_even = __builtin_shufflevector(c, d, 0, 4, 2, 6);
    const quad64 cd_odd = __builtin_shufflevector(c, d, 1, 5, 3, 7);
    a = __builtin_shufflevector(ab_even, cd_even, 0, 1, 4, 5);
    b = __builtin_shufflevector(ab_odd, cd_odd, 0, 1, 4, 5);
    c = __builtin_shufflevector(ab_even, cd_even, 2, 3, 6, 7);
    d = __builtin_shufflevector(ab_odd, cd_odd, 2, 3, 6, 7);
    memcpy(to, &a, sizeof a);
    memcpy(to + to_step, &b, sizeof b);
    memcpy(to + 2 * to_step, &c, sizeof c);
    memcpy(to + 3 * to_step, &d, sizeof d);
}

/* Each step doubles how many columns of a row lie side by side: 1, 2, 4, 8. */
INLINE void transpose_8x8_of_16_bits(const char *from, ptrdiff_t from_step, char *to,
                                     ptrdiff_t to_step)
{
    eight16 column[8];
    for (int c = 0; c < 8; c++) {
        memcpy(&column[c], from + c * from_step, sizeof column[c]);
    }
    eight16 twos[2][4]; /* of rows 0 to 3, and 4 to 7 */
    for (int i = 0; i < 4; i++) {
        twos[0][i] = INTERLEAVE_8(column[2 * i], column[2 * i + 1]);
        twos[1][i] = INTERLEAVE_8_HIGH(column[2 * i], column[2 * i + 1]);
    }
    for (int half = 0; half < 2; half++) {
        const eight16 *two = twos[half];
        const quad32 left = INTERLEAVE_4(two[0], two[1]), right = INTERLEAVE_4(two[2], two[3]);
        const quad32 left_2 = INTERLEAVE_4_HIGH(two[0], two[1]);
        const quad32 right_2 = INTERLEAVE_4_HIGH(two[2], two[3]);
        const pair64 row[4] = {INTERLEAVE_2(left, right), INTERLEAVE_2_HIGH(left, right),
                               INTERLEAVE_2(left_2, right_2), INTERLEAVE_2_HIGH(left_2, right_2)};
        for (int r = 0; r < 4; r++) {
            memcpy(to + (4 * half + r) * to_step, &row[r], sizeof row[r]);
        }
    }
}

/* Through a whole vector in memory, a load would wait for two stores. */
INLINE sixteen8 load_8_bytes(const char *from)
{
    uint64_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    return (sixteen8)(pair64){bytes, 0};
}

INLINE void transpose_8x8_of_8_bits(const char *from, ptrdiff_t from_step, char *to,
                                    ptrdiff_t to_step)
{
    eight16 twos[4];
    for (int i = 0; i < 4; i++) {
        const sixteen8 a = load_8_bytes(from + 2 * i * from_step),
                       b = load_8_bytes(from + (2 * i + 1) * from_step);
        twos[i] = (eight16)__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                                   6, 22, 7, 23);
    }
    for (int half = 0; half < 2; half++) {
        const eight16 left =
            half == 0 ? INTERLEAVE_8(twos[0], twos[1]) : INTERLEAVE_8_HIGH(twos[0], twos[1]);
        const eight16 right =
            half == 0 ? INTERLEAVE_8(twos[2], twos[3]) : INTERLEAVE_8_HIGH(twos[2], twos[3]);
        const quad32 row_pairs[2] = {INTERLEAVE_4(left, right), INTERLEAVE_4_HIGH(left, right)};
        for (int r = 0; r < 4; r++) {
            memcpy(to + (4 * half + r) * to_step, (const char *)&row_pairs[r / 2] + 8 * (r % 2), 8);
        }
    }
}

#endif
