/* Sums and products modulo 2^64 of the integer DTYPE that includes it, which also says
 *   stored  the C type in memory, unsigned_stored the unsigned one of its size
 *   pair    the unsigned type of twice that size, unsigned_stored itself for 64 bits
 * and defines IS_BOOL if any value but 0 counts as 1. */
#ifndef NUMC_REDUCE_INTEGERS_H
#define NUMC_REDUCE_INTEGERS_H

#include "in_fours.h"
#include "reduction_kernels.h"

#include <stdlib.h>

#ifndef IS_BOOL
#define IS_BOOL 0
#endif

enum {
    IS_SIGNED = (stored)-1 < (stored)1,
    RUN_BYTES = 128 * VECTOR_BYTES, /* a 16-bit lane absorbs 128 byte pairs without overflow */
    RUNS = 4,                       /* independent accumulators, to hide latency */
    SHORT_SUM = 16,
    PRODUCTS = 8,
    LONG_PRODUCT = 128, /* vectors multiply in the time of several scalars, one after the other */
    FEW_COLUMNS = 6,
    FEW_COLUMNS_ROWS = 512,
    VERY_SHORT_ROW_BYTES = 256, /* pairs of such rows are as good as one row */
    ROW_COLUMNS = ROW_BYTES / sizeof(uint64_t),
};

typedef unsigned_stored vector __attribute__((vector_size(VECTOR_BYTES)));
typedef pair pair_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t wide_vector __attribute__((vector_size(4 * sizeof(uint64_t))));
typedef stored quad __attribute__((vector_size(4 * sizeof(stored))));

/* XOR with it maps signed to unsigned order, adding 2^(bits - 1); 0 where that is not needed. */
static const unsigned_stored TOP_BIT =
    IS_SIGNED && sizeof(stored) < 8 ? (unsigned_stored)1 << (8 * sizeof(stored) - 1) : 0;

INLINE uint64_t value_at(const char *data)
{
    const stored value = *(const stored *)data;
    return IS_BOOL ? value != 0 : (uint64_t)value;
}

INLINE void put_value(uint64_t value, char *to)
{
    *(unsigned_stored *)to = (unsigned_stored)value;
}

/* Sums of adjacent elements; each signed element counts TOP_BIT too much. */
INLINE pair_vector load_pairs(const char *data)
{
    vector loaded;
    memcpy(&loaded, data, sizeof loaded);
    loaded = IS_BOOL ? (vector)(loaded != 0) & 1 : loaded;
    const pair_vector pairs = (pair_vector)(loaded ^ TOP_BIT);
    const int bits = 8 * sizeof(stored) % 64;
    return bits == 0 ? pairs : (pairs & (pair)(unsigned_stored)-1) + (pairs >> bits);
}

INLINE uint64_t total_of_pairs(pair_vector pairs)
{
    uint64_t result = 0;
    for (size_t lane = 0; lane < sizeof pairs / sizeof(pair); lane++) {
        result += pairs[lane];
    }
    return result;
}

NOINLINE uint64_t sum_contiguous(const char *data, ptrdiff_t n)
{
    const ptrdiff_t bytes = n * (ptrdiff_t)sizeof(stored);
    uint64_t result = 0;
    ptrdiff_t at = 0;
    for (; at + RUNS * RUN_BYTES <= bytes; at += RUNS * RUN_BYTES) {
        pair_vector pairs[RUNS];
        memset(pairs, 0, sizeof pairs);
        for (int in = 0; in < RUNS * RUN_BYTES; in += RUNS * VECTOR_BYTES) {
            for (int i = 0; i < RUNS; i++) {
                pairs[i] += load_pairs(data + at + in + i * VECTOR_BYTES);
            }
        }
        for (int i = 0; i < RUNS; i++) {
            result += total_of_pairs(pairs[i]);
        }
    }
    while (at + VECTOR_BYTES <= bytes) {
        const ptrdiff_t end = at + RUN_BYTES < bytes ? at + RUN_BYTES : bytes;
        pair_vector pairs = {0};
        for (; at + VECTOR_BYTES <= end; at += VECTOR_BYTES) {
            pairs += load_pairs(data + at);
        }
        result += total_of_pairs(pairs);
    }
    result -= TOP_BIT * (uint64_t)at / sizeof(stored);
    for (; at < bytes; at += sizeof(stored)) {
        result += value_at(data + at);
    }
    return result;
}

INLINE uint64_t sum(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    if (step == sizeof(stored) && n >= SHORT_SUM) {
        return sum_contiguous(data, n);
    }
    uint64_t result = 0, other = 0;
    if (LINE_BYTES <= step && step < 2 * LINE_BYTES) {
#pragma GCC unroll 1
        for (; n > 0; n--) { /* the prefetcher follows one load better than four */
            result += value_at(data);
            data += step;
        }
        return result;
    }
    for (; n >= 4; n -= 4) {
        result += value_at(data);
        other += value_at(data + step);
        data += 2 * step;
        result += value_at(data);
        other += value_at(data + step);
        data += 2 * step;
    }
    result += other;
    for (; n > 0; n--) {
        result += value_at(data);
        data += step;
    }
    return result;
}

