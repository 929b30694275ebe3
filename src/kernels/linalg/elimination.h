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

/* Finds the pivot of column k and swaps its row, columns `from` and on, to row k. */
INLINE void bring_pivot(number *a, number *b, ptrdiff_t n, ptrdiff_t columns, ptrdiff_t k,
                        ptrdiff_t from, vector_mask *odd)
{
    const vector_mask row = pivot_row(a, n, k), swaps = row != splat_bits((lane_bits)k);
    if (mask_bits(swaps) == 0) {
        return;
    }
    vector_mask is_row[MOST_N];
    for (ptrdiff_t i = k + 1; i < n; i++) {
        is_row[i] = row == splat_bits((lane_bits)i);
    }
    for (ptrdiff_t j = from; j < n; j++) {
        swap_numbers(a + j, n, n, k, is_row);
    }
    for (ptrdiff_t j = 0; j < columns; j++) {
        swap_numbers(b + j, columns, n, k, is_row);
    }
    *odd ^= swaps;
}

INLINE void prepare_pivot(const number *a, ptrdiff_t n, ptrdiff_t k, divisor *pivots,
                          struct pivot_check *check)
{
    pivots[k] = divisor_of(a[k * n + k]);
    check_pivot(check, check->column_sizes[k] * size_of_number(pivots[k].reciprocal));
}

/* Replaces the numbers below the diagonal of column k by the factors of their rows. */
INLINE void find_factors(number *a, ptrdiff_t n, ptrdiff_t k, divisor *pivots,
                         struct pivot_check *check)
{
    prepare_pivot(a, n, k, pivots, check);
    for (ptrdiff_t i = k + 1; i < n; i++) {
        a[i * n + k] = quotient(a[i * n + k], &pivots[k]);
    }
}

INLINE void subtract_row(number *from, number x, const number *a, ptrdiff_t count)
{
    for (ptrdiff_t j = 0; j < count; j++) {
        from[j] = number_minus_product(from[j], x, a[j]);
    }
}

/* Takes multiples of two rows off a third, their sum at once. */
INLINE void subtract_rows(number *from, number x, const number *a, number y, const number *b,
                          ptrdiff_t count)
{
    for (ptrdiff_t j = 0; j < count; j++) {
        from[j] = number_minus_products(from[j], x, a[j], y, b[j]);
    }
}

INLINE void eliminate_columns(number *a, number *b, ptrdiff_t n, ptrdiff_t columns, divisor *pivots,
                              struct pivot_check *check, vector_mask *odd)
{
    for (ptrdiff_t k = 0; k < n; k++) {
        const number *first = a + k * n;
        bring_pivot(a, b, n, columns, k, k, odd);
        prepare_pivot(a, n, k, pivots, check);
        for (ptrdiff_t i = k + 1; i < n; i++) {
            number *row = a + i * n;
            const number factor = quotient(row[k], &pivots[k]);
            subtract_row(row + k + 1, factor, first + k + 1, n - k - 1);
            subtract_row(b + i * columns, factor, b + k * columns, columns);
        }
    }
}

/* By two columns at a time. */
INLINE void eliminate_pairs(number *a, number *b, ptrdiff_t n, ptrdiff_t columns, divisor *pivots,
                            struct pivot_check *check, vector_mask *odd)
{
    for (ptrdiff_t k = 0; k < n; k += 2) {
        number *first = a + k * n, *second = first + n;
        bring_pivot(a, b, n, columns, k, k, odd);
        find_factors(a, n, k, pivots, check);
        if (k + 1 == n) {
            break;
        }
        for (ptrdiff_t i = k + 1; i < n; i++) {
            subtract_row(a + i * n + k + 1, a[i * n + k], first + k + 1, 1);
        }
        bring_pivot(a, b, n, columns, k + 1, k, odd);
        find_factors(a, n, k + 1, pivots, check);
        const ptrdiff_t rest = n - k - 2;
        subtract_row(second + k + 2, second[k], first + k + 2, rest);
        subtract_row(b + (k + 1) * columns, second[k], b + k * columns, columns);
        for (ptrdiff_t i = k + 2; i < n; i++) {
            number *row = a + i * n;
            const number x = row[k], y = row[k + 1];
            subtract_rows(row + k + 2, x, first + k + 2, y, second + k + 2, rest);
            subtract_rows(b + i * columns, x, b + k * columns, y, b + (k + 1) * columns, columns);
        }
    }
}

