/* qr_r_raw, qr_reduced and qr_complete, by Householder's reflections I - tau v v^H, with LAPACK's signs: the first
 * number of v is 1, and the others lie below the diagonal. */
#include "lane_matrices.h"

/* Up to here LAPACK is slower, also where other matrices than square ones have as many numbers. */
enum { MOST_N_OF_REFLECTIONS = LANE_BYTES == 16 ? 16 : PARTS == 1 ? 32 : 24 };

/* Whatever its shape: as many numbers as the largest square one has. */
static size_t one_matrix(ptrdiff_t rows)
{
    (void)rows;
    return sizeof(number[MOST_N_OF_REFLECTIONS][MOST_N_OF_REFLECTIONS]);
}

/* Columns that are reflected together: enough sums to hide the latency of one, few enough for registers. */
enum { REFLECTED_AT_ONCE = 4 / PARTS };

/* Of a column: LAPACK scales those whose squares lose digits below the range, or are near its end. */
#define LEAST_REFLECTED_SQUARE ((element)0x1p-900)
#define MOST_REFLECTED_SQUARE ((element)0x1p1000)

/* A matrix in the workspace, and how many numbers its rows have. */
struct lane_rows {
    number *at;
    ptrdiff_t step;
};

/* Without fused products, those with one rounding to the size of x are more exact. */
INLINE number reflected(number x, number v, number share)
{
    return FUSED ? number_minus_product(x, v, share) : number_difference(x, product(v, share));
}

/* Takes factor * v * (v^H x) off `width` columns from column j on; v is that of column k. */
INLINE void reflect_together(ptrdiff_t k, ptrdiff_t m, number factor, const struct lane_rows *a,
                             ptrdiff_t j, int width)
{
    number_sum sums[REFLECTED_AT_ONCE];
    number shares[REFLECTED_AT_ONCE];
    const ptrdiff_t step = a->step;
    number *first = a->at + k * step, *const end = a->at + m * step;
    UNROLL for (int c = 0; c < width; c++)
    {
        sums[c] = zero_sum();
    }
    for (const number *row = first + step; row < end; row += step) {
        const number v = row[k];
        UNROLL for (int c = 0; c < width; c++)
        {
            add_conjugate_product(&sums[c], row[j + c], v);
        }
    }
    UNROLL for (int c = 0; c < width; c++)
    {
        shares[c] = product(factor, sum_of_numbers(number_of_sum(sums[c]), first[j + c]));
        first[j + c] = number_difference(first[j + c], shares[c]);
    }
    for (number *row = first + step; row < end; row += step) {
        const number v = row[k];
        UNROLL for (int c = 0; c < width; c++)
        {
            row[j + c] = reflected(row[j + c], v, shares[c]);
        }
    }
}

/* All columns after column k. */
static void reflect(ptrdiff_t k, ptrdiff_t m, number factor, const struct lane_rows *a,
                    ptrdiff_t columns)
{
    ptrdiff_t j = k + 1;
    for (; j + REFLECTED_AT_ONCE <= columns; j += REFLECTED_AT_ONCE) {
        reflect_together(k, m, factor, a, j, REFLECTED_AT_ONCE);
    }
    if (REFLECTED_AT_ONCE > 2 && j + 2 <= columns) {
        reflect_together(k, m, factor, a, j, 2);
        j += 2;
    }
    if (j < columns) {
        reflect_together(k, m, factor, a, j, 1);
    }
}

/* Replaces column k below the diagonal by v, and its number there by that of R; returns tau. Where there is
 * nothing to reflect, tau is 0, and the sign of R's number is that of the matrix. */
INLINE number make_reflection(const struct lane_rows *a, ptrdiff_t m, ptrdiff_t k,
                              vector_mask *left)
{
    number *column = a->at + k * a->step + k;
    const number top = *column;
    number_sum even = zero_sum(), odd = zero_sum();
    vector rest = magnitude(imaginary_part(top));
    add_conjugate_product(&even, top, top);
    for (ptrdiff_t i = 1; i < m - k; i++) {
        const number x = column[i * a->step];
        add_conjugate_product(i % 2 == 0 ? &even : &odd, x, x);
        rest += size_of_number(x);
    }
    const vector_mask reflects = rest != splat(0);
    const vector square = real_part(number_of_sum(added_sums(&even, &odd)));
    *left |= reflects &
             ~((square > splat(LEAST_REFLECTED_SQUARE)) & (square < splat(MOST_REFLECTED_SQUARE)));
    const vector size = root(square);
    const vector_mask sign = ~(vector_mask)real_part(top) & (vector_mask)splat((element)-0.0);
    const vector diagonal = (vector)((vector_mask)size | sign);
    const number length = number_difference(top, number_of(diagonal));
    const divisor by = divisor_of(length);
    for (ptrdiff_t i = 1; i < m - k; i++) {
        const number x = column[i * a->step];
        column[i * a->step] = select_numbers(reflects, exact_quotient(x, &by), x);
    }
    *column = select_numbers(reflects, number_of(diagonal), top);
    const number tau = real_quotient(length, -diagonal, splat(-1) / diagonal);
    return select_numbers(reflects, tau, number_of(splat(0)));
}

