/* Sums of the columns of rows. */
#ifndef NUMC_SUM_COLUMNS_H
#define NUMC_SUM_COLUMNS_H

#include "sum_line.h"

enum {
    /* Rows added in one pass over the sums, which saves trips to the second-level cache. Fewer rows, or
     * software prefetching, were slower from memory. */
    SOME_ROWS = 4,
    MANY_ROWS = 8,
    ROW_PARTS = ROW_BYTES / sizeof(accumulator),
};

static void combine(void *into, const void *later, size_t bytes)
{
    accumulator *restrict sum = into;
    const accumulator *restrict other = later;
    for (size_t i = 0; i < bytes / sizeof *sum; i++) {
        sum[i] += other[i];
    }
}

/* sums = or += some rows, in order; `rows` and `first` are constants where it is inlined. */
INLINE void add_rows(const char *data, ptrdiff_t step, int rows, ptrdiff_t parts, accumulator *sums,
                     bool first)
{
    ptrdiff_t at = 0;
    for (; at + ACCUMULATORS <= parts; at += ACCUMULATORS) {
        const char *from = data + at * (ptrdiff_t)sizeof(stored);
        line sum = load(from);
        if (!first) {
            sum = plus(load_accumulators(sums + at), sum);
        }
#pragma GCC unroll 8
        for (int row = 1; row < rows; row++) {
            sum = plus(sum, load(from + row * step));
        }
        store_line(sums + at, sum);
    }
    for (; at < parts; at++) {
        const char *from = data + at * (ptrdiff_t)sizeof(stored);
        accumulator sum = first ? load_part(from) : sums[at] + load_part(from);
        for (int row = 1; row < rows; row++) {
            sum += load_part(from + row * step);
        }
        sums[at] = sum;
    }
}

/* The same for rows whose elements lie `next` bytes apart. */
SCALAR static void add_strided_rows(const char *data, ptrdiff_t step, ptrdiff_t rows,
                                    ptrdiff_t next, ptrdiff_t parts, accumulator *sums, bool first)
{
    for (ptrdiff_t at = 0; at < parts; at += PARTS) {
        const stored *from = (const stored *)(data + at / PARTS * next);
        accumulator sum = widen(from[0]), other = widen(from[PARTS - 1]);
        if (!first) {
            sum += sums[at];
            other += sums[at + PARTS - 1];
        }
        for (ptrdiff_t row = 1; row < rows; row++) {
            from = (const stored *)((const char *)from + step);
            sum += widen(from[0]);
            other += widen(from[PARTS - 1]);
        }
        sums[at + PARTS - 1] = other;
        sums[at] = sum;
    }
}

/* `rows`: 1, SOME_ROWS or MANY_ROWS. */
NOINLINE void add_some_rows(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next,
                            ptrdiff_t parts, accumulator *sums, bool first)
{
    if (next != PARTS * (ptrdiff_t)sizeof(stored)) {
        add_strided_rows(data, step, rows, next, parts, sums, first);
    } else if (rows == MANY_ROWS) {
        add_rows(data, step, MANY_ROWS, parts, sums, first);
    } else if (rows == SOME_ROWS) {
        add_rows(data, step, SOME_ROWS, parts, sums, first);
    } else {
        add_rows(data, step, 1, parts, sums, first);
    }
}

INLINE void sum_leaf_of_rows(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next,
                             ptrdiff_t parts, accumulator *sums)
{
    const bool one_by_one = next == PARTS * (ptrdiff_t)sizeof(stored) &&
                            parts * (ptrdiff_t)sizeof(stored) <= SHORT_ROW_BYTES;
    for (ptrdiff_t row = 0; row < rows;) {
        const ptrdiff_t left = rows - row;
        const ptrdiff_t taken = one_by_one || left < SOME_ROWS ? 1
                                : left < MANY_ROWS             ? SOME_ROWS
                                                               : MANY_ROWS;
        add_some_rows(data + row * step, step, taken, next, parts, sums, row == 0);
        row += taken;
    }
}

/* The tree of sum_tree.h over leaves of LEAF_ROWS rows; `scratch` has a row of sums for each level. */
INLINE void sum_columns(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next,
                        ptrdiff_t parts, accumulator *scratch, accumulator *sums)
{
    if (rows <= LEAF_ROWS) {
        sum_leaf_of_rows(data, step, rows, next, parts, sums);
        return;
    }
    const size_t bytes = (size_t)parts * sizeof *sums;
    const size_t apart = (bytes + LINE_BYTES - 1) / LINE_BYTES * (LINE_BYTES / sizeof *sums);
    unsigned count = 0;
    int level = 0;
    for (ptrdiff_t row = 0; row < rows; row += LEAF_ROWS) {
        const ptrdiff_t left = rows - row;
        level = __builtin_ctz(~count);
        sum_leaf_of_rows(data + row * step, step, left < LEAF_ROWS ? left : LEAF_ROWS, next, parts,
                         scratch + (size_t)level * apart);
        for (int below = 0; below < level; below++) {
            combine(scratch + (size_t)level * apart, scratch + (size_t)below * apart, bytes);
        }
        count++;
    }
    const int lowest = level;
    for (level++; count >> level != 0; level++) {
        if (count >> level & 1) {
            combine(scratch + (size_t)lowest * apart, scratch + (size_t)level * apart, bytes);
        }
    }
    memcpy(sums, scratch + (size_t)lowest * apart, bytes);
}

/* `from_memory` is ignored: the order of additions, and so the bits, must not depend on it. */
static void reduce_rows(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next,
                        ptrdiff_t columns, bool from_memory, void *scratch, void *sums)
{
    (void)from_memory;
    for (ptrdiff_t at = 0; at < columns * PARTS; at += ROW_PARTS) {
        const ptrdiff_t left = columns * PARTS - at;
        sum_columns(data + at / PARTS * next, step, rows, next, left < ROW_PARTS ? left : ROW_PARTS,
                    scratch, (accumulator *)sums + at);
    }
}

#endif
