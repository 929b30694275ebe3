/* Hermitian matrices to real tridiagonal ones, by Householder's reflectors, and back. */
#ifndef NUMC_TRIDIAGONAL_H
#define NUMC_TRIDIAGONAL_H

#include "jacobi.h"

/* ROWS_AT_ONCE, COLUMNS_AT_ONCE: what is loaded of another operand serves all of them. SUMMED_AT_ONCE: terms
 * that are summed by themselves, for smaller errors. */
enum {
    ROWS_AT_ONCE = PARTS == 1 ? 4 : 2,
    COLUMNS_AT_ONCE = PARTS == 1 ? 4 : 2,
    SUMMED_AT_ONCE = 8
};

/* T = Q^H A Q, with Q = H[n-1] ... H[1] and H[i] = 1 - factor[i] v v^H, whose v is in row i of a, before the
 * diagonal. Of A, what is above the diagonal is not read. */
struct householder {
    number *a;                /* its rows are `stride` apart */
    number *factor, *work[2]; /* n numbers each */
    vector *diagonal, *next;  /* of T, and beside its diagonal */
    ptrdiff_t n, stride;
};

/* Rows that are a multiple of the cache's sets apart would share few of them; and what is loaded waits for what was
 * just stored 4096 bytes away: there, in the row beside. */
INLINE ptrdiff_t stride_of_rows(ptrdiff_t n)
{
    return n < 56 ? n | 1 : n <= 68 ? 69 : n | 1;
}

INLINE ptrdiff_t end_of_sum(ptrdiff_t start, ptrdiff_t end)
{
    return end - start < SUMMED_AT_ONCE ? end : start + SUMMED_AT_ONCE;
}

/* Sums of every fourth term. */
struct partial_sums {
    number_sum of[4];
};

INLINE struct partial_sums zero_sums(void)
{
    return (struct partial_sums){{zero_sum(), zero_sum(), zero_sum(), zero_sum()}};
}

INLINE number total_of(const struct partial_sums *sums)
{
    const number_sum even = added_sums(&sums->of[0], &sums->of[2]);
    const number_sum odd = added_sums(&sums->of[1], &sums->of[3]);
    return number_of_sum(added_sums(&even, &odd));
}

/* Makes `count` numbers, row x, the v of the reflector 1 - factor v v^H after which of x only the last number is
 * left, which is returned: a real one. */
INLINE vector make_reflector(number *v, ptrdiff_t count, number *factor)
{
    struct partial_sums sums = zero_sums();
    for (ptrdiff_t j = 0; j < count - 1; j++) {
        add_conjugate_product(&sums.of[j & 3], v[j], v[j]);
    }
    const vector others = real_part(total_of(&sums));
    const number last = conjugate(v[count - 1]);
    const vector real = real_part(last), rest = others + imaginary_square(last);
    const vector_mask active = rest > LEAST_SQUARE;
    const vector size = root(select_lanes(active, plus_product(rest, real, real), splat(1)));
    const vector left = select_lanes(real > splat(0), -size, size);
    const number difference = select_numbers(active, minus_real(last, left), number_of(splat(1)));
    const divisor by = divisor_of(difference);
    const vector scale = select_lanes(active, splat(1), splat(0));
    for (ptrdiff_t j = 0; j < count - 1; j++) {
        v[j] = scaled_number(quotient(conjugate(v[j]), &by), scale);
    }
    v[count - 1] = number_of(splat(1));
    *factor = scaled_number(difference, -scale / left);
    return select_lanes(active, left, real);
}

/* Takes v w^H + w v^H, of the reflector before, off `count` rows of A from `row` on; and adds their part of
 * the product of A and x. */
INLINE void update_rows(const struct householder *r, ptrdiff_t row, int count, const number *v,
                        const number *w, const number *x, number *a_x)
{
    number sum[ROWS_AT_ONCE], at_v[ROWS_AT_ONCE], at_w[ROWS_AT_ONCE], at_x[ROWS_AT_ONCE];
    const ptrdiff_t stride = r->stride;
    number *top = r->a + row * stride;
    UNROLL for (int k = 0; k < count; k++)
    {
        sum[k] = number_of(splat(0));
        at_v[k] = v[row + k];
        at_w[k] = w[row + k];
        at_x[k] = x[row + k];
    }
    for (ptrdiff_t start = 0; start < row; start += SUMMED_AT_ONCE) {
        number part[ROWS_AT_ONCE];
        UNROLL for (int k = 0; k < count; k++)
        {
            part[k] = number_of(splat(0));
        }
        for (ptrdiff_t j = start; j < end_of_sum(start, row); j++) {
            number down = number_of(splat(0));
            UNROLL for (int k = 0; k < count; k++)
            {
                number *at = &top[k * stride + j];
                const number left = minus_conjugate_product(
                    minus_conjugate_product(*at, at_v[k], w[j]), at_w[k], v[j]);
                *at = left;
                part[k] = number_plus_product(part[k], left, x[j]);
                down = plus_conjugate_product(down, at_x[k], left);
            }
            a_x[j] = sum_of_numbers(a_x[j], down);
        }
        UNROLL for (int k = 0; k < count; k++)
        {
            sum[k] = sum_of_numbers(sum[k], part[k]);
        }
    }
    UNROLL for (int k = 0; k < count; k++)
    {
        UNROLL for (int j = 0; j <= k; j++)
        {
            number *at = &top[k * stride + row + j];
            const number left = minus_conjugate_product(
                minus_conjugate_product(*at, at_v[k], at_w[j]), at_w[k], at_v[j]);
            *at = j < k ? left : number_of(real_part(left));
            sum[k] = number_plus_product(sum[k], *at, at_x[j]);
            if (j < k) {
                sum[j] = plus_conjugate_product(sum[j], at_x[k], left);
            }
        }
    }
    UNROLL for (int k = 0; k < count; k++)
    {
        a_x[row + k] = sum[k];
    }
}

