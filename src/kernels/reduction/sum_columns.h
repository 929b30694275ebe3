/* Sums of the columns of rows: row after row, rounded to the stored type each time, as NumPy's inner
 * calls do it. */
#ifndef NUMC_SUM_COLUMNS_H
#define NUMC_SUM_COLUMNS_H

#include "sum_line.h"

#include <stdlib.h>

enum {
    /* Rows added in one pass over the sums, which saves trips to the second-level cache. Fewer rows, or
     * software prefetching, were slower from memory. */
    SOME_ROWS = 4,
    MANY_ROWS = 8,
    /* Rows up to here are neighbours in few pages: a few columns at a time, down all rows. */
    SHORT_ROW_PARTS = 512 / sizeof(stored),
    CACHED_BYTES = 16384,
};

INLINE accumulator round_part(accumulator x)
{
    return widen(narrow(x));
}

INLINE vector next_row(vector sum, const char *row)
{
    return round_vector(sum + load_vector(row));
}

/* Four parts, down all rows. */
INLINE void add_four_columns(const char *const part[4], ptrdiff_t step, ptrdiff_t rows, bool onto,
                             accumulator sums[4])
{
    const char *const first = part[0], *const second = part[1], *const third = part[2],
                      *const fourth = part[3];
    accumulator a = onto ? sums[0] : load_part(first), b = onto ? sums[1] : load_part(second);
    accumulator c = onto ? sums[2] : load_part(third), d = onto ? sums[3] : load_part(fourth);
    for (ptrdiff_t row = !onto; row < rows; row++) {
        const ptrdiff_t offset = row * step;
        a = round_part(a + load_part(first + offset));
        b = round_part(b + load_part(second + offset));
        c = round_part(c + load_part(third + offset));
        d = round_part(d + load_part(fourth + offset));
    }
    sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;
}

/* Parts from `at` to `end` of contiguous rows. */
SCALAR static void add_single_columns(const char *data, ptrdiff_t step, ptrdiff_t rows,
                                      ptrdiff_t at, ptrdiff_t end, bool onto, accumulator *sums)
{
    const char *part[4];
    for (; at + 4 <= end; at += 4) {
        for (int i = 0; i < 4; i++) {
            part[i] = data + (at + i) * (ptrdiff_t)sizeof(stored);
        }
        add_four_columns(part, step, rows, onto, sums + at);
    }
    if (at < end) {
        accumulator last[4];
        for (int i = 0; i < 4; i++) { /* the last one several times */
            const ptrdiff_t column = at + i < end ? at + i : end - 1;
            part[i] = data + column * (ptrdiff_t)sizeof(stored);
            last[i] = sums[column];
        }
        add_four_columns(part, step, rows, onto, last);
        memcpy(sums + at, last, (size_t)(end - at) * sizeof *sums);
    }
}

/* Columns `next` bytes apart; `rows` is a constant where it is inlined. */
INLINE void add_strided_columns(const char *data, ptrdiff_t step, int rows, ptrdiff_t next,
                                ptrdiff_t columns, bool onto, accumulator *restrict sums)
{
    for (ptrdiff_t column = 0; column < columns; column++) {
        for (int part = 0; part < PARTS; part++) {
            const char *from = data + column * next + part * (ptrdiff_t)sizeof(stored);
            accumulator *const to = sums + column * PARTS + part;
            accumulator sum = onto ? round_part(*to + load_part(from)) : load_part(from);
#pragma GCC unroll 4
            for (int row = 1; row < rows; row++) {
                sum = round_part(sum + load_part(from + row * step));
            }
            *to = sum;
        }
    }
}

/* Of one row of complex numbers, both parts at a time. */
static void add_strided_pairs(const char *data, ptrdiff_t next, ptrdiff_t columns, bool onto,
                              accumulator *sums)
{
    typedef accumulator both __attribute__((vector_size(2 * sizeof(accumulator))));
    for (ptrdiff_t column = 0; column < columns; column++, data += next, sums += 2) {
        both sum = {0}, item;
        memcpy(&item, data, sizeof item);
        if (onto) {
            memcpy(&sum, sums, sizeof sum);
            item = sum + item;
        }
        memcpy(sums, &item, sizeof item);
    }
}

/* Up to SOME_ROWS rows of such columns. */
SCALAR static void add_strided_rows(const char *data, ptrdiff_t step, ptrdiff_t rows,
                                    ptrdiff_t next, ptrdiff_t columns, bool onto, accumulator *sums)
{
    switch (rows) {
    case 1:
        if (PARTS == 2) {
            add_strided_pairs(data, next, columns, onto, sums);
        } else {
            add_strided_columns(data, step, 1, next, columns, onto, sums);
        }
        break;
    case 2:
        add_strided_columns(data, step, 2, next, columns, onto, sums);
        break;
    case 3:
        add_strided_columns(data, step, 3, next, columns, onto, sums);
        break;
    default:
        add_strided_columns(data, step, SOME_ROWS, next, columns, onto, sums);
    }
}

/* One vector of columns, down all rows. */
INLINE vector add_vector_column(const char *row, ptrdiff_t step, ptrdiff_t rows, bool onto,
                                const accumulator *sums)
{
    vector sum = onto ? load_accumulators(sums) : load_vector(row);
    for (ptrdiff_t i = !onto; i < rows; i++) {
        sum = next_row(sum, row + i * step);
    }
    return sum;
}

