/* Singular values and vectors of small square matrices, by Jacobi's rotations of their columns. */
#ifndef NUMC_ONE_SIDED_JACOBI_H
#define NUMC_ONE_SIDED_JACOBI_H

#include "jacobi.h"

/* What matrices are scaled to, and the least size of their columns: what is smaller, far below rounding errors,
 * counts as zero. Of products of such columns the squares of errors are still normal, in float, too. */
#define SIZE_OF_MATRIX ((element)0x1p28)
#define LEAST_COLUMN (EPSILON * (element)0x1p8)

INLINE vector square_of_column(const number *a, ptrdiff_t n, ptrdiff_t p)
{
    number_sum sum = zero_sum();
    for (ptrdiff_t i = 0; i < n; i++) {
        add_conjugate_product(&sum, a[i * n + p], a[i * n + p]);
    }
    return real_part(number_of_sum(sum));
}

/* The product of column q with the conjugate of column p. */
INLINE number product_of_columns(const number *a, ptrdiff_t n, ptrdiff_t p, ptrdiff_t q)
{
    number_sum sum = zero_sum();
    for (ptrdiff_t i = 0; i < n; i++) {
        add_conjugate_product(&sum, a[i * n + q], a[i * n + p]);
    }
    return number_of_sum(sum);
}

/* Makes columns p and q orthogonal, up to `tolerance`. Returns in which lanes they were not. */
INLINE vector_mask separate_columns(number *a, number *vectors, ptrdiff_t n, ptrdiff_t p,
                                    ptrdiff_t q, element tolerance)
{
    const number x = product_of_columns(a, n, p, q);
    const vector amount = amount_of(x);
    const vector at_p = square_of_column(a, n, p), at_q = square_of_column(a, n, q);
    const vector least = splat(LEAST_COLUMN * LEAST_COLUMN);
    const vector error = splat(tolerance);
    const vector_mask active =
        (at_p > least) & (at_q > least) & (amount * amount > error * at_p * (error * at_q));
    if (mask_bits(active) == 0) {
        return active;
    }
    const struct plane_angle angle = angle_of(at_p, at_q, amount);
    const rotation by = rotation_of(angle.sine, angle.half, x, amount);
    for (ptrdiff_t i = 0; i < n; i++) {
        rotate(&by, active, &a[i * n + p], &a[i * n + q]);
        if (vectors != NULL) {
            rotate(&by, active, &vectors[i * n + p], &vectors[i * n + q]);
        }
    }
    return active;
}

/* Replaces column j by the unit vector that has the least in common with the columns before. */
INLINE void start_column(number *a, ptrdiff_t n, ptrdiff_t j, vector_mask where)
{
    vector least = splat((element)n);
    vector_mask row = {0};
    for (ptrdiff_t i = 0; i < n; i++) {
        number_sum sum = zero_sum();
        for (ptrdiff_t k = 0; k < j; k++) {
            add_conjugate_product(&sum, a[i * n + k], a[i * n + k]);
        }
        const vector common = real_part(number_of_sum(sum));
        const vector_mask less = common < least;
        least = select_lanes(less, common, least);
        row = select_bits(less, splat_bits((lane_bits)i), row);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        const vector unit = select_lanes(row == splat_bits((lane_bits)i), splat(1), splat(0));
        a[i * n + j] = select_numbers(where, number_of(unit), a[i * n + j]);
    }
}

/* Makes column j orthogonal to those before. */
INLINE void subtract_columns(number *a, ptrdiff_t n, ptrdiff_t j, vector_mask where)
{
    for (ptrdiff_t k = 0; k < j; k++) {
        const number share = product_of_columns(a, n, k, j);
        for (ptrdiff_t i = 0; i < n; i++) {
            const number rest = number_minus_product(a[i * n + j], share, a[i * n + k]);
            a[i * n + j] = select_numbers(where, rest, a[i * n + j]);
        }
    }
}

INLINE void divide_column(number *a, ptrdiff_t n, ptrdiff_t j, vector size)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        a[i * n + j] = real_quotient(a[i * n + j], size, splat(1) / size);
    }
}

/* Replaces column j, where it is zero, by one that is orthogonal to those before. */
INLINE void complete_column(number *a, ptrdiff_t n, ptrdiff_t j, vector_mask where)
{
    start_column(a, n, j, where);
    subtract_columns(a, n, j, where);
    subtract_columns(a, n, j, where); /* what the first time has rounded off */
    divide_column(a, n, j, select_lanes(where, root(square_of_column(a, n, j)), splat(1)));
}

/* Replaces a by U; values in descending order, and V. Without vectors, a is anything. Returns which lanes are
 * left to LAPACK. */
INLINE vector_mask decompose(number *a, vector *values, number *vectors, ptrdiff_t n)
{
    const struct scaling scaling = scale_matrix(a, n, SIZE_OF_MATRIX);
    if (vectors != NULL) {
        make_identity(vectors, n);
    }
    vector_mask active = scaling.regular;
    for (int sweep = 0; sweep < MOST_SWEEPS && mask_bits(active) != 0; sweep++) {
        /* What a rotation changes by may be rounded off, again and again. */
        const element tolerance = sweep < MOST_SWEEPS / 2 ? EPSILON : 4 * EPSILON;
        active = (vector_mask){0};
        for (ptrdiff_t p = 0; p < n - 1; p++) {
            for (ptrdiff_t q = p + 1; q < n; q++) {
                active |= separate_columns(a, vectors, n, p, q, tolerance);
            }
        }
    }
    for (ptrdiff_t j = 0; j < n; j++) {
        const vector size = root(square_of_column(a, n, j));
        values[j] = select_lanes(size > splat(LEAST_COLUMN), size, splat(0));
    }
    sort_values(values, vectors != NULL ? a : NULL, vectors, n, true);
    vector_mask left = ~scaling.regular | active;
    for (ptrdiff_t j = 0; j < n; j++) {
        const vector_mask is_zero = values[j] == splat(0);
        if (vectors != NULL) {
            divide_column(a, n, j, select_lanes(is_zero, splat(1), values[j]));
        }
        if (vectors != NULL && mask_bits(is_zero) != 0) {
            complete_column(a, n, j, is_zero);
        }
        values[j] = values[j] / scaling.factor;
        left |= is_irregular(values[j]);
    }
    return left;
}

#endif
