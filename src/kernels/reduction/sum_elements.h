/* Sums of the elements of one result, contiguous or not. */
#ifndef NUMC_SUM_ELEMENTS_H
#define NUMC_SUM_ELEMENTS_H

#include "sum_tree.h"

enum {
    /* Sequential additions in a leaf: as many as in NumPy's pairwise sum. */
    LEAF_TURNS = 16,
    LEAF_PARTS = LEAF_TURNS * ACCUMULATORS,
    LEAF_BYTES = LEAF_TURNS * STORED_BYTES,
    GROUP_LEAVES = 16,
};

INLINE line sum_leaf(const char *data)
{
    line sum = load(data);
    for (int i = 1; i < LEAF_TURNS; i++) {
        sum = plus(sum, load(data + i * STORED_BYTES));
    }
    return sum;
}

/* Reads in the order of memory: hardware prefetchers follow one stream of addresses best. */
NOINLINE line sum_group(const char *data)
{
    line leaf[GROUP_LEAVES];
    for (int i = 0; i < GROUP_LEAVES; i++) {
        leaf[i] = sum_leaf(data + i * LEAF_BYTES);
    }
    for (int apart = 1; apart < GROUP_LEAVES; apart *= 2) {
        for (int i = 0; i < GROUP_LEAVES; i += 2 * apart) {
            leaf[i] = plus(leaf[i], leaf[i + apart]);
        }
    }
    return leaf[0];
}

/* The sum of fewer parts than there are accumulators. */
INLINE accumulator sum_short(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    accumulator sum = load_part(data);
    if (n < 4) {
        for (ptrdiff_t k = 1; k < n; k++) {
            sum += load_part(data + k * step);
        }
        return sum;
    }
    accumulator a = load_part(data + step), b = load_part(data + 2 * step),
                c = load_part(data + 3 * step);
    for (n -= 4, data += 4 * step; n >= 4; n -= 4, data += 4 * step) {
        sum += load_part(data);
        a += load_part(data + step);
        b += load_part(data + 2 * step);
        c += load_part(data + 3 * step);
    }
    sum += n > 0 ? load_part(data) : (accumulator)-0.0;
    a += n > 1 ? load_part(data + step) : (accumulator)-0.0;
    b += n > 2 ? load_part(data + 2 * step) : (accumulator)-0.0;
    return (sum + b) + (a + c);
}

INLINE line sum_part_of_leaf(const char *data, ptrdiff_t parts)
{
    if (parts < ACCUMULATORS) {
        return load_some(data, parts);
    }
    const char *const end = data + parts * (ptrdiff_t)sizeof(stored);
    line sum = load(data);
    for (parts -= ACCUMULATORS, data += STORED_BYTES; parts >= ACCUMULATORS;
         parts -= ACCUMULATORS) {
        sum = plus(sum, load(data));
        data += STORED_BYTES;
    }
    return parts > 0 ? plus(sum, load_last(end, parts)) : sum;
}

INLINE line sum_contiguous(const char *data, ptrdiff_t parts)
{
    if (parts < LEAF_PARTS) {
        return sum_part_of_leaf(data, parts);
    }
    struct tree tree;
    tree.count = 0;
    for (; parts >= GROUP_LEAVES * LEAF_PARTS; parts -= GROUP_LEAVES * LEAF_PARTS) {
        push(&tree, sum_group(data), __builtin_ctz(GROUP_LEAVES));
        data += GROUP_LEAVES * LEAF_BYTES;
    }
    for (; parts >= LEAF_PARTS; parts -= LEAF_PARTS) {
        push(&tree, sum_leaf(data), 0);
        data += LEAF_BYTES;
    }
    if (parts > 0) {
        push(&tree, sum_part_of_leaf(data, parts), 0);
    }
    return total(&tree);
}

/* Gathers strided elements, in the order of memory. */
SCALAR static void gather(const char *data, ptrdiff_t step, ptrdiff_t n, stored *gathered)
{
#pragma GCC unroll 4
    for (ptrdiff_t i = 0; i < n; i++) {
        memcpy(gathered + i * PARTS, data, PARTS * sizeof *gathered);
        data += step;
    }
}

/* Eight accumulators of a leaf in scalar registers: filling vectors with strided elements costs more. */
SCALAR static void sum_eight_accumulators(const char *data, ptrdiff_t step, accumulator *sums)
{
    const ptrdiff_t second = step, third = 2 * step, fourth = 3 * step;
    const char *half = data + 4 * step;
    accumulator a = load_part(data), b = load_part(data + second), c = load_part(data + third),
                d = load_part(data + fourth);
    accumulator e = load_part(half), f = load_part(half + second), g = load_part(half + third),
                h = load_part(half + fourth);
    for (int turn = 1; turn < LEAF_TURNS; turn++) {
        data += ACCUMULATORS * step;
        half += ACCUMULATORS * step;
        a += load_part(data), b += load_part(data + second), c += load_part(data + third);
        d += load_part(data + fourth);
        e += load_part(half), f += load_part(half + second), g += load_part(half + third);
        h += load_part(half + fourth);
    }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
    sums[4] = e, sums[5] = f, sums[6] = g, sums[7] = h;
}

/* Same order of additions as sum_leaf and sum_part_of_leaf. */
INLINE line sum_strided_leaf(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    /* One pass over the leaf for each eight accumulators: with distant elements, several passes would defeat
     * the prefetcher. */
    const ptrdiff_t far = LINE_BYTES * 8 / ACCUMULATORS;
    const bool is_near = step < far && step > -far;
    if (PARTS == 1 && sizeof(stored) == sizeof(accumulator) && is_near && n == LEAF_PARTS) {
        accumulator sums[ACCUMULATORS];
        for (int i = 0; i < ACCUMULATORS; i += 8) {
            sum_eight_accumulators(data + i * step, step, sums + i);
        }
        return load_accumulators(sums);
    }
    stored gathered[LEAF_PARTS];
    gather(data, step, n, gathered);
    return n * PARTS == LEAF_PARTS ? sum_leaf((const char *)gathered)
                                   : sum_part_of_leaf((const char *)gathered, n * PARTS);
}

INLINE line sum_strided(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    struct tree tree;
    tree.count = 0;
    for (; n > 0; n -= LEAF_PARTS / PARTS) {
        push(&tree, sum_strided_leaf(data, step, n < LEAF_PARTS / PARTS ? n : LEAF_PARTS / PARTS),
             0);
        data += step * (LEAF_PARTS / PARTS);
    }
    return total(&tree);
}

NOINLINE line sum_any(const char *data, ptrdiff_t step, ptrdiff_t n)
{
    return step == PARTS * (ptrdiff_t)sizeof(stored) ? sum_contiguous(data, n * PARTS)
                                                     : sum_strided(data, step, n);
}

#endif