/* Four vectors of columns at a time, then one. The last one may overlap those before, whose columns then
 * are added twice, from the same sums. */
NOINLINE void add_short_rows(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t parts,
                             bool onto, accumulator *sums)
{
    const ptrdiff_t last = parts - LANES;
    const vector last_sum =
        add_vector_column(data + last * (ptrdiff_t)sizeof(stored), step, rows, onto, sums + last);
    ptrdiff_t at = 0;
    for (; at + 4 * LANES <= parts; at += 4 * LANES) {
        const char *row = data + at * (ptrdiff_t)sizeof(stored);
        vector a = onto ? load_accumulators(sums + at) : load_vector(row);
        vector b = onto ? load_accumulators(sums + at + LANES) : load_vector(row + STORED_BYTES);
        vector c =
            onto ? load_accumulators(sums + at + 2 * LANES) : load_vector(row + 2 * STORED_BYTES);
        vector d =
            onto ? load_accumulators(sums + at + 3 * LANES) : load_vector(row + 3 * STORED_BYTES);
        row += onto ? 0 : step;
        for (ptrdiff_t left = onto ? rows : rows - 1; left > 0; left--, row += step) {
            a = next_row(a, row);
            b = next_row(b, row + STORED_BYTES);
            c = next_row(c, row + 2 * STORED_BYTES);
            d = next_row(d, row + 3 * STORED_BYTES);
        }
        store_accumulators(sums + at, a);
        store_accumulators(sums + at + LANES, b);
        store_accumulators(sums + at + 2 * LANES, c);
        store_accumulators(sums + at + 3 * LANES, d);
    }
    for (; at < last; at += LANES) {
        const vector sum =
            add_vector_column(data + at * (ptrdiff_t)sizeof(stored), step, rows, onto, sums + at);
        store_accumulators(sums + at, sum);
    }
    store_accumulators(sums + last, last_sum);
}

/* sums = or += some rows, in order; `rows` is a constant where it is inlined. */
INLINE ptrdiff_t add_rows(const char *data, ptrdiff_t step, int rows, ptrdiff_t parts, bool onto,
                          accumulator *sums)
{
    ptrdiff_t at = 0;
#pragma GCC unroll 2
    for (; at + LANES <= parts; at += LANES) {
        const char *from = data + at * (ptrdiff_t)sizeof(stored);
        vector sum = onto ? next_row(load_accumulators(sums + at), from) : load_vector(from);
#pragma GCC unroll 8
        for (int row = 1; row < rows; row++) {
            sum = next_row(sum, from + row * step);
        }
        store_accumulators(sums + at, sum);
    }
    return at;
}

/* `rows`: up to SOME_ROWS, or MANY_ROWS. Returns the columns that are done. */
NOINLINE ptrdiff_t add_some_rows(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t parts,
                                 bool onto, accumulator *sums)
{
    return rows == MANY_ROWS   ? add_rows(data, step, MANY_ROWS, parts, onto, sums)
           : rows == SOME_ROWS ? add_rows(data, step, SOME_ROWS, parts, onto, sums)
           : rows == 3         ? add_rows(data, step, 3, parts, onto, sums)
           : rows == 2         ? add_rows(data, step, 2, parts, onto, sums)
                               : add_rows(data, step, 1, parts, onto, sums);
}

/* Rows that a few columns at a time are read from: they stay in the first-level cache. */
INLINE ptrdiff_t rows_in_cache(ptrdiff_t step)
{
    const ptrdiff_t rows = CACHED_BYTES / ((step < 0 ? -step : step) + 1);
    return rows > MANY_ROWS ? rows : MANY_ROWS;
}

static void reduce_rows(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                        ptrdiff_t rows, ptrdiff_t next, ptrdiff_t columns, bool from_memory,
                        bool onto, void *sums)
{
    (void)kernel;
    const ptrdiff_t parts = columns * PARTS;
    const bool is_contiguous = next == PARTS * (ptrdiff_t)sizeof(stored);
    const bool is_short = parts <= SHORT_ROW_PARTS, has_vector = parts >= LANES;
    const ptrdiff_t most =
        !is_contiguous
            ? (from_memory && columns * labs(next) <= SHORT_STRIDED_ROW_BYTES ? 1 : SOME_ROWS)
        : is_short ? rows_in_cache(step)
                   : (parts * (ptrdiff_t)sizeof(stored) <= SHORT_ROW_BYTES ? 1 : MANY_ROWS);
    for (ptrdiff_t row = 0; row < rows;) {
        const ptrdiff_t left = rows - row;
        const char *from = data + row * step;
        const bool adds = onto || row > 0;
        ptrdiff_t taken = left < most ? left : most, done = 0;
        if (!is_contiguous) {
            add_strided_rows(from, step, taken, next, columns, adds, sums);
            done = parts;
        } else if (has_vector && is_short) {
            add_short_rows(from, step, taken, parts, adds, sums);
            done = parts;
        } else if (has_vector) {
            taken = taken < SOME_ROWS || taken == MANY_ROWS ? taken : SOME_ROWS;
            done = add_some_rows(from, step, taken, parts, adds, sums);
        }
        add_single_columns(from, step, taken, done, parts, adds, sums);
        row += taken;
    }
}

#endif
