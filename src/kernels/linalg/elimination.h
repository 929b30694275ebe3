/* Gaussian elimination with LAPACK's pivots, of a different row in each lane. */
#ifndef NUMC_ELIMINATION_H
#define NUMC_ELIMINATION_H

#include "pivot_check.h"

INLINE void find_column_sizes(struct pivot_check *check, const number *a, ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        check->column_sizes[j] = size_of_number(a[j]);
    }
    for (ptrdiff_t i = 1; i < n; i++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            check->column_sizes[j] += size_of_number(a[i * n + j]);
        }
    }
}

/* Which row from k on has the first largest number of column k. */
INLINE vector_mask pivot_row(const number *a, ptrdiff_t n, ptrdiff_t k)
{
    vector largest = size_of_number(a[k * n + k]);
    vector_mask row = splat_bits((lane_bits)k);
    for (ptrdiff_t i = k + 1; i < n; i++) {
        const vector size = size_of_number(a[i * n + k]);
        const vector_mask larger = size > largest;
        largest = select_lanes(larger, size, largest);
        row = select_bits(larger, splat_bits((lane_bits)i), row);
    }
    return row;
}

/* Swaps numbers k and `row` of a column. */
INLINE void swap_numbers(number *column, ptrdiff_t step, ptrdiff_t n, ptrdiff_t k,
                         const vector_mask *is_row)
{
    const number top = column[k * step];
    number pivot = top;
    for (ptrdiff_t i = k + 1; i < n; i++) {
        const number x = column[i * step];
        pivot = select_numbers(is_row[i], x, pivot);
        column[i * step] = select_numbers(is_row[i], top, x);
    }
    column[k * step] = pivot;
}

/* Makes a upper triangular, and does the same to b, whose rows have `columns` numbers. Below the diagonal
 * of a is what was there. Returns where the number of swaps is odd. */
INLINE vector_mask eliminate(number *a, number *b, ptrdiff_t n, ptrdiff_t columns, divisor *pivots,
                             struct pivot_check *check)
{
    vector_mask odd = {0};
    start_check(check);
    find_column_sizes(check, a, n);
    for (ptrdiff_t k = 0; k < n; k++) {
        const vector_mask row = pivot_row(a, n, k);
        const vector_mask swaps = row != splat_bits((lane_bits)k);
        if (mask_bits(swaps) != 0) {
            vector_mask is_row[MOST_N];
            for (ptrdiff_t i = k + 1; i < n; i++) {
                is_row[i] = row == splat_bits((lane_bits)i);
            }
            for (ptrdiff_t j = k; j < n; j++) {
                swap_numbers(a + j, n, n, k, is_row);
            }
            for (ptrdiff_t j = 0; j < columns; j++) {
                swap_numbers(b + j, columns, n, k, is_row);
            }
            odd ^= swaps;
        }
        pivots[k] = divisor_of(a[k * n + k]);
        check_pivot(check, check->column_sizes[k] * size_of_number(pivots[k].reciprocal));
        for (ptrdiff_t i = k + 1; i < n; i++) {
            const number factor = quotient(a[i * n + k], &pivots[k]);
            for (ptrdiff_t j = k + 1; j < n; j++) {
                a[i * n + j] = number_minus_product(a[i * n + j], factor, a[k * n + j]);
            }
            for (ptrdiff_t j = 0; j < columns; j++) {
                b[i * columns + j] =
                    number_minus_product(b[i * columns + j], factor, b[k * columns + j]);
            }
        }
    }
    if (mask_bits(check->doubtful) != 0) {
        confirm_doubts(check, a, n, 1, n, pivots, false);
    }
    return odd;
}

/* Solves the triangular system that eliminate() leaves. */
INLINE void substitute(const number *a, number *b, ptrdiff_t n, ptrdiff_t columns,
                       const divisor *pivots, struct pivot_check *check)
{
    for (ptrdiff_t k = n - 1; k >= 0; k--) {
        for (ptrdiff_t j = 0; j < columns; j++) {
            const number x = quotient(b[k * columns + j], &pivots[k]);
            b[k * columns + j] = x;
            check->irregular |= irregular_number(x);
            for (ptrdiff_t i = 0; i < k; i++) {
                b[i * columns + j] = number_minus_product(b[i * columns + j], a[i * n + k], x);
            }
        }
    }
}

#endif
