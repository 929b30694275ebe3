/* eigh and eigvalsh: by Jacobi's rotations where matrices are small, otherwise by QL iterations of a tridiagonal
 * matrix. */
#include "ql_iteration.h"
#include "refinement.h"

/* Up to these orders LAPACK is slower, whatever the matrices; up to the last of them Jacobi's rotations are faster
 * than QL iterations; above UNREFINED_N iterations alone are less exact than LAPACK. */
enum {
    MOST_N_OF_VECTORS = LANES == 2         ? 24
                        : LANE_BYTES == 16 ? 48
                                           : 64,
    MOST_N_OF_VALUES = LANE_BYTES > 16 ? 64
                       : LANES > 2     ? 48
                       : PARTS == 2    ? 16
                                       : 4,
    MOST_N_OF_ROTATIONS = PARTS == 1 && LANES > 2 ? 5 : 4,
    UNREFINED_N = FUSED ? 48 : 24
};

/* Makes the matrix Hermitian, from its triangle below the diagonal, or above. */
NOINLINE void mirror_triangle(number *a, ptrdiff_t n, bool up)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        a[i * n + i] = number_of(real_part(a[i * n + i]));
        for (ptrdiff_t j = 0; j < i; j++) {
            if (up) {
                a[i * n + j] = conjugate(a[j * n + i]);
            } else {
                a[j * n + i] = conjugate(a[i * n + j]);
            }
        }
    }
}

/* Makes the number at p, q zero; `moved` is what rotations have added to the diagonal, which is rounded to it
 * in the end only. Returns in which lanes that number was not negligible: next to the diagonal, or next to the
 * matrix, whose size is 1. */
INLINE vector_mask rotate_away(number *a, vector *moved, number *vectors, ptrdiff_t n, ptrdiff_t p,
                               ptrdiff_t q)
{
    const number x = a[p * n + q];
    const vector amount = amount_of(x), size = magnitude(amount);
    const vector at_p = real_part(a[p * n + p]) + moved[p];
    const vector at_q = real_part(a[q * n + q]) + moved[q];
    const vector least = splat(EPSILON / 4);
    const vector_mask active = (size > least * splat((element)0x1p-16)) &
                               (size * size > least * magnitude(at_p) * (least * magnitude(at_q)));
    a[p * n + q] = a[q * n + p] = number_of(splat(0));
    if (mask_bits(active) == 0) {
        return active;
    }
    const struct plane_angle angle = angle_of(at_p, at_q, amount);
    const rotation by = rotation_of(angle.sine, angle.half, x, amount);
    moved[p] = select_lanes(active, minus_product(moved[p], angle.tangent, amount), moved[p]);
    moved[q] = select_lanes(active, plus_product(moved[q], angle.tangent, amount), moved[q]);
    for (ptrdiff_t r = 0; r < n; r++) {
        if (r != p && r != q) {
            rotate(&by, active, &a[r * n + p], &a[r * n + q]);
            a[p * n + r] = conjugate(a[r * n + p]);
            a[q * n + r] = conjugate(a[r * n + q]);
        }
        if (vectors != NULL) {
            rotate(&by, active, &vectors[r * n + p], &vectors[r * n + q]);
        }
    }
    return active;
}

/* Replaces a by anything. Returns in which lanes values, in any order, and vectors have not been found. */
INLINE vector_mask diagonalize(number *a, vector *values, number *vectors, ptrdiff_t n)
{
    if (vectors != NULL) {
        make_identity(vectors, n);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        values[i] = splat(0);
    }
    vector_mask active = ~(vector_mask){0};
    for (int sweep = 0; sweep < MOST_SWEEPS && mask_bits(active) != 0; sweep++) {
        active = (vector_mask){0};
        for (ptrdiff_t p = 0; p < n - 1; p++) {
            for (ptrdiff_t q = p + 1; q < n; q++) {
                active |= rotate_away(a, values, vectors, n, p, q);
            }
        }
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        values[i] += real_part(a[i * n + i]);
    }
    return active;
}

