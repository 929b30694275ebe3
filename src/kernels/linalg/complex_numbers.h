/* Numbers of matrices in lanes: complex ones. real_numbers.h has the same names. */
#ifndef NUMC_COMPLEX_NUMBERS_H
#define NUMC_COMPLEX_NUMBERS_H

#include "lane_arithmetic.h"

enum { PARTS = 2 };

typedef struct complex_lanes {
    vector re, im;
} number;

/* What numbers are divided by. */
typedef struct complex_divisor {
    number value, reciprocal;
} divisor;

INLINE number number_of(vector real)
{
    return (number){real, splat(0)};
}

INLINE vector real_part(number x)
{
    return x.re;
}

INLINE vector imaginary_part(number x)
{
    return x.im;
}

INLINE number conjugate(number x)
{
    return (number){x.re, -x.im};
}

INLINE number sum_of_numbers(number a, number b)
{
    return (number){a.re + b.re, a.im + b.im};
}

INLINE number number_difference(number a, number b)
{
    return (number){a.re - b.re, a.im - b.im};
}

INLINE number select_numbers(vector_mask mask, number if_true, number if_false)
{
    return (number){select_lanes(mask, if_true.re, if_false.re),
                    select_lanes(mask, if_true.im, if_false.im)};
}

/* By which LAPACK compares pivots. */
INLINE vector size_of_number(number x)
{
    return magnitude(x.re) + magnitude(x.im);
}

/* Squares may overflow or underflow. */
INLINE vector absolute_value(number x)
{
    return root(plus_product(x.re * x.re, x.im, x.im));
}

INLINE vector_mask irregular_number(number x)
{
    return is_irregular(x.re) | is_irregular(x.im);
}

INLINE number product(number a, number b)
{
    return (number){minus_product(a.re * b.re, a.im, b.im), plus_product(a.re * b.im, a.im, b.re)};
}

INLINE number scaled_number(number x, vector factor)
{
    return (number){x.re * factor, x.im * factor};
}

INLINE number number_minus_product(number c, number a, number b)
{
    return (number){plus_product(minus_product(c.re, a.re, b.re), a.im, b.im),
                    minus_product(minus_product(c.im, a.re, b.im), a.im, b.re)};
}

INLINE number number_plus_product(number c, number a, number b)
{
    return (number){minus_product(plus_product(c.re, a.re, b.re), a.im, b.im),
                    plus_product(plus_product(c.im, a.re, b.im), a.im, b.re)};
}

/* c + a * conjugate(b) */
INLINE number plus_conjugate_product(number c, number a, number b)
{
    return (number){plus_product(plus_product(c.re, a.re, b.re), a.im, b.im),
                    plus_product(minus_product(c.im, a.re, b.im), a.im, b.re)};
}

INLINE number minus_conjugate_product(number c, number a, number b)
{
    return (number){minus_product(minus_product(c.re, a.re, b.re), a.im, b.im),
                    minus_product(plus_product(c.im, a.re, b.im), a.im, b.re)};
}

INLINE number minus_real(number x, vector y)
{
    return (number){x.re - y, x.im};
}

INLINE vector imaginary_square(number x)
{
    return x.im * x.im;
}

/* Whether products are better summed by two before they are subtracted: of four parts, not all can be fused
 * with one difference. */
#define PAIRS_ARE_EXACTER(n) ((n) > 4)

/* c - (a * x + b * y) */
INLINE number number_minus_products(number c, number a, number x, number b, number y)
{
    const vector re = plus_product(minus_product(a.re * x.re, a.im, x.im), b.re, y.re);
    const vector im = plus_product(plus_product(a.re * x.im, a.im, x.re), b.re, y.im);
    return (number){c.re - minus_product(re, b.im, y.im), c.im - plus_product(im, b.im, y.re)};
}

/* Of products with conjugates: of each two parts by itself. */
typedef struct complex_sum {
    vector re_re, im_im, im_re, re_im;
} number_sum;

INLINE void add_conjugate_product(number_sum *sum, number a, number b)
{
    sum->re_re = plus_product(sum->re_re, a.re, b.re);
    sum->im_im = plus_product(sum->im_im, a.im, b.im);
    sum->im_re = plus_product(sum->im_re, a.im, b.re);
    sum->re_im = plus_product(sum->re_im, a.re, b.im);
}