#if defined(__AVX2__)
typedef int8_t bool_quad __attribute__((vector_size(4)));

/* Of smaller elements, copying them with zeros takes as long. */
static void sum_masked(const struct reduction_kernel *kernel, const char *data, const char *mask,
                       ptrdiff_t n, void *sums)
{
    enum { AT_ONCE = 4 };
    (void)kernel;
    wide_vector sum_of[AT_ONCE] = {{0}};
    ptrdiff_t k = 0;
    for (; k + AT_ONCE * 4 <= n; k += AT_ONCE * 4) {
#pragma GCC unroll 4
        for (int i = 0; i < AT_ONCE; i++) {
            quad loaded;
            bool_quad bools;
            memcpy(&loaded, data + (k + i * 4) * (ptrdiff_t)sizeof(stored), sizeof loaded);
            memcpy(&bools, mask + k + i * 4, sizeof bools);
            const wide_vector kept = __builtin_convertvector(bools != 0, wide_vector);
            sum_of[i] += __builtin_convertvector(loaded, wide_vector) & kept;
        }
    }
    const wide_vector all = (sum_of[0] + sum_of[1]) + (sum_of[2] + sum_of[3]);
    uint64_t result = all[0] + all[1] + all[2] + all[3];
    for (; k < n; k++) {
        result += mask[k] != 0 ? value_at(data + k * (ptrdiff_t)sizeof(stored)) : 0;
    }
    *(uint64_t *)sums = result;
}
#define MASKED_SUM (sizeof(stored) == 8 ? sum_masked : NULL)
#else
#define MASKED_SUM NULL
#endif

/* Several accumulators: a multiplication has a latency of three cycles, one of vectors fifteen. */
#if defined(__AVX2__)
NOINLINE uint64_t product_contiguous(const char *data, ptrdiff_t n)
{
    wide_vector product_of[PRODUCTS];
    for (int i = 0; i < PRODUCTS; i++) {
        product_of[i] = (wide_vector){1, 1, 1, 1};
    }
    for (ptrdiff_t k = 0; k < n; k += PRODUCTS * 4) {
#pragma GCC unroll 8
        for (int i = 0; i < PRODUCTS; i++) {
            quad loaded;
            memcpy(&loaded, data + (k + i * 4) * (ptrdiff_t)sizeof(stored), sizeof loaded);
            loaded = IS_BOOL ? (quad)(loaded != 0) & 1 : loaded;
            product_of[i] *= __builtin_convertvector(loaded, wide_vector);
        }
    }
    for (int i = 1; i < PRODUCTS; i++) {
        product_of[0] *= product_of[i];
    }
    return product_of[0][0] * product_of[0][1] * product_of[0][2] * product_of[0][3];
}
#endif

/* Four at a time, of which compilers would make vectors, gathered and multiplied in several steps each. */
SCALAR static uint64_t product_of_scalars(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    uint64_t result = 1, a = 1, b = 1, c = 1;
    for (; n >= 4; n -= 4) {
        result *= value_at(data);
        a *= value_at(data + step);
        data += 2 * step;
        b *= value_at(data);
        c *= value_at(data + step);
        data += 2 * step;
    }
    result *= a * b * c;
    for (; n > 0; n--) {
        result *= value_at(data);
        data += step;
    }
    return result;
}

INLINE uint64_t product(const char *data, ptrdiff_t step, ptrdiff_t n)
{
#if defined(__AVX2__)
    if (step == sizeof(stored) && n >= LONG_PRODUCT) {
        const ptrdiff_t whole = n / (PRODUCTS * 4) * (PRODUCTS * 4);
        return product_contiguous(data, whole) *
               product_of_scalars(data + whole * step, step, n - whole);
    }
#endif
    return product_of_scalars(data, step, n);
}

/* Reads and writes an integer of 1, 2, 4 or 8 bytes. */
INLINE uint64_t load_one(const char *from, size_t size)
{
    return size == 1   ? *(const uint8_t *)from
           : size == 2 ? *(const uint16_t *)from
           : size == 4 ? *(const uint32_t *)from
                       : *(const uint64_t *)from;
}

INLINE void store_one(uint64_t value, char *to, size_t size)
{
    switch (size) {
    case 1:
        *(uint8_t *)to = (uint8_t)value;
        break;
    case 2:
        *(uint16_t *)to = (uint16_t)value;
        break;
    case 4:
        *(uint32_t *)to = (uint32_t)value;
        break;
    default:
        *(uint64_t *)to = value;
    }
}

#define OP add
#define OF sum
#define MASKED MASKED_SUM
#define VALUE(a, b) ((a) + (b))
#include "reduce_integers_op_template.h"

#define OP multiply
#define OF product
#define MASKED NULL
#define VALUE(a, b) ((a) * (b))
#include "reduce_integers_op_template.h"

#endif