/* Adds to each value what is left of it: z^T (T z - value z), whose error is that of the vector, squared. */
NOINLINE void refine_values(const struct householder *r, const vector *vectors, vector *values,
                            vector *rest)
{
    const ptrdiff_t n = r->n, stride = r->stride;
    for (ptrdiff_t j = 0; j < n; j++) {
        rest[j] = splat(0);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        const vector *at = vectors + i * stride;
        const vector *above = i > 0 ? at - stride : at, *below = i < n - 1 ? at + stride : at;
        const vector up = i > 0 ? r->next[i - 1] : splat(0);
        const vector down = i < n - 1 ? r->next[i] : splat(0);
        for (ptrdiff_t j = 0; j < n; j++) {
            const vector beside = plus_product(up * above[j], down, below[j]);
            const vector left = plus_product(beside, r->diagonal[i] - values[j], at[j]);
            rest[j] = plus_product(rest[j], left, at[j]);
        }
    }
    for (ptrdiff_t j = 0; j < n; j++) {
        values[j] += rest[j];
    }
}

/* Numbers of the workspace beside both matrices, of which one is Z while its numbers are real. */
enum { NUMBERS_OF_ROW = 3, VECTORS_OF_ROW = 6 + 2 * SWEEPS_AT_ONCE };

static size_t eigen_workspace(ptrdiff_t n)
{
    const ptrdiff_t numbers =
        (PARTS == 2 || n <= UNREFINED_N ? 2 : 3) * n * stride_of_rows(n) + NUMBERS_OF_ROW * n;
    return (size_t)(numbers * PARTS + VECTORS_OF_ROW * n) * sizeof(vector);
}

/* What all numbers of the diagonal are next to, so that it is taken off them without rounding: then errors are
 * those of what is left. Elsewhere 0. */
INLINE vector find_origin(const number *a, ptrdiff_t n)
{
    const vector first = real_part(a[0]);
    vector_mask is_near = ~(vector_mask){0};
    for (ptrdiff_t i = 1; i < n; i++) {
        const vector distance = magnitude(real_part(a[i * (n + 1)]) - first);
        is_near &= distance <= splat((element)0.5) * magnitude(first);
    }
    return select_lanes(is_near, first, splat(0));
}

/* From `a`, n numbers a row, to those of r->a, less `origin`. Returns whether all matrices are diagonal. */
INLINE bool copy_triangle(const struct householder *r, const number *a, vector origin)
{
    vector rest = splat(0);
    for (ptrdiff_t i = 0; i < r->n; i++) {
        for (ptrdiff_t j = 0; j < i; j++) {
            r->a[i * r->stride + j] = a[i * r->n + j];
            rest += size_of_number(a[i * r->n + j]);
        }
        r->diagonal[i] = real_part(a[i * r->n + i]) - origin;
        r->a[i * r->stride + i] = number_of(r->diagonal[i]);
        r->next[i] = splat(0);
    }
    return mask_bits(rest != splat(0)) == 0;
}

/* Values, and where it takes that, vectors, for which real ones need `room` for another matrix. */
INLINE void refine(const struct householder *reduction, const struct swept_columns *columns,
                   vector *values, vector *scratch, vector *room)
{
    const ptrdiff_t n = columns->n, stride = columns->stride;
    refine_values(reduction, columns->vectors, values, scratch);
    if (n > UNREFINED_N) {
        struct refinement refinement = {
            .diagonal = reduction->diagonal,
            .next = reduction->next,
            .z = columns->vectors,
            .e = PARTS == 2 ? columns->vectors + n * stride : room,
            .values = values,
            .scratch = (vector *)columns->rotations,
            .n = n,
            .stride = stride,
        };
        refine_vectors(&refinement);
    }
}

