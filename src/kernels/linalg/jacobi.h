/* The angles of Jacobi's rotations, and the order of what they find. */
#ifndef NUMC_JACOBI_H
#define NUMC_JACOBI_H

#include "lane_matrices.h"

enum { MOST_SWEEPS = 30 }; /* 4 or 5 are usual; then LAPACK takes over */

/* 1 - a^2 - b^2, which is next to 0. */
INLINE vector distance_from_unit(vector a, vector b)
{
#if FUSED
    return minus_product(minus_product(splat(1), a, a), b, b);
#else /* squares of the upper halves are exact */
    const vector_mask upper = splat_bits((lane_bits)(~0ULL << (MANTISSA_BITS / 2 + 1)));
    const vector x = (vector)((vector_mask)a & upper), y = (vector)((vector_mask)b & upper);
    return splat(1) - x * x - y * y - ((a - x) * (a + x) + (b - y) * (b + y));
#endif
}

/* Of the rotation that makes {{p, amount}, {amount, q}} diagonal, by the smaller of its angles. */
struct plane_angle {
    vector tangent, sine, half; /* tangent of half the angle */
};

/* With the distance of both values r: cos = sqrt((|q - p| + r) / (2 r)), sin = amount / (r cos). */
INLINE struct plane_angle angle_of(vector p, vector q, vector amount)
{
    const vector twice = amount + amount, difference = q - p;
    const vector distance = root(plus_product(twice * twice, difference, difference));
    const vector sum = magnitude(difference) + distance;
    const vector length = root((distance + distance) * sum); /* sum / cos */
    const vector side = select_lanes(difference < splat(0), -twice, twice);
    const vector sine = side / length;
    /* Sine and cosine share the errors of the length: without them, the angle is more exact. */
    const vector rest = distance_from_unit(sine, sum / length);
    return (struct plane_angle){side / sum, plus_product(sine, sine, rest * splat((element)0.5)),
                                side / (sum + length)};
}

/* The size of a matrix is brought to `to`, a power of 2, by one, that squares neither overflow nor
 * underflow. */
struct scaling {
    vector factor;
    vector_mask regular; /* elsewhere the matrix is replaced by zeros, which need no rotation */
};

INLINE struct scaling scale_matrix(number *a, ptrdiff_t n, element to)
{
    vector size = splat(0);
    for (ptrdiff_t i = 0; i < n * n; i++) {
        size += size_of_number(a[i]);
    }
    const vector factor = inverse_power(select_lanes(size > splat(0), size, splat(1))) * splat(to);
    const vector_mask regular = ~(is_irregular(size) | is_irregular(factor)) & (factor > splat(0));
    for (ptrdiff_t i = 0; i < n * n; i++) {
        a[i] = select_numbers(regular, scaled_number(a[i], factor), number_of(splat(0)));
    }
    return (struct scaling){select_lanes(regular, factor, splat(1)), regular};
}

/* Of a matrix of size 1, numbers whose squares are less count as zero. */
#define LEAST_SQUARE (SMALLEST_NORMAL / EPSILON)

INLINE void make_identity(number *a, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n * n; i++) {
        a[i] = number_of(splat(i % (n + 1) == 0 ? 1 : 0));
    }
}

INLINE void swap_columns(vector_mask where, number *a, ptrdiff_t n, ptrdiff_t j)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const number left = a[i * n + j], right = a[i * n + j + 1];
        a[i * n + j] = select_numbers(where, right, left);
        a[i * n + j + 1] = select_numbers(where, left, right);
    }
}

/* Sorts values, and the columns of matrices, either of which may be NULL, with them. */
INLINE void sort_values(vector *values, number *a, number *b, ptrdiff_t n, bool descending)
{
    for (ptrdiff_t i = n - 1; i > 0; i--) {
        for (ptrdiff_t j = 0; j < i; j++) {
            const vector x = values[j], y = values[j + 1];
            const vector_mask swaps = descending ? x < y : x > y;
            values[j] = select_lanes(swaps, y, x);
            values[j + 1] = select_lanes(swaps, x, y);
            if (a != NULL) {
                swap_columns(swaps, a, n, j);
            }
            if (b != NULL) {
                swap_columns(swaps, b, n, j);
            }
        }
    }
}

/* Moves x[i] to x[places[i]], in each lane. */
INLINE void move_lanes(vector *x, const vector_mask *places, vector *scratch, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        scratch[i] = x[i];
    }
    element *to = (element *)x;
    for (ptrdiff_t i = 0; i < n; i++) {
        UNROLL for (int lane = 0; lane < LANES; lane++)
        {
            to[places[i][lane] * LANES + lane] = scratch[i][lane];
        }
    }
}

/* As sort_values(), of many; and where each of them went. */
NOINLINE void sort_lanes(vector *values, vector_mask *places, vector *scratch, ptrdiff_t n,
                         bool descending)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        vector_mask place = {0};
        for (ptrdiff_t j = 0; j < n; j++) {
            const vector before = descending ? -values[j] : values[j];
            const vector here = descending ? -values[i] : values[i];
            place -= j < i ? before <= here : before < here; /* true is -1 */
        }
        places[i] = place;
    }
    move_lanes(values, places, scratch, n);
}

/* Columns go where their values went. */
NOINLINE void move_columns(vector *vectors, ptrdiff_t stride, const vector_mask *places,
                           vector *scratch, ptrdiff_t n)
{
    for (ptrdiff_t row = 0; row < n; row++) {
        move_lanes(vectors + row * stride, places, scratch, n);
    }
}

#endif
