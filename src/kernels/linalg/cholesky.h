/* cholesky_lo and cholesky_up. */
#include "pivot_check.h"

/* x - sum of a[j] * conj(b[j]). Summed by halves, before they are subtracted, most products are rounded to
 * less than what is left of x. */
INLINE number row_minus_products(number x, const number *a, const number *b, ptrdiff_t count)
{
    number_sum even = zero_sum(), odd = zero_sum();
    for (ptrdiff_t j = 0; j + 1 < count; j += 2) {
        add_conjugate_product(&even, a[j], b[j]);
        add_conjugate_product(&odd, a[j + 1], b[j + 1]);
    }
    if (count % 2 != 0) {
        add_conjugate_product(&even, a[count - 1], b[count - 1]);
    }
    return number_minus_sum(x, added_sums(&even, &odd));
}

/* Replaces the lower triangle by L, and the other one by zeros. */
INLINE vector_mask factorize(number *a, ptrdiff_t n)
{
    divisor pivots[MOST_N];
    struct pivot_check check;
    start_check(&check);
    for (ptrdiff_t k = 0; k < n; k++) {
        number *row = a + k * n;
        const vector diagonal = real_part(row[k]);
        const vector length = root(real_part(row_minus_products(row[k], row, row, k)));
        const vector reciprocal = splat(1) / length;
        check.column_sizes[k] = diagonal;
        check_pivot(&check, diagonal * reciprocal * reciprocal);
        pivots[k] = (divisor){number_of(length), number_of(reciprocal)};
        row[k] = pivots[k].value;
        for (ptrdiff_t j = k + 1; j < n; j++) {
            row[j] = number_of(splat(0));
        }
        for (ptrdiff_t i = k + 1; i < n; i++) {
            const number x = row_minus_products(a[i * n + k], a + i * n, row, k);
            a[i * n + k] = real_quotient(x, length, reciprocal);
            check.irregular |= irregular_number(a[i * n + k]);
        }
    }
    if (mask_bits(check.doubtful) != 0) {
        /* Errors are as large as the roots of both diagonal elements, and a pivot is squared. */
        for (ptrdiff_t k = 0; k < n; k++) {
            check.column_sizes[k] = root(check.column_sizes[k]);
        }
        confirm_doubts(&check, a, 1, n, n, pivots, true);
    }
    return check.irregular;
}

static vector_mask cholesky_group(const struct linalg_stack *stack, const struct lane_group *group)
{
    number *a = (number *)stack->workspace;
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
