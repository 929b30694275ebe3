/* inv, solve and solve1. */
#include "elimination.h"

/* Right-hand sides that are solved for together: the elimination is done again for the next ones. */
enum { MOST_COLUMNS = MOST_N };

INLINE vector_mask solve_lanes(number *a, number *b, ptrdiff_t n, ptrdiff_t columns, bool by_pairs)
{
    divisor pivots[MOST_N];
    struct pivot_check check;
    eliminate(a, b, n, columns, pivots, &check, by_pairs);
    substitute(a, b, n, columns, pivots, &check, by_pairs);
    return check.irregular;
}

INLINE vector_mask invert_group(const struct linalg_stack *stack, const struct lane_group *group,
                                bool by_pairs)
{
    number *a = (number *)stack->workspace, *b = a + MOST_N * MOST_N;
    const ptrdiff_t n = stack->n;
    load_numbers(&stack->operand[0], group, n, n, a);
    for (ptrdiff_t i = 0; i < n * n; i++) {
        b[i] = number_of(splat(i % (n + 1) == 0 ? 1 : 0));
    }
    const vector_mask irregular = solve_lanes(a, b, n, n, by_pairs);
    store_numbers(&stack->operand[1], group, n, n, b);
    return irregular;
}

BOTH_WAYS(invert)

static uint64_t inv(const struct linalg_stack *stack)
{
    return COMPUTE_GROUPS(stack, invert);
}

INLINE vector_mask solve_group(const struct linalg_stack *stack, const struct lane_group *group,
                               bool by_pairs)
{
    number *a = (number *)stack->workspace, *b = a + MOST_N * MOST_N;
    const ptrdiff_t n = stack->n;
    struct linalg_operand in = stack->operand[1], out = stack->operand[2];
    vector_mask irregular = {0};
    for (ptrdiff_t done = 0; done < stack->columns; done += MOST_COLUMNS) {
        const ptrdiff_t left = stack->columns - done;
        const ptrdiff_t columns = left < MOST_COLUMNS ? left : MOST_COLUMNS;
        load_numbers(&stack->operand[0], group, n, n, a);
        load_numbers(&in, group, n, columns, b);
        irregular |= solve_lanes(a, b, n, columns, by_pairs);
        store_numbers(&out, group, n, columns, b);
        in.data += columns * in.column_step;
        out.data += columns * out.column_step;
    }
    return irregular;
}

BOTH_WAYS(solve)

static uint64_t solve(const struct linalg_stack *stack)
{
    return COMPUTE_GROUPS(stack, solve);
}

static uint64_t solve1(const struct linalg_stack *stack)
{
    struct linalg_stack one_column = *stack;
    one_column.columns = 1;
    one_column.operand[1].column_step = one_column.operand[2].column_step =
        PARTS * (ptrdiff_t)sizeof(element);
    return COMPUTE_GROUPS(&one_column, solve);
}