/* Lanes with numbers that are NaN or infinite. */
INLINE vector_mask has_nonfinite(const number *a, ptrdiff_t count)
{
    vector sum = splat(0);
    for (ptrdiff_t i = 0; i < count; i++) {
        sum = plus_product(sum, size_of_number(a[i]), splat(0));
    }
    return sum != splat(0);
}

/* tau, as a matrix of one row. */
INLINE struct linalg_operand row_of(const struct linalg_operand *x)
{
    struct linalg_operand row = *x;
    row.column_step = x->row_step;
    return row;
}

/* Reads the lanes of `left` again. */
static void restore_lanes(const struct linalg_stack *stack, const struct lane_group *group,
                          vector_mask left, const struct lane_rows *a)
{
    struct linalg_operand row = stack->operand[0];
    number before[1];
    for (ptrdiff_t i = 0; i < stack->n; i++) {
        for (ptrdiff_t j = 0; j < stack->columns; j++) {
            load_numbers(&row, group, 1, 1, before);
            number *x = a->at + i * a->step + j;
            *x = select_numbers(left, before[0], *x);
            row.data += row.column_step;
        }
        row.data += row.row_step - stack->columns * row.column_step;
    }
}

/* NumPy's gufunc computes R and the v in place: what is left must stay as it was. */
static vector_mask reflections_group(const struct linalg_stack *stack,
                                     const struct lane_group *group)
{
    const ptrdiff_t m = stack->n, n = stack->columns, least = m < n ? m : n;
    const struct lane_rows a = {(number *)stack->workspace, n};
    number taus[MOST_N_OF_REFLECTIONS];
    vector_mask left = {0};
    load_numbers(&stack->operand[0], group, m, n, a.at);
    for (ptrdiff_t k = 0; k < least; k++) {
        taus[k] = make_reflection(&a, m, k, &left);
        reflect(k, m, conjugate(taus[k]), &a, n);
    }
    left |= has_nonfinite(a.at, m * n);
    if (mask_bits(left) != 0) {
        restore_lanes(stack, group, left, &a);
    }
    const struct linalg_operand tau = row_of(&stack->operand[1]);
    store_numbers(&stack->operand[0], group, m, n, a.at);
    store_numbers(&tau, group, 1, least, taus);
    return left;
}

static uint64_t qr_r_raw(const struct linalg_stack *stack)
{
    return compute_groups(stack, reflections_group);
}

/* Moves rows of so many numbers apart, to those of q; the numbers between are the identity's. */
static void widen_rows(const struct lane_rows *q, ptrdiff_t rows, ptrdiff_t columns)
{
    for (ptrdiff_t i = rows; i-- > 0;) {
        for (ptrdiff_t j = q->step; j-- > 0;) {
            q->at[i * q->step + j] =
                j < columns ? q->at[i * columns + j] : number_of(splat(i == j ? 1 : 0));
        }
    }
}

/* Replaces the v by Q, from the last reflection to the first. */
static void make_orthogonal(const struct lane_rows *q, const number *taus, ptrdiff_t m,
                            ptrdiff_t reflections)
{
    for (ptrdiff_t k = reflections; k-- > 0;) {
        const number factor = number_difference(number_of(splat(0)), taus[k]);
        reflect(k, m, taus[k], q, q->step);
        for (ptrdiff_t i = 0; i < k; i++) {
            q->at[i * q->step + k] = number_of(splat(0));
        }
        q->at[k * q->step + k] = number_difference(number_of(splat(1)), taus[k]);
        for (ptrdiff_t i = k + 1; i < m; i++) {
            q->at[i * q->step + k] = product(factor, q->at[i * q->step + k]);
        }
    }
}

INLINE vector_mask orthogonal_group(const struct linalg_stack *stack,
                                    const struct lane_group *group, bool complete)
{
    const ptrdiff_t m = stack->n, least = m < stack->columns ? m : stack->columns;
    const struct lane_rows q = {(number *)stack->workspace, complete ? m : least};
    const struct linalg_operand tau = row_of(&stack->operand[1]);
    number taus[MOST_N_OF_REFLECTIONS];
    load_numbers(&stack->operand[0], group, m, least, q.at);
    load_numbers(&tau, group, 1, least, taus);
    widen_rows(&q, m, least);
    make_orthogonal(&q, taus, m, least);
    const vector_mask left = has_nonfinite(q.at, m * q.step);
    store_numbers(&stack->operand[2], group, m, q.step, q.at);
    return left;
}

static vector_mask reduced_group(const struct linalg_stack *stack, const struct lane_group *group)
{
    return orthogonal_group(stack, group, false);
}

static uint64_t qr_reduced(const struct linalg_stack *stack)
{
    return compute_groups(stack, reduced_group);
}

static vector_mask complete_group(const struct linalg_stack *stack, const struct lane_group *group)
{
    return orthogonal_group(stack, group, true);
}

static uint64_t qr_complete(const struct linalg_stack *stack)
{
    return compute_groups(stack, complete_group);
}
