/* One step towards the exact eigenvectors of a tridiagonal matrix, of which the rounding errors of many rotations have
 * led away. */
#ifndef NUMC_REFINEMENT_H
#define NUMC_REFINEMENT_H

#include "tridiagonal.h"

enum { PAIRS_AT_ONCE = 2, PANEL = 4 };

/* T Z = Z W, but for errors: Z is replaced by Z (1 + E). */
struct refinement {
    const vector *diagonal, *next; /* of T, and beside its diagonal */
    vector *z, *e;                 /* rows are `stride` apart */
    const vector *values;
    vector *scratch;  /* PANEL * n */
    vector most_turn; /* the sum of whose squares is a rounding error */
    ptrdiff_t n, stride;
};

/* To scratch: columns `column` and on of T Z - Z W. */
INLINE void find_residuals(const struct refinement *r, ptrdiff_t column, int count)
{
    const ptrdiff_t n = r->n;
    for (ptrdiff_t i = 0; i < n; i++) {
        const vector *at = r->z + i * r->stride + column;
        const vector *above = i > 0 ? at - r->stride : at, *below = i < n - 1 ? at + r->stride : at;
        const vector up = i > 0 ? r->next[i - 1] : splat(0);
        const vector down = i < n - 1 ? r->next[i] : splat(0);
        UNROLL for (int k = 0; k < count; k++)
        {
            const vector beside = plus_product(up * above[k], down, below[k]);
            r->scratch[i * PANEL + k] =
                plus_product(beside, r->diagonal[i] - r->values[column + k], at[k]);
        }
    }
}

/* E of columns i and j, i <= j, from z_i^T (T z_j - w_j z_j) and z_i^T z_j. */
INLINE void set_correction(const struct refinement *r, ptrdiff_t i, ptrdiff_t j, vector residual,
                           vector common)
{
    if (i == j) {
        r->e[i * r->stride + j] = (splat(1) - common) * splat((element)0.5);
        return;
    }
    const vector gap = r->values[j] - r->values[i];
    const vector_mask apart = magnitude(residual) < r->most_turn * magnitude(gap);
    const vector turn = residual / select_lanes(apart, gap, splat(1));
    const vector upper = select_lanes(apart, turn, common * splat((element)-0.5));
    r->e[i * r->stride + j] = upper;
    r->e[j * r->stride + i] = -(upper + common);
}

INLINE void correct_pairs(const struct refinement *r, ptrdiff_t i, int rows, ptrdiff_t j,
                          int columns)
{
    vector residual[PAIRS_AT_ONCE][PANEL], common[PAIRS_AT_ONCE][PANEL];
    UNROLL for (int k = 0; k < rows * columns; k++)
    {
        residual[k / columns][k % columns] = common[k / columns][k % columns] = splat(0);
    }
    for (ptrdiff_t row = 0; row < r->n; row++) {
        const vector *z = r->z + row * r->stride, *left = r->scratch + row * PANEL;
        UNROLL for (int p = 0; p < rows; p++)
        {
            UNROLL for (int k = 0; k < columns; k++)
            {
                residual[p][k] = plus_product(residual[p][k], z[i + p], left[k]);
                common[p][k] = plus_product(common[p][k], z[i + p], z[j + k]);
            }
        }
    }
    UNROLL for (int p = 0; p < rows; p++)
    {
        UNROLL for (int k = 0; k < columns; k++)
        {
            if (i + p <= j + k) {
                set_correction(r, i + p, j + k, residual[p][k], common[p][k]);
            }
        }
    }
}

INLINE void correct_panel(const struct refinement *r, ptrdiff_t j, int columns)
{
    find_residuals(r, j, columns);
    ptrdiff_t i = 0;
    for (; i + PAIRS_AT_ONCE <= j + columns; i += PAIRS_AT_ONCE) {
        correct_pairs(r, i, PAIRS_AT_ONCE, j, columns);
    }
    for (; i < j + columns; i++) {
        correct_pairs(r, i, 1, j, columns);
    }
}

/* Adds Z E to `rows` rows of Z. */
INLINE void correct_rows(const struct refinement *r, vector *rows, int count)
{
    const ptrdiff_t n = r->n, stride = r->stride;
    for (ptrdiff_t j = 0; j < n; j++) {
        UNROLL for (int k = 0; k < count; k++)
        {
            r->scratch[j * PANEL + k] = rows[k * stride + j];
        }
    }
    ptrdiff_t width;
    for (ptrdiff_t j = 0; j < n; j += width) {
        width = n - j < PANEL ? 1 : PANEL;
        vector sum[PANEL][PANEL];
        UNROLL for (int k = 0; k < PANEL * PANEL; k++)
        {
            sum[k / PANEL][k % PANEL] = splat(0);
        }
        const vector *e = r->e + j;
        for (ptrdiff_t i = 0; i < n && width == PANEL; i++, e += stride) {
            UNROLL for (int k = 0; k < count; k++)
            {
                UNROLL for (int column = 0; column < PANEL; column++)
                {
                    sum[k][column] =
                        plus_product(sum[k][column], r->scratch[i * PANEL + k], e[column]);
                }
            }
        }
        for (ptrdiff_t i = 0; i < n && width == 1; i++, e += stride) {
            UNROLL for (int k = 0; k < count; k++)
            {
                sum[k][0] = plus_product(sum[k][0], r->scratch[i * PANEL + k], e[0]);
            }
        }
        UNROLL for (int k = 0; k < count; k++)
        {
            UNROLL for (int column = 0; column < PANEL; column++)
            {
                if (column < width) {
                    rows[k * stride + j + column] += sum[k][column];
                }
            }
        }
    }
}

NOINLINE void refine_vectors(struct refinement *r)
{
    r->most_turn = root(splat(EPSILON)) * splat((element)0.125);
    ptrdiff_t j = 0;
    for (; j < r->n % PANEL; j++) {
        correct_panel(r, j, 1);
    }
    for (; j < r->n; j += PANEL) {
        correct_panel(r, j, PANEL);
    }
    for (j = 0; j < r->n % PANEL; j++) {
        correct_rows(r, r->z + j * r->stride, 1);
    }
    for (; j < r->n; j += PANEL) {
        correct_rows(r, r->z + j * r->stride, PANEL);
    }
}

#endif
