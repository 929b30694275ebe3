/* Which pivots may be nothing but rounding errors: LAPACK, which rounds otherwise, may find those zero. */
#ifndef NUMC_PIVOT_CHECK_H
#define NUMC_PIVOT_CHECK_H

#include "lane_matrices.h"

/* Rounding errors of a column, in units of EPSILON times its size, that may be all there is of a pivot. Of
 * millions of singular matrices LAPACK finds one singular whose pivot is here above 0.5. */
enum { NOISE_EPSILONS = 8 };

#define MOST_NOISE splat(1 / (NOISE_EPSILONS * EPSILON))

/* A pivot is what is left of its column once its share of the columns before is taken off: with their
 * errors. So it is doubtful if its own loss, the column's size over that of the pivot, times the most
 * that one before has lost, is as large as 1 / EPSILON. Few are; for them confirm_doubts() takes the actual shares. */
struct pivot_check {
    vector column_sizes[MOST_N];
    vector most_lost; /* by the columns so far */
    vector_mask doubtful;
    vector_mask irregular; /* lanes that are left to LAPACK, for that reason or another */
};

INLINE void start_check(struct pivot_check *check)
{
    check->most_lost = splat(1);
    check->doubtful = check->irregular = (vector_mask){0};
}

INLINE void check_pivot(struct pivot_check *check, vector lost)
{
    check->doubtful |= ~(lost * check->most_lost < MOST_NOISE); /* or NaN */
    check->most_lost = select_lanes(lost > check->most_lost, lost, check->most_lost);
}

/* `triangle`: U, with steps between its rows and columns, or the transpose of L. */
INLINE void confirm_doubts(struct pivot_check *check, const number *triangle, ptrdiff_t row,
                           ptrdiff_t column, ptrdiff_t n, const divisor *pivots, bool is_cholesky)
{
    vector_mask singular = {0};
    for (ptrdiff_t k = 0; k < n; k++) {
        number share[MOST_N];
        vector errors = check->column_sizes[k];
        for (ptrdiff_t j = k; j-- > 0;) {
            number rest = triangle[j * row + k * column];
            for (ptrdiff_t i = j + 1; i < k; i++) {
                rest = number_minus_product(rest, triangle[j * row + i * column], share[i]);
            }
            share[j] = product(rest, pivots[j].reciprocal);
            errors += size_of_number(share[j]) * check->column_sizes[j];
        }
        const vector lost = errors * size_of_number(pivots[k].reciprocal);
        singular |= ~((is_cholesky ? lost * lost : lost) < MOST_NOISE);
    }
    check->irregular |= check->doubtful & singular;
}

#endif
