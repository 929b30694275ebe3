/* Matrices to real lower bidiagonal ones, by Householder's reflectors on both sides. */
#ifndef NUMC_BIDIAGONAL_H
#define NUMC_BIDIAGONAL_H

#include "tridiagonal.h"

/* B = L^H A R, with L = H[n-1] ... H[0], whose v[i] is in column i of a, up to the diagonal, and R = H[n-1] ... H[1],
 * whose v[i] is in row i, before the diagonal. */
struct bidiagonalization {
    number *a;                          /* its rows are `stride` apart */
    number *left_factor, *right_factor; /* n numbers each */
    number *work[4], *y;                /* n numbers each */
    vector *diagonal, *next;            /* of B, and below its diagonal */
    ptrdiff_t n, stride;
    bool is_diagonal; /* as all matrices are */
};

/* What the last two reflectors take off A, while rows and columns wait for it: v w + y u^H. */
struct pending_update {
    const number *v, *w, *y, *u;
};

/* Takes the last update off `count` rows from `row` on, `width` numbers each; and adds their part of x^H A. */
INLINE void update_and_multiply(const struct bidiagonalization *r,
                                const struct pending_update *last, ptrdiff_t row, int count,
                                ptrdiff_t width, const number *x, number *x_a)
{
    number at_v[ROWS_AT_ONCE], at_y[ROWS_AT_ONCE], at_x[ROWS_AT_ONCE];
    const ptrdiff_t stride = r->stride;
    number *top = r->a + row * stride;
    UNROLL for (int k = 0; k < count; k++)
    {
        at_v[k] = last->v[row + k];
        at_y[k] = last->y[row + k];
        at_x[k] = x[row + k];
    }
    for (ptrdiff_t j = 0; j < width; j++) {
        number down = number_of(splat(0));
        UNROLL for (int k = 0; k < count; k++)
        {
            number *at = &top[k * stride + j];
            *at = minus_conjugate_product(number_minus_product(*at, at_v[k], last->w[j]), at_y[k],
                                          last->u[j]);
            down = plus_conjugate_product(down, *at, at_x[k]);
        }
        x_a[j] = sum_of_numbers(x_a[j], down);
    }
}

/* To x: column i of A, conjugate, up to the diagonal, without the last update. */
INLINE void update_column(const struct bidiagonalization *r, const struct pending_update *last,
                          ptrdiff_t i, number *x)
{
    for (ptrdiff_t row = 0; row <= i; row++) {
        const number at = r->a[row * r->stride + i];
        x[row] = conjugate(minus_conjugate_product(
            number_minus_product(at, last->v[row], last->w[i]), last->y[row], last->u[i]));
    }
}

/* Reflects column i. The reflector takes v w off A, but for its last row, which is brought up to date. */
INLINE void reflect_left(const struct bidiagonalization *r, const struct pending_update *last,
                         ptrdiff_t i, number *v, number *w)
{
    const ptrdiff_t stride = r->stride;
    update_column(r, last, i, v);
    r->diagonal[i] = make_reflector(v, i + 1, &r->left_factor[i]);
    for (ptrdiff_t j = 0; j < i; j++) {
        w[j] = number_of(splat(0));
    }
    ptrdiff_t row = 0;
    for (; row < (i + 1) % ROWS_AT_ONCE; row++) {
        update_and_multiply(r, last, row, 1, i, v, w);
    }
    for (; row <= i; row += ROWS_AT_ONCE) {
        update_and_multiply(r, last, row, ROWS_AT_ONCE, i, v, w);
    }
    for (row = 0; row <= i; row++) {
        r->a[row * stride + i] = v[row];
    }
    const number factor = conjugate(r->left_factor[i]);
    number *x = r->a + i * stride;
    for (ptrdiff_t j = 0; j < i; j++) {
        w[j] = product(factor, w[j]);
        x[j] = number_difference(x[j], w[j]);
    }
}

/* y = factor * (A u - v share), of `count` rows. */
INLINE void multiply_rows(const struct bidiagonalization *r, ptrdiff_t row, int count,
                          ptrdiff_t width, const number *u, const number *v, number share,
                          number factor)
{
    const ptrdiff_t stride = r->stride;
    const number *top = r->a + row * stride;
    number sum[ROWS_AT_ONCE], part[ROWS_AT_ONCE];
    UNROLL for (int k = 0; k < count; k++)
    {
        sum[k] = number_of(splat(0));
    }
    for (ptrdiff_t start = 0; start < width; start += SUMMED_AT_ONCE) {
        UNROLL for (int k = 0; k < count; k++)
        {
            part[k] = number_of(splat(0));
        }
        for (ptrdiff_t j = start; j < end_of_sum(start, width); j++) {
            UNROLL for (int k = 0; k < count; k++)
            {
                part[k] = number_plus_product(part[k], top[k * stride + j], u[j]);
            }
        }
        UNROLL for (int k = 0; k < count; k++)
        {
            sum[k] = sum_of_numbers(sum[k], part[k]);
        }
    }
    UNROLL for (int k = 0; k < count; k++)
    {
        r->y[row + k] = product(factor, number_minus_product(sum[k], v[row + k], share));
    }
}

