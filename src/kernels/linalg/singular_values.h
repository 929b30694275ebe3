/* svd of square matrices: by Jacobi's rotations of their columns where they are small, otherwise by QR iterations of a
 * bidiagonal matrix. */
#include "bidiagonal.h"
#include "one_sided_jacobi.h"
#include "qr_iteration.h"

/* Up to these orders LAPACK is slower, whatever the matrices. Up to the last of them Jacobi's rotations are not slower
 * than QR iterations, and, where no vectors are wanted, no less exact than LAPACK. */
enum {
    MOST_N_OF_SINGULAR = LANES == 2 ? 32 : 64,
    MOST_N_OF_SINGULAR_VALUES = LANES == 2         ? 8
                                : LANE_BYTES == 16 ? 32
                                : IS_DOUBLE        ? 48
                                                   : 64,
    MOST_N_OF_COLUMN_VALUES = 4,
    MOST_N_OF_COLUMNS = LANES == 2   ? 4
                        : PARTS == 2 ? 5
                                     : 6
};

/* Numbers of the workspace beside three matrices. */
enum { NUMBERS_OF_SIDES = 7, VECTORS_OF_SIDES = 6 + 4 * SWEEPS_AT_ONCE };

static size_t singular_workspace(ptrdiff_t n)
{
    const ptrdiff_t numbers = 3 * n * stride_of_rows(n) + NUMBERS_OF_SIDES * n;
    return (size_t)(numbers * PARTS + VECTORS_OF_SIDES * n) * sizeof(vector);
}

/* Of turned lanes the iteration had the transpose. */
NOINLINE void swap_sides(const struct qr_sides *sides, vector_mask turned)
{
    for (ptrdiff_t i = 0; i < sides->left.n * sides->left.stride; i++) {
        vector *left = sides->left.vectors + i, *right = sides->right.vectors + i;
        const vector x = *left, y = *right;
        *left = select_lanes(turned, y, x);
        *right = select_lanes(turned, x, y);
    }
}

/* Adds to each value what is left of it: half of x^T (B y - value x) + y^T (B^T x - value y), whose error is that of
 * the vectors, squared. */
NOINLINE void refine_singular_values(const struct bidiagonalization *r,
                                     const struct qr_sides *sides, vector *values, vector *rest)
{
    const ptrdiff_t n = r->n, stride = r->stride;
    for (ptrdiff_t j = 0; j < n; j++) {
        rest[j] = splat(0);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        const vector *x = sides->left.vectors + i * stride, *y = sides->right.vectors + i * stride;
        const vector *below = i < n - 1 ? x + stride : x, *above = i > 0 ? y - stride : y;
        const vector down = i < n - 1 ? r->next[i] : splat(0);
        const vector up = i > 0 ? r->next[i - 1] : splat(0), at = r->diagonal[i];
        for (ptrdiff_t j = 0; j < n; j++) {
            const vector b_y = plus_product(up * above[j], at, y[j]);
            const vector b_x = plus_product(down * below[j], at, x[j]);
            const vector left_of_x = minus_product(b_y, values[j], x[j]);
            const vector left_of_y = minus_product(b_x, values[j], y[j]);
            rest[j] = plus_product(plus_product(rest[j], left_of_x, x[j]), left_of_y, y[j]);
        }
    }
    for (ptrdiff_t j = 0; j < n; j++) {
        values[j] = plus_product(values[j], rest[j], splat((element)0.5));
    }
}

/* Makes values positive, by the signs of columns of Y. */
NOINLINE void make_positive(vector *values, vector *y, ptrdiff_t n, ptrdiff_t stride)
{
    const vector_mask sign = (vector_mask)splat((element)-0.0);
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            vector *at = y + i * stride + j;
            *at = (vector)((vector_mask)*at ^ ((vector_mask)values[j] & sign));
        }
    }
    for (ptrdiff_t j = 0; j < n; j++) {
        values[j] = magnitude(values[j]);
    }
}

/* B = X S Y^T; values in descending order, and vectors where they are wanted. Returns in which lanes values have not
 * been found. */
