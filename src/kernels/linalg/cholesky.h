/* cholesky_lo and cholesky_up. */
#include "lane_matrices.h"

/* Replaces the lower triangle by L, and the other one by zeros. */
INLINE vector_mask factorize(number *a, ptrdiff_t n)
{
    vector_mask irregular = {0};
    vector most_lost = splat(1);
    vector diagonal[MOST_N];
    for (ptrdiff_t k = 0; k < n; k++) {
        diagonal[k] = real_part(a[k * n + k]);
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        const vector pivot = real_part(a[k * n + k]), length = root(pivot);
        const vector reciprocal = splat(1) / length;
        /* As of struct pivot_check. That of what is not positive is NaN. */
        const vector lost = diagonal[k] * reciprocal * reciprocal;
        irregular |= ~(lost * most_lost < splat(1 / (NOISE_EPSILONS * EPSILON)));
        most_lost = select_lanes(lost > most_lost, lost, most_lost);
        a[k * n + k] = number_of(length);
        for (ptrdiff_t j = 0; j < k; j++) {
            a[j * n + k] = number_of(splat(0));
        }
        for (ptrdiff_t i = k + 1; i < n; i++) {
            const number x = real_quotient(a[i * n + k], length, reciprocal);
            a[i * n + k] = x;
            irregular |= irregular_number(x);
            for (ptrdiff_t j = k + 1; j <= i; j++) {
                a[i * n + j] = minus_conjugate_product(a[i * n + j], x, a[j * n + k]);
            }
        }
    }
    return irregular;
}

static vector_mask cholesky_group(const struct linalg_stack *stack, const struct lane_group *group)
{
    number a[MOST_N * MOST_N];
    load_numbers(&stack->operand[0], group, stack->n, stack->n, a);
    const vector_mask irregular = factorize(a, stack->n);
    store_numbers(&stack->operand[1], group, stack->n, stack->n, a);
    return irregular;
}

static uint64_t cholesky_lo(const struct linalg_stack *stack)
{
    return compute_groups(stack, cholesky_group);
}

/* The lower triangle of the transpose has the conjugate L: its transpose is U. */
static uint64_t cholesky_up(const struct linalg_stack *stack)
{
    struct linalg_stack transposed = *stack;
    for (int i = 0; i < 2; i++) {
        struct linalg_operand *x = &transposed.operand[i];
        const ptrdiff_t row_step = x->row_step;
        x->row_step = x->column_step;
        x->column_step = row_step;
    }
    return compute_groups(&transposed, cholesky_group);
}
