/* inv, solve and solve1. */
#include "elimination.h"

/* Right-hand sides that are solved for together: the elimination is done again for the next ones. */
enum { MOST_COLUMNS = MOST_N };

INLINE vector_mask solve_lanes(number *a, number *b, ptrdiff_t n, ptrdiff_t columns)
{
    divisor pivots[MOST_N];
    struct pivot_check check;
    eliminate(a, b, n, columns, pivots, &check);
    substitute(a, b, n, columns, pivots, &check);
    return check.irregular;
}

static vector_mask inv_group(const struct linalg_stack *stack, const struct lane_group *group)
{
    number a[MOST_N * MOST_N], b[MOST_N * MOST_N];
    const ptrdiff_t n = stack->n;
    load_numbers(&stack->operand[0], group, n, n, a);
    for (ptrdiff_t i = 0; i < n * n; i++) {
        b[i] = number_of(splat(i % (n + 1) == 0 ? 1 : 0));
    }
    const vector_mask irregular = solve_lanes(a, b, n, n);
    store_numbers(&stack->operand[1], group, n, n, b);
    return irregular;
}

static uint64_t inv(const struct linalg_stack *stack)
{
    return compute_groups(stack, inv_group);
}

static vector_mask solve_group(const struct linalg_stack *stack, const struct lane_group *group)
{
    number a[MOST_N * MOST_N], b[MOST_N * MOST_COLUMNS];
    const ptrdiff_t n = stack->n;
    struct linalg_operand in = stack->operand[1], out = stack->operand[2];
    vector_mask irregular = {0};
    for (ptrdiff_t done = 0; done < stack->columns; done += MOST_COLUMNS) {
        const ptrdiff_t left = stack->columns - done;
        const ptrdiff_t columns = left < MOST_COLUMNS ? left : MOST_COLUMNS;
        load_numbers(&stack->operand[0], group, n, n, a);
        load_numbers(&in, group, n, columns, b);
        irregular |= solve_lanes(a, b, n, columns);
        store_numbers(&out, group, n, columns, b);
        in.data += columns * in.column_step;
        out.data += columns * out.column_step;
    }
    return irregular;
}

static uint64_t solve(const struct linalg_stack *stack)
{
    return compute_groups(stack, solve_group);
}

static uint64_t solve1(const struct linalg_stack *stack)
{
    struct linalg_stack one_column = *stack;
    one_column.columns = 1;
    one_column.operand[1].column_step = one_column.operand[2].column_step =
        PARTS * (ptrdiff_t)sizeof(element);
    return compute_groups(&one_column, solve_group);
}
