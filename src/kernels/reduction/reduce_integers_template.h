/* Sums and products modulo 2^64 of one integer dtype; included once per dtype. Parameters:
 *   DTYPE   suffix of the names, KIND 'i' or 'u'
 *   STORED  the C type in memory, UNSIGNED the unsigned one of its size
 *   PAIR    the unsigned type of twice that size, UNSIGNED itself for 64 bits */
#define vector JOIN(integer_vector, DTYPE)
#define pair_vector JOIN(pair_vector, DTYPE)
#define value_at JOIN(integer_at, DTYPE)
#define load_pairs JOIN(load_pairs, DTYPE)
#define total_of JOIN(total_of_pairs, DTYPE)
#define sum_contiguous JOIN(sum_contiguous, DTYPE)
#define sum JOIN(sum, DTYPE)
#define quad JOIN(integer_quad, DTYPE)
#define product_contiguous JOIN(product_contiguous, DTYPE)
#define product JOIN(product, DTYPE)
#define TOP_BIT JOIN(TOP_BIT, DTYPE)

typedef UNSIGNED vector __attribute__((vector_size(VECTOR_BYTES)));
typedef PAIR pair_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef STORED quad __attribute__((vector_size(4 * sizeof(STORED))));

/* What turns the order of signed numbers into that of unsigned ones; 0 where nothing is to do. */
static const UNSIGNED TOP_BIT =
    KIND == 'i' && sizeof(STORED) < 8 ? (UNSIGNED)1 << (8 * sizeof(STORED) - 1) : 0;

INLINE uint64_t value_at(const char *data)
{
    return (uint64_t) * (const STORED *)data;
}

/* Sums of two neighbours; signed ones are too large by TOP_BIT each. */
INLINE pair_vector load_pairs(const char *data)
{
    vector loaded;
    memcpy(&loaded, data, sizeof loaded);
    const pair_vector pairs = (pair_vector)(loaded ^ TOP_BIT);
    const int bits = 8 * sizeof(STORED) % 64;
    return bits == 0 ? pairs : (pairs & (PAIR)(UNSIGNED)-1) + (pairs >> bits);
}

INLINE uint64_t total_of(pair_vector pairs)
{
    uint64_t result = 0;
    for (size_t lane = 0; lane < sizeof pairs / sizeof(PAIR); lane++) {
        result += pairs[lane];
    }
    return result;
}

NOINLINE uint64_t sum_contiguous(const char *data, ptrdiff_t n)
{
    const ptrdiff_t bytes = n * (ptrdiff_t)sizeof(STORED);
    uint64_t result = 0;
    ptrdiff_t at = 0;
    for (; at + SUMS * RUN_BYTES <= bytes; at += SUMS * RUN_BYTES) {
        pair_vector pairs[SUMS];
        memset(pairs, 0, sizeof pairs);
        for (int in = 0; in < SUMS * RUN_BYTES; in += SUMS * VECTOR_BYTES) {
            for (int i = 0; i < SUMS; i++) {
                pairs[i] += load_pairs(data + at + in + i * VECTOR_BYTES);
            }
        }
        for (int i = 0; i < SUMS; i++) {
            result += total_of(pairs[i]);
        }
    }
    while (at + VECTOR_BYTES <= bytes) {
        const ptrdiff_t end = at + RUN_BYTES < bytes ? at + RUN_BYTES : bytes;
        pair_vector pairs = {0};
        for (; at + VECTOR_BYTES <= end; at += VECTOR_BYTES) {
            pairs += load_pairs(data + at);
        }
        result += total_of(pairs);
    }
    result -= TOP_BIT * (uint64_t)at / sizeof(STORED);
    for (; at < bytes; at += sizeof(STORED)) {
        result += value_at(data + at);
    }
    return result;
}

INLINE uint64_t sum(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    if (step == sizeof(STORED) && n >= SHORT_SUM) {
        return sum_contiguous(data, n);
    }
    uint64_t result = 0, other = 0;
    if (LINE_BYTES <= step && step < 2 * LINE_BYTES) { /* of next to every line */
#pragma GCC unroll 1
        for (; n > 0; n--) { /* one load, which is foreseen better than four */
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

/* Several products at once: a multiplication takes three cycles until the next can use it, one of
 * vectors fifteen. */
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
            memcpy(&loaded, data + (k + i * 4) * (ptrdiff_t)sizeof(STORED), sizeof loaded);
            product_of[i] *= __builtin_convertvector(loaded, wide_vector);
        }
    }
    for (int i = 1; i < PRODUCTS; i++) {
        product_of[0] *= product_of[i];
    }
    return product_of[0][0] * product_of[0][1] * product_of[0][2] * product_of[0][3];
}
#endif

INLINE uint64_t product(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    uint64_t result = 1;
#if defined(__AVX2__)
    if (step == sizeof(STORED) && n >= PRODUCTS * 4) {
        const ptrdiff_t whole = n / (PRODUCTS * 4) * (PRODUCTS * 4);
        result = product_contiguous(data, whole);
        data += whole * step;
        n -= whole;
    }
#endif
    uint64_t a = 1, b = 1, c = 1;
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

#define OP add
#define OF sum
#define IDENTITY 0
#define VALUE(a, b) ((a) + (b))
#include "reduce_integers_op_template.h"

#define OP multiply
#define OF product
#define IDENTITY 1
#define VALUE(a, b) ((a) * (b))
#include "reduce_integers_op_template.h"

#undef vector
#undef pair_vector
#undef value_at
#undef load_pairs
#undef total_of
#undef sum_contiguous
#undef sum
#undef product
#undef quad
#undef product_contiguous
#undef TOP_BIT
#undef DTYPE
#undef KIND
#undef STORED
#undef UNSIGNED
#undef PAIR