/* H^H A H = A - v w^H - w v^H. Replaces x, which is A v, by w. */
INLINE void make_update(number *x, const number *v, number factor, ptrdiff_t count)
{
    struct partial_sums sums = zero_sums();
    for (ptrdiff_t j = 0; j < count; j++) {
        x[j] = product(factor, x[j]);
        add_conjugate_product(&sums.of[j & 3], v[j], x[j]);
    }
    const number half = scaled_number(factor, splat((element)0.5));
    const number share = product(half, total_of(&sums));
    for (ptrdiff_t j = 0; j < count; j++) {
        x[j] = number_minus_product(x[j], share, v[j]);
    }
}

/* Takes the last update off what the next reflector is made of. */
INLINE void update_row(const struct householder *r, ptrdiff_t row, const number *v, const number *w)
{
    number *at = r->a + row * r->stride;
    for (ptrdiff_t j = 0; j <= row; j++) {
        at[j] = minus_conjugate_product(minus_conjugate_product(at[j], v[row], w[j]), w[row], v[j]);
    }
}

/* Goes through A once for each reflector: the update of the last one comes with the product for the next. */
NOINLINE void reduce_matrix(const struct householder *r)
{
    number *w = r->work[0], *next_w = r->work[1];
    for (ptrdiff_t j = 0; j < r->n; j++) {
        w[j] = number_of(splat(0));
    }
    const number *v = w;
    for (ptrdiff_t i = r->n - 1; i > 0; i--) {
        update_row(r, i, v, w);
        number *x = r->a + i * r->stride;
        r->diagonal[i] = real_part(x[i]);
        r->next[i - 1] = make_reflector(x, i, &r->factor[i]);
        ptrdiff_t row = 0;
        for (; row < i % ROWS_AT_ONCE; row++) {
            update_rows(r, row, 1, v, w, x, next_w);
        }
        for (; row < i; row += ROWS_AT_ONCE) {
            update_rows(r, row, ROWS_AT_ONCE, v, w, x, next_w);
        }
        make_update(next_w, x, r->factor[i], i);
        number *last_w = w;
        w = next_w;
        next_w = last_w;
        v = x;
    }
    update_row(r, 0, v, w);
    r->diagonal[0] = real_part(r->a[0]);
}

/* H[0] to H[count-1]: the v of H[k] is in row k, k + 1 numbers of which the last is 1. */
struct reflectors {
    const number *rows, *factor;
    ptrdiff_t count, stride;
};

/* H[count-1] ... H[0] times `width` columns of z. Goes through them once for each: what the last one takes off comes
 * with the product for the next. */
INLINE void reflect_columns(const struct reflectors *r, number *z, int width)
{
    const ptrdiff_t stride = r->stride;
    number share[COLUMNS_AT_ONCE], sum[COLUMNS_AT_ONCE], part[COLUMNS_AT_ONCE];
    UNROLL for (int k = 0; k < width; k++)
    {
        share[k] = number_of(splat(0));
    }
    for (ptrdiff_t i = 0; i <= r->count; i++) {
        const number *next = r->rows + (i < r->count ? i : i - 1) * stride;
        const number *last = i > 0 ? r->rows + (i - 1) * stride : next;
        UNROLL for (int k = 0; k < width; k++)
        {
            sum[k] = number_of(splat(0));
        }
        for (ptrdiff_t start = 0; start < i; start += SUMMED_AT_ONCE) {
            UNROLL for (int k = 0; k < width; k++)
            {
                part[k] = number_of(splat(0));
            }
            for (ptrdiff_t j = start; j < end_of_sum(start, i); j++) {
                UNROLL for (int k = 0; k < width; k++)
                {
                    number *at = &z[j * stride + k];
                    *at = number_minus_product(*at, share[k], last[j]);
                    part[k] = plus_conjugate_product(part[k], *at, next[j]);
                }
            }
            UNROLL for (int k = 0; k < width; k++)
            {
                sum[k] = sum_of_numbers(sum[k], part[k]);
            }
        }
        if (i == r->count) {
            break;
        }
        UNROLL for (int k = 0; k < width; k++)
        {
            share[k] = product(sum_of_numbers(sum[k], z[i * stride + k]), r->factor[i]);
        }
    }
}

/* Replaces `columns` columns of z by Q z. */
NOINLINE void apply_reflectors(const struct reflectors *r, number *z, ptrdiff_t columns)
{
    ptrdiff_t j = 0;
    for (; j < columns % COLUMNS_AT_ONCE; j++) {
        reflect_columns(r, z + j, 1);
    }
    for (; j < columns; j += COLUMNS_AT_ONCE) {
        reflect_columns(r, z + j, COLUMNS_AT_ONCE);
    }
}

/* Of reals in rows `stride` apart, and in the same place. */
INLINE void widen_vectors(number *z, ptrdiff_t n, ptrdiff_t stride)
{
    const vector *from = (const vector *)z;
    for (ptrdiff_t i = n * stride - 1; i >= 0; i--) {
        z[i] = number_of(from[i]);
    }
}

/* Makes zeros positive: their signs may depend on other lanes, which are diagonal or not. */
INLINE void close_rows(number *z, ptrdiff_t n, ptrdiff_t stride)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            z[i * n + j] = sum_of_numbers(z[i * stride + j], number_of(splat(0)));
        }
    }
}

#endif
