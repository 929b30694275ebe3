/* Singular values and vectors of real lower bidiagonal matrices, by the implicit QR iteration. */
#ifndef NUMC_QR_ITERATION_H
#define NUMC_QR_ITERATION_H

#include "sweeps.h"

/* A smaller one takes more sweeps where values are repeated, and changes no error. */
#define LEAST_RATIO_OF_QR (4 * EPSILON)

/* Both sides of B = X S Y^T. */
struct qr_sides {
    struct swept_columns left, right;
};

/* A lower bound of the largest singular value. */
INLINE vector largest_number(const struct lane_blocks *qr)
{
    vector largest = magnitude(qr->diagonal[0]);
    for (ptrdiff_t i = 1; i < qr->n; i++) {
        const vector at = magnitude(qr->diagonal[i]), beside = magnitude(qr->next[i - 1]);
        largest = select_lanes(at > largest, at, largest);
        largest = select_lanes(beside > largest, beside, largest);
    }
    return largest;
}

/* The lower singular value of the first two numbers' matrix; 0 where a number of the block's diagonal is next to 0: no
 * shift gets past it, and a sweep without one takes the block apart. */
INLINE vector shift_of_block(const struct lane_blocks *qr, ptrdiff_t low, ptrdiff_t high)
{
    const vector_mask active = qr->first < qr->last;
    const vector at = magnitude(gathered(qr->diagonal, qr->first));
    const vector below = magnitude(gathered(qr->diagonal, qr->first - active));
    const vector beside = gathered(qr->next, qr->first);
    const vector sum = at + below, difference = at - below, square = beside * beside;
    const vector twice =
        root(plus_product(square, sum, sum)) + root(plus_product(square, difference, difference));
    vector_mask passes = active & (twice > splat(0));
    for (ptrdiff_t i = low; i <= high; i++) {
        const vector_mask here = splat_bits((lane_bits)i);
        const vector_mask is_beside = (here < qr->first) | (here > qr->last);
        passes &= is_beside | (magnitude(qr->diagonal[i]) > splat(EPSILON * (element)0x1p-16));
    }
    return select_lanes(passes, at * below * splat(2) / select_lanes(passes, twice, splat(1)),
                        splat(0));
}

/* Rotates each lane's block from its end to its beginning. */
NOINLINE void sweep_bidiagonals(const struct lane_blocks *qr, vector shift, struct shears *left,
                                struct shears *right, ptrdiff_t low, ptrdiff_t high)
{
    vector *d = qr->diagonal, *e = qr->next;
    vector aside = splat(0), bulge = splat(0), at = splat(0), beside = splat(0);
    for (ptrdiff_t i = high - 1; i >= low; i--) {
        const vector_mask here = splat_bits((lane_bits)i), ends = qr->first == here;
        const vector_mask active = (qr->last > here) & (qr->first <= here);
        const vector_mask starts = qr->last == here + 1;
        const vector first = d[i + 1], size = magnitude(first);
        /* (d^2 - shift^2) / d */
        const vector ratio = shift / select_lanes(size > splat(0), size, splat(1));
        const vector shifted = (size - shift) * (splat(1) + ratio);
        aside = select_lanes(starts, select_lanes(first < splat(0), -shifted, shifted), aside);
        bulge = select_lanes(starts, e[i], bulge);
        at = select_lanes(starts, first, at);
        beside = select_lanes(starts, e[i], beside);
        const struct turn by_right = turn_of(aside, bulge);
        e[i + 1] = select_lanes(active & ~starts, by_right.length, e[i + 1]);
        const vector turned = plus_product(by_right.cosine * at, by_right.sine, beside);
        const vector rest = minus_product(by_right.cosine * beside, by_right.sine, at);
        const vector below = by_right.cosine * d[i];
        const struct turn by_left = turn_of(turned, by_right.sine * d[i]);
        d[i + 1] = select_lanes(active, by_left.length, d[i + 1]);
        aside = plus_product(by_left.cosine * rest, by_left.sine, below);
        at = minus_product(by_left.cosine * below, by_left.sine, rest);
        d[i] = select_lanes(ends, at, d[i]);
        e[i] = select_lanes(ends, aside, e[i]);
        const vector after = i > low ? e[i - 1] : splat(0);
        bulge = by_left.sine * after;
        beside = by_left.cosine * after;
        left[i] = shears_of(&by_left, active);
        right[i] = shears_of(&by_right, active);
    }
}

/* Returns in which lanes it has not converged. */
NOINLINE vector_mask iterate_qr(struct lane_blocks *qr, struct qr_sides *sides)
{
    const ptrdiff_t n = qr->n;
    qr->first = (vector_mask){0};
    qr->origin = splat(0);
    qr->least = largest_number(qr) * splat(EPSILON);
    qr->least_ratio = LEAST_RATIO_OF_QR;
    for (ptrdiff_t sweep = 0; sweep < SWEEPS_PER_VALUE * n; sweep++) {
        find_blocks(qr);
        const ptrdiff_t low = least_of(qr->first), high = most_of(qr->last);
        if (low == n - 1) {
            break;
        }
        struct shears *left = add_sweep(&sides->left, low, high);
        struct shears *right = add_sweep(&sides->right, low, high);
        sweep_bidiagonals(qr, shift_of_block(qr, low, high), left, right, low, high);
    }
    finish_sweeps(&sides->left);
    finish_sweeps(&sides->right);
    return qr->first < splat_bits((lane_bits)n - 1);
}

#endif
