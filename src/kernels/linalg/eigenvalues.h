/* eigh and eigvalsh, by Jacobi's rotations. */
#include "jacobi.h"

/* Up to here LAPACK is slower, whatever the matrices. */
enum {
    MOST_N_OF_VECTORS = LANES == 2         ? 4
                        : LANE_BYTES == 16 ? 8
                                           : 10,
    MOST_N_OF_VALUES = LANES == 2         ? 4
                       : LANE_BYTES == 16 ? 6
                                          : 8
};

/* Makes the matrix Hermitian, from its triangle below the diagonal, or above. */
INLINE void mirror_triangle(number *a, ptrdiff_t n, bool up)
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

/* Values in ascending order, and vectors in columns. Returns which lanes are left to LAPACK. */
INLINE vector_mask diagonalize(number *a, vector *values, number *vectors, ptrdiff_t n)
{
    const struct scaling scaling = scale_matrix(a, n, 1);
    if (vectors != NULL) {
        make_identity(vectors, n);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        values[i] = splat(0);
    }
    vector_mask active = scaling.regular;
    for (int sweep = 0; sweep < MOST_SWEEPS && mask_bits(active) != 0; sweep++) {
        active = (vector_mask){0};
        for (ptrdiff_t p = 0; p < n - 1; p++) {
            for (ptrdiff_t q = p + 1; q < n; q++) {
                active |= rotate_away(a, values, vectors, n, p, q);
            }
        }
    }
    vector_mask left = ~scaling.regular | active;
    for (ptrdiff_t i = 0; i < n; i++) {
        values[i] = (real_part(a[i * n + i]) + values[i]) / scaling.factor;
        left |= is_irregular(values[i]);
    }
    sort_values(values, vectors, NULL, n, false);
    return left;
}

INLINE vector_mask eigh_group(const struct linalg_stack *stack, const struct lane_group *group,
                              bool up, bool with_vectors)
{
    const ptrdiff_t n = stack->n;
    number *a = (number *)stack->workspace, *vectors = a + n * n;
    vector values[MOST_N_OF_VECTORS];
    load_numbers(&stack->operand[0], group, n, n, a);
    mirror_triangle(a, n, up);
    const vector_mask left = diagonalize(a, values, with_vectors ? vectors : NULL, n);
    store_reals(&stack->operand[1], group, n, values);
    if (with_vectors) {
        store_numbers(&stack->operand[2], group, n, n, vectors);
    }
    return left;
}

#define KERNEL_OF_EIGENVALUES(gufunc, up, with_vectors)                                            \
    static vector_mask gufunc##_group(const struct linalg_stack *stack,                            \
                                      const struct lane_group *group)                              \
    {                                                                                              \
        return eigh_group(stack, group, up, with_vectors);                                         \
    }                                                                                              \
    static uint64_t gufunc(const struct linalg_stack *stack)                                       \
    {                                                                                              \
        return compute_groups(stack, gufunc##_group);                                              \
    }
KERNEL_OF_EIGENVALUES(eigh_lo, false, true)
KERNEL_OF_EIGENVALUES(eigh_up, true, true)
KERNEL_OF_EIGENVALUES(eigvalsh_lo, false, false)
KERNEL_OF_EIGENVALUES(eigvalsh_up, true, false)
#undef KERNEL_OF_EIGENVALUES
