/* Numbers of matrices in lanes: real ones. complex_numbers.h has the same names. */
#ifndef NUMC_REAL_NUMBERS_H
#define NUMC_REAL_NUMBERS_H

#include "lane_arithmetic.h"

enum { PARTS = 1 };

typedef vector number;

/* What numbers are divided by. */
typedef struct real_divisor {
    number value, reciprocal;
} divisor;

INLINE number number_of(vector real)
{
    return real;
}

INLINE vector real_part(number x)
{
    return x;
}

INLINE vector imaginary_part(number x)
{
    (void)x;
    return splat(0);
}

INLINE number conjugate(number x)
{
    return x;
}

INLINE number sum_of_numbers(number a, number b)
{
    return a + b;
}

INLINE number number_difference(number a, number b)
{
    return a - b;
}

INLINE number select_numbers(vector_mask mask, number if_true, number if_false)
{
    return select_lanes(mask, if_true, if_false);
}

/* By which LAPACK compares pivots. */
INLINE vector size_of_number(number x)
{
    return magnitude(x);
}

INLINE vector absolute_value(number x)
{
    return magnitude(x);
}

INLINE vector_mask irregular_number(number x)
{
    return is_irregular(x);
}

INLINE number product(number a, number b)
{
    return a * b;
}

INLINE number scaled_number(number x, vector factor)
{
    return x * factor;
}

INLINE number number_minus_product(number c, number a, number b)
{
    return minus_product(c, a, b);
}

INLINE number number_plus_product(number c, number a, number b)
{
    return plus_product(c, a, b);
}

/* c + a * conjugate(b) */
INLINE number plus_conjugate_product(number c, number a, number b)
{
    return plus_product(c, a, b);
}

INLINE number minus_conjugate_product(number c, number a, number b)
{
    return minus_product(c, a, b);
}

INLINE number minus_real(number x, vector y)
{
    return x - y;
}

INLINE vector imaginary_square(number x)
{
    (void)x;
    return splat(0);
}

/* Whether products are better summed by two before they are subtracted. A fused product is not rounded, but
 * each difference is, to more than the sum. */
#define PAIRS_ARE_EXACTER(n) ((n) > 8)

/* c - (a * x + b * y) */
INLINE number number_minus_products(number c, number a, number x, number b, number y)
{
    return c - plus_product(a * x, b, y);
}

/* Of products with conjugates. */
typedef struct real_sum {
    vector re;
} number_sum;

INLINE void add_conjugate_product(number_sum *sum, number a, number b)
{
    sum->re = plus_product(sum->re, a, b);
}

INLINE number_sum zero_sum(void)
{
    return (number_sum){splat(0)};
}

INLINE number_sum added_sums(const number_sum *x, const number_sum *y)
{
    return (number_sum){x->re + y->re};
}

INLINE number number_of_sum(number_sum sum)
{
    return sum.re;
}

INLINE number number_minus_sum(number x, number_sum sum)
{
    return x - sum.re;
}

INLINE divisor divisor_of(number x)
{
    return (divisor){x, splat(1) / x};
}

INLINE number quotient(number x, const divisor *by)
{
    return vector_quotient(x, by->value, by->reciprocal);
}

INLINE number exact_quotient(number x, const divisor *by)
{
    return quotient(x, by);
}

INLINE number real_quotient(number x, vector by, vector reciprocal)
{
    return vector_quotient(x, by, reciprocal);
}

/* A plane rotation by the half angle's tangent: its rows are {1 - sine * half, -sine} and {sine, 1 - sine *
 * half}. So what a small angle changes is rounded, not what it keeps. */
typedef struct real_rotation {
    vector sine, half;
} rotation;

/* A number as a unit times `amount`. */
INLINE vector amount_of(number x)
{
    return x;
}

INLINE rotation rotation_of(vector sine, vector half, number x, vector amount)
{
    (void)x;
    (void)amount;
    return (rotation){sine, half};
}

INLINE void rotate(const rotation *by, vector_mask active, number *x, number *y)
{
    const vector a = *x, b = *y;
    *x = select_lanes(active, minus_product(a, by->sine, plus_product(b, by->half, a)), a);
    *y = select_lanes(active, plus_product(b, by->sine, minus_product(a, by->half, b)), b);
}

#endif
