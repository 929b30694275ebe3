/* det and slogdet. */
#include "elimination.h"

INLINE vector signs_of_swaps(vector_mask odd)
{
    return select_lanes(odd, splat(-1), splat(1));
}

INLINE vector_mask det_group(const struct linalg_stack *stack, const struct lane_group *group,
                             bool by_pairs)
{
    number *a = (number *)stack->workspace;
    const ptrdiff_t n = stack->n;
    divisor pivots[MOST_N];
    struct pivot_check check;
    load_numbers(&stack->operand[0], group, n, n, a);
    const vector_mask odd = eliminate(a, NULL, n, 0, pivots, &check, by_pairs);
    number pivots_product = number_of(signs_of_swaps(odd));
    for (ptrdiff_t k = 0; k < n; k++) {
        pivots_product = product(pivots_product, pivots[k].value);
        /* What was subnormal here may no longer be in the end. */
        check.irregular |= ~(size_of_number(pivots_product) >= splat(SMALLEST_NORMAL));
    }
    store_numbers(&stack->operand[1], group, 1, 1, &pivots_product);
    return check.irregular | irregular_number(pivots_product);
}

BOTH_WAYS(det)

static uint64_t det(const struct linalg_stack *stack)
{
    return COMPUTE_GROUPS(stack, det);
}

/* log(x * 2^exponent), also where that is too large or small for a double. */
static double log_of_scaled(double x, int exponent)
{
    const double log_2 = 0x1.62e42fefa39efp-1;
    return exponent > -1000 && exponent < 1000 ? log(ldexp(x, exponent))
                                               : log(x) + exponent * log_2;
}

INLINE vector_mask slogdet_group(const struct linalg_stack *stack, const struct lane_group *group,
                                 bool by_pairs)
{
    number *a = (number *)stack->workspace;
    const ptrdiff_t n = stack->n;
    divisor pivots[MOST_N];
    struct pivot_check check;
    load_numbers(&stack->operand[0], group, n, n, a);
    const vector_mask odd = eliminate(a, NULL, n, 0, pivots, &check, by_pairs);
    number pivots_product = number_of(signs_of_swaps(odd));
    vector_mask exponent = {0};
    for (ptrdiff_t k = 0; k < n; k++) {
        /* Between 1 / sqrt(2) and 2: products neither overflow nor underflow. */
        const vector size = size_of_number(pivots[k].value), scale = inverse_power(size);
        check.irregular |= is_irregular(size) | is_irregular(scale) | (scale == 0);
        exponent += exponent_of(size);
        pivots_product = product(pivots_product, scaled_number(pivots[k].value, scale));
    }
    const vector distance = absolute_value(pivots_product);
    number sign = real_quotient(pivots_product, distance, splat(1) / distance);
    store_numbers(&stack->operand[1], group, 1, 1, &sign);
    vector log_det = {0};
    for (int lane = 0; lane < LANES; lane++) {
        log_det[lane] = (element)log_of_scaled((double)distance[lane], (int)exponent[lane]);
    }
    store_reals(&stack->operand[2], group, 1, &log_det);
    return check.irregular;
}

BOTH_WAYS(slogdet)

static uint64_t slogdet(const struct linalg_stack *stack)
{
    return COMPUTE_GROUPS(stack, slogdet);
}