/* Reflects row i. The reflector takes y u^H off A, from which v w has not been taken yet. */
INLINE void reflect_right(const struct bidiagonalization *r, ptrdiff_t i, const number *v,
                          const number *w)
{
    number *u = r->a + i * r->stride;
    r->next[i - 1] = make_reflector(u, i, &r->right_factor[i]);
    number share = number_of(splat(0));
    for (ptrdiff_t j = 0; j < i; j++) {
        share = number_plus_product(share, w[j], u[j]);
    }
    const number factor = r->right_factor[i];
    ptrdiff_t row = 0;
    for (; row < i % ROWS_AT_ONCE; row++) {
        multiply_rows(r, row, 1, i, u, v, share, factor);
    }
    for (; row < i; row += ROWS_AT_ONCE) {
        multiply_rows(r, row, ROWS_AT_ONCE, i, u, v, share, factor);
    }
}

/* From the last column and row to the first. Goes through A twice for each: what both reflectors take off it comes with
 * the product for the next. */
NOINLINE void reduce_both_sides(const struct bidiagonalization *r)
{
    number *v = r->work[0], *w = r->work[1], *next_v = r->work[2], *next_w = r->work[3];
    for (ptrdiff_t j = 0; j < r->n; j++) {
        v[j] = w[j] = r->y[j] = number_of(splat(0));
    }
    const number *u = v;
    for (ptrdiff_t i = r->n - 1; i >= 0; i--) {
        const struct pending_update last = {v, w, r->y, u};
        reflect_left(r, &last, i, next_v, next_w);
        if (i > 0) {
            reflect_right(r, i, next_v, next_w);
            u = r->a + i * r->stride;
        }
        number *const last_v = v, *const last_w = w;
        v = next_v;
        w = next_w;
        next_v = last_v;
        next_w = last_w;
    }
}

/* Of diagonal matrices: reflectors of one number, which make it real. */
NOINLINE void reflect_diagonal(const struct bidiagonalization *r)
{
    for (ptrdiff_t i = 0; i < r->n; i++) {
        number *v = r->a + i * (r->stride + 1);
        *v = conjugate(*v);
        r->diagonal[i] = make_reflector(v, 1, &r->left_factor[i]);
        r->next[i] = splat(0);
    }
}

/* From `from`, n numbers a row. */
NOINLINE void make_bidiagonal(struct bidiagonalization *r, const number *from)
{
    vector rest = splat(0);
    for (ptrdiff_t i = 0; i < r->n; i++) {
        for (ptrdiff_t j = 0; j < r->n; j++) {
            const number x = from[i * r->n + j];
            r->a[i * r->stride + j] = x;
            rest += i == j ? splat(0) : size_of_number(x);
        }
    }
    r->is_diagonal = mask_bits(rest != splat(0)) == 0;
    if (r->is_diagonal) {
        reflect_diagonal(r);
    } else {
        reduce_both_sides(r);
    }
}

/* L = H[n-1] ... H[0], each of which scales a row. */
INLINE void scale_rows(const struct bidiagonalization *r, number *x)
{
    for (ptrdiff_t i = 0; i < r->n; i++) {
        number *row = x + i * r->stride;
        for (ptrdiff_t j = 0; j < r->n; j++) {
            row[j] = number_minus_product(row[j], r->left_factor[i], row[j]);
        }
    }
}

/* Replaces x by L x and y by R y; x and y are reals in rows `stride` apart, and become numbers without gaps. */
NOINLINE void apply_both_sides(const struct bidiagonalization *r, number *x, number *y)
{
    const ptrdiff_t n = r->n, stride = r->stride;
    widen_vectors(x, n, stride);
    widen_vectors(y, n, stride);
    if (r->is_diagonal) {
        scale_rows(r, x);
    } else {
        const struct reflectors right = {r->a + stride, r->right_factor + 1, n - 1, stride};
        apply_reflectors(&right, y, n);
        transpose_numbers(r->a, n, stride);
        const struct reflectors left = {r->a, r->left_factor, n, stride};
        apply_reflectors(&left, x, n);
    }
    close_rows(x, n, stride);
    close_rows(y, n, stride);
}

#endif