INLINE number_sum zero_sum(void)
{
    return (number_sum){splat(0), splat(0), splat(0), splat(0)};
}

INLINE number_sum added_sums(const number_sum *x, const number_sum *y)
{
    return (number_sum){x->re_re + y->re_re, x->im_im + y->im_im, x->im_re + y->im_re,
                        x->re_im + y->re_im};
}

INLINE number number_of_sum(number_sum sum)
{
    return (number){sum.re_re + sum.im_im, sum.im_re - sum.re_im};
}

INLINE number number_minus_sum(number x, number_sum sum)
{
    const number y = number_of_sum(sum);
    return (number){x.re - y.re, x.im - y.im};
}

/* Squares of the parts might overflow or underflow: they are taken of x times a power of 2. */
INLINE divisor divisor_of(number x)
{
    const vector scale = inverse_power(size_of_number(x));
    const number near_1 = scaled_number(x, scale);
    const vector norm = plus_product(near_1.re * near_1.re, near_1.im, near_1.im);
    return (divisor){x, {near_1.re / norm * scale, -near_1.im / norm * scale}};
}

/* The remainder corrects the product with the reciprocal. */
INLINE number quotient(number x, const divisor *by)
{
    const number about = product(x, by->reciprocal);
#if FUSED
    const number rest = number_minus_product(x, about, by->value), r = by->reciprocal;
    return (number){minus_product(plus_product(about.re, rest.re, r.re), rest.im, r.im),
                    plus_product(plus_product(about.im, rest.re, r.im), rest.im, r.re)};
#else
    return about;
#endif
}

/* c - a * b. Unless it is rounded once, the product of the upper halves is exact. */
INLINE vector minus_exact_product(vector c, vector a, vector b)
{
#if FUSED
    return minus_product(c, a, b);
#else
    const vector_mask upper = splat_bits((lane_bits)(~0ULL << (MANTISSA_BITS / 2 + 1)));
    const vector x = (vector)((vector_mask)a & upper), y = (vector)((vector_mask)b & upper);
    return c - x * y - ((a - x) * b + x * (b - y));
#endif
}

/* As exact without fused products. */
INLINE number exact_quotient(number x, const divisor *by)
{
    const number about = product(x, by->reciprocal), r = by->reciprocal, y = by->value;
    const vector re =
        minus_exact_product(minus_exact_product(x.re, about.re, y.re), -about.im, y.im);
    const vector im =
        minus_exact_product(minus_exact_product(x.im, about.re, y.im), about.im, y.re);
    return (number){minus_product(plus_product(about.re, re, r.re), im, r.im),
                    plus_product(plus_product(about.im, re, r.im), im, r.re)};
}

INLINE number real_quotient(number x, vector by, vector reciprocal)
{
    return (number){vector_quotient(x.re, by, reciprocal), vector_quotient(x.im, by, reciprocal)};
}

/* As of real numbers, with the sine times a unit; and 1 - cosine. */
typedef struct complex_rotation {
    number sine;
    vector loss;
} rotation;

INLINE vector amount_of(number x)
{
    return absolute_value(x);
}

/* `x` is a unit times `amount`, which is 0 only in lanes that are not rotated. */
INLINE rotation rotation_of(vector sine, vector half, number x, vector amount)
{
    const vector factor = sine / amount;
    return (rotation){{x.re * factor, x.im * factor}, sine * half};
}

INLINE void rotate(const rotation *by, vector_mask active, number *x, number *y)
{
    const number a = *x, b = *y, w = by->sine;
    const vector re = plus_product(plus_product(w.re * b.re, w.im, b.im), by->loss, a.re);
    const vector im = plus_product(minus_product(w.re * b.im, w.im, b.re), by->loss, a.im);
    const vector other_re = minus_product(minus_product(w.re * a.re, w.im, a.im), by->loss, b.re);
    const vector other_im = minus_product(plus_product(w.re * a.im, w.im, a.re), by->loss, b.im);
    *x = select_numbers(active, (number){a.re - re, a.im - im}, a);
    *y = select_numbers(active, (number){b.re + other_re, b.im + other_im}, b);
}

#endif