/* As diagonalize(), of matrix z, which becomes the vectors; values are sorted. */
NOINLINE vector_mask decompose_hermitian(char *workspace, vector **values, number *z, ptrdiff_t n,
                                         bool with_vectors)
{
    const ptrdiff_t stride = stride_of_rows(n);
    number *a = (number *)workspace, *numbers = a + 2 * n * stride;
    vector *vectors = with_vectors ? (vector *)z : NULL;
    vector *reals = (vector *)(numbers + NUMBERS_OF_ROW * n), *scratch = reals + 4 * n;
    const struct householder reduction = {
        .a = a,
        .factor = numbers,
        .work = {numbers + n, numbers + 2 * n},
        .diagonal = reals,
        .next = reals + n,
        .n = n,
        .stride = stride,
    };
    struct lane_blocks ql = {
        .diagonal = reals + 2 * n,
        .next = reals + 3 * n,
        .origin = find_origin(z, n),
        .least = splat(EPSILON * (element)0x1p-17), /* the size of the matrix is 1 */
        .least_ratio = EPSILON / 2,
        .n = n,
    };
    struct swept_columns columns = {
        .vectors = vectors,
        .rotations = (struct shears *)(reals + 6 * n),
        .n = n,
        .stride = stride,
    };
    const bool is_diagonal = copy_triangle(&reduction, z, ql.origin);
    if (!is_diagonal) {
        reduce_matrix(&reduction);
    }
    /* An iteration whose sweeps end at smaller numbers converges sooner. */
    const vector_mask turned = has_larger_first(reduction.diagonal, n);
    copy_diagonals(&ql, reduction.diagonal, reduction.next, turned);
    start_vectors(&columns, turned);
    const vector_mask left = iterate_ql(&ql, &columns);
    if (with_vectors && !is_diagonal) {
        refine(&reduction, &columns, ql.diagonal, scratch, reals + VECTORS_OF_ROW * n);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        ql.diagonal[i] += ql.origin;
    }
    vector_mask *places = (vector_mask *)(reals + 5 * n);
    sort_lanes(ql.diagonal, places, scratch, n, false);
    if (with_vectors) {
        move_columns(vectors, stride, places, scratch, n);
        widen_vectors(z, n, stride);
        if (!is_diagonal) {
            const struct reflectors q = {a + stride, reduction.factor + 1, n - 1, stride};
            apply_reflectors(&q, z, n);
        }
        close_rows(z, n, stride);
    }
    *values = ql.diagonal;
    return left;
}

INLINE vector_mask eigen_group(const struct linalg_stack *stack, const struct lane_group *group,
                               bool up, bool with_vectors)
{
    const ptrdiff_t n = stack->n;
    number *a = (number *)stack->workspace, *z = a + n * stride_of_rows(n), *vectors = z;
    vector few[MOST_N_OF_ROTATIONS], *values = few;
    load_numbers(&stack->operand[0], group, n, n, z);
    mirror_triangle(z, n, up);
    const struct scaling scaling = scale_matrix(z, n, 1);
    vector_mask left = ~scaling.regular;
    if (n <= MOST_N_OF_ROTATIONS) {
        vectors = a;
        left |= diagonalize(z, values, with_vectors ? vectors : NULL, n);
        sort_values(values, with_vectors ? vectors : NULL, NULL, n, false);
    } else {
        left |= decompose_hermitian(stack->workspace, &values, z, n, with_vectors);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        values[i] = values[i] / scaling.factor;
        left |= is_irregular(values[i]);
    }
    store_reals(&stack->operand[1], group, n, values);
    if (with_vectors) {
        store_numbers(&stack->operand[2], group, n, n, vectors);
    }
    return left;
}

NOINLINE vector_mask vectors_group(const struct linalg_stack *stack, const struct lane_group *group,
                                   bool up)
{
    return eigen_group(stack, group, up, true);
}

NOINLINE vector_mask values_group(const struct linalg_stack *stack, const struct lane_group *group,
                                  bool up)
{
    return eigen_group(stack, group, up, false);
}

#define KERNEL_OF_EIGENVALUES(gufunc, compute, up)                                                 \
    static vector_mask gufunc##_group(const struct linalg_stack *stack,                            \
                                      const struct lane_group *group)                              \
    {                                                                                              \
        return compute(stack, group, up);                                                          \
    }                                                                                              \
    static uint64_t gufunc(const struct linalg_stack *stack)                                       \
    {                                                                                              \
        return compute_groups(stack, gufunc##_group);                                              \
    }
KERNEL_OF_EIGENVALUES(eigh_lo, vectors_group, false)
KERNEL_OF_EIGENVALUES(eigh_up, vectors_group, true)
KERNEL_OF_EIGENVALUES(eigvalsh_lo, values_group, false)
KERNEL_OF_EIGENVALUES(eigvalsh_up, values_group, true)
#undef KERNEL_OF_EIGENVALUES