NOINLINE vector_mask decompose_bidiagonal(const struct bidiagonalization *r, struct lane_blocks *qr,
                                          struct qr_sides *sides, vector_mask *places,
                                          vector *scratch, bool with_vectors)
{
    const ptrdiff_t n = r->n, stride = r->stride;
    const vector_mask turned = has_larger_first(r->diagonal, n);
    copy_diagonals(qr, r->diagonal, r->next, turned);
    start_vectors(&sides->left, turned);
    start_vectors(&sides->right, turned);
    const vector_mask left = iterate_qr(qr, sides);
    if (mask_bits(turned) != 0) {
        swap_sides(sides, turned);
    }
    refine_singular_values(r, sides, qr->diagonal, scratch);
    make_positive(qr->diagonal, sides->right.vectors, n, stride);
    sort_lanes(qr->diagonal, places, scratch, n, true);
    if (with_vectors) {
        move_columns(sides->left.vectors, stride, places, scratch, n);
        move_columns(sides->right.vectors, stride, places, scratch, n);
    }
    return left;
}

/* As decompose(), of u and any v; `values` are in the workspace. They need the vectors of B, too: without these, their
 * errors would be larger than LAPACK's. */
NOINLINE vector_mask decompose_both_sides(char *workspace, number *u, vector **values, number *v,
                                          ptrdiff_t n, bool with_vectors)
{
    const struct scaling scaling = scale_matrix(u, n, 1);
    const ptrdiff_t stride = stride_of_rows(n);
    number *a = (number *)workspace, *numbers = a + 3 * n * stride;
    vector *reals = (vector *)(numbers + NUMBERS_OF_SIDES * n);
    struct shears *rotations = (struct shears *)(reals + 6 * n);
    struct bidiagonalization reduction = {
        .a = a,
        .left_factor = numbers,
        .right_factor = numbers + n,
        .work = {numbers + 2 * n, numbers + 3 * n, numbers + 4 * n, numbers + 5 * n},
        .y = numbers + 6 * n,
        .diagonal = reals,
        .next = reals + n,
        .n = n,
        .stride = stride,
    };
    struct lane_blocks qr = {.diagonal = reals + 2 * n, .next = reals + 3 * n, .n = n};
    struct qr_sides sides = {
        {.vectors = (vector *)u, .rotations = rotations, .n = n, .stride = stride},
        {.vectors = (vector *)v,
         .rotations = rotations + SWEEPS_AT_ONCE * n,
         .n = n,
         .stride = stride},
    };
    make_bidiagonal(&reduction, u);
    vector_mask left = decompose_bidiagonal(&reduction, &qr, &sides, (vector_mask *)(reals + 4 * n),
                                            reals + 5 * n, with_vectors);
    if (with_vectors) {
        apply_both_sides(&reduction, u, v);
    }
    left |= ~scaling.regular;
    for (ptrdiff_t i = 0; i < n; i++) {
        qr.diagonal[i] = qr.diagonal[i] / scaling.factor;
        left |= is_irregular(qr.diagonal[i]);
    }
    *values = qr.diagonal;
    return left;
}

INLINE vector_mask singular_group(const struct linalg_stack *stack, const struct lane_group *group,
                                  bool with_vectors)
{
    const ptrdiff_t n = stack->n, matrix = n * stride_of_rows(n);
    const ptrdiff_t most_of_columns = with_vectors ? MOST_N_OF_COLUMNS : MOST_N_OF_COLUMN_VALUES;
    number *u = (number *)stack->workspace + matrix, *v = u + matrix;
    vector few[MOST_N_OF_COLUMNS], *values = few;
    load_numbers(&stack->operand[0], group, n, n, u);
    const vector_mask left =
        n <= most_of_columns
            ? decompose(u, values, with_vectors ? v : NULL, n)
            : decompose_both_sides(stack->workspace, u, &values, v, n, with_vectors);
    store_reals(&stack->operand[with_vectors ? 2 : 1], group, n, values);
    if (with_vectors) {
        for (ptrdiff_t i = 0; i < n * n; i++) {
            v[i] = conjugate(v[i]);
        }
        transpose_numbers(v, n, n);
        store_numbers(&stack->operand[1], group, n, n, u);
        store_numbers(&stack->operand[3], group, n, n, v);
    }
    return left;
}

static vector_mask svd_group(const struct linalg_stack *stack, const struct lane_group *group)
{
    return singular_group(stack, group, true);
}

static uint64_t svd_f(const struct linalg_stack *stack)
{
    return compute_groups(stack, svd_group);
}

static vector_mask svd_values_group(const struct linalg_stack *stack,
                                    const struct lane_group *group)
{
    return singular_group(stack, group, false);
}

static uint64_t svd(const struct linalg_stack *stack)
{
    return compute_groups(stack, svd_values_group);
}