/* Makes a upper triangular, and does the same to b, whose rows have `columns` numbers. Below the diagonal
 * of a is anything. Returns where the number of swaps is odd. `by_pairs`: a constant, as the other way would
 * keep more in memory. */
INLINE vector_mask eliminate(number *a, number *b, ptrdiff_t n, ptrdiff_t columns, divisor *pivots,
                             struct pivot_check *check, bool by_pairs)
{
    vector_mask odd = {0};
    start_check(check);
    find_column_sizes(check, a, n);
    if (by_pairs) {
        eliminate_pairs(a, b, n, columns, pivots, check, &odd);
    } else {
        eliminate_columns(a, b, n, columns, pivots, check, &odd);
    }
    if (mask_bits(check->doubtful) != 0) {
        confirm_doubts(check, a, n, 1, n, pivots, false);
    }
    return odd;
}

INLINE void divide_row(number *row, ptrdiff_t columns, const divisor *pivot,
                       struct pivot_check *check)
{
    for (ptrdiff_t j = 0; j < columns; j++) {
        row[j] = quotient(row[j], pivot);
        check->irregular |= irregular_number(row[j]);
    }
}

INLINE void substitute_rows(const number *a, number *b, ptrdiff_t n, ptrdiff_t columns,
                            const divisor *pivots, struct pivot_check *check)
{
    for (ptrdiff_t k = n; k-- > 0;) {
        number *last = b + k * columns;
        divide_row(last, columns, &pivots[k], check);
        for (ptrdiff_t i = 0; i < k; i++) {
            subtract_row(b + i * columns, a[i * n + k], last, columns);
        }
    }
}

/* By two rows at a time. */
INLINE void substitute_pairs(const number *a, number *b, ptrdiff_t n, ptrdiff_t columns,
                             const divisor *pivots, struct pivot_check *check)
{
    ptrdiff_t k = n - 1;
    for (; k > 0; k -= 2) {
        number *last = b + k * columns, *before = last - columns;
        divide_row(last, columns, &pivots[k], check);
        subtract_row(before, a[(k - 1) * n + k], last, columns);
        divide_row(before, columns, &pivots[k - 1], check);
        for (ptrdiff_t i = 0; i < k - 1; i++) {
            subtract_rows(b + i * columns, a[i * n + k], last, a[i * n + k - 1], before, columns);
        }
    }
    if (k == 0) {
        divide_row(b, columns, &pivots[0], check);
    }
}

/* Solves the triangular system that eliminate() leaves. */
INLINE void substitute(const number *a, number *b, ptrdiff_t n, ptrdiff_t columns,
                       const divisor *pivots, struct pivot_check *check, bool by_pairs)
{
    if (by_pairs) {
        substitute_pairs(a, b, n, columns, pivots, check);
    } else {
        substitute_rows(a, b, n, columns, pivots, check);
    }
}

/* op_group() as functions with constant ways, and the one for a stack. */
#define BOTH_WAYS(op)                                                                              \
    static vector_mask op##_by_columns(const struct linalg_stack *stack,                           \
                                       const struct lane_group *group)                             \
    {                                                                                              \
        return op##_group(stack, group, false);                                                    \
    }                                                                                              \
    static vector_mask op##_by_pairs(const struct linalg_stack *stack,                             \
                                     const struct lane_group *group)                               \
    {                                                                                              \
        return op##_group(stack, group, true);                                                     \
    }

#define COMPUTE_GROUPS(stack, op)                                                                  \
    compute_groups(stack, PAIRS_ARE_EXACTER((stack)->n) ? op##_by_pairs : op##_by_columns)

#endif
