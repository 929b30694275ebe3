/* Eigenvalues and vectors of real tridiagonal matrices, by the implicit QL iteration. */
#ifndef NUMC_QL_ITERATION_H
#define NUMC_QL_ITERATION_H

#include "sweeps.h"

/* Wilkinson's: of both values of the first two numbers' matrix, the one that is next to the first. */
INLINE vector shift_of(const struct lane_blocks *ql)
{
    const vector_mask active = ql->first < ql->last;
    const vector at = gathered(ql->diagonal, ql->first);
    const vector below = gathered(ql->diagonal, ql->first - active);
    const vector beside = select_lanes(active, gathered(ql->next, ql->first), splat(1));
    const vector ratio = (below - at) / (beside + beside);
    const vector length = root(plus_product(splat(1), ratio, ratio));
    return at - beside / select_lanes(ratio < splat(0), ratio - length, ratio + length);
}

/* Rotates each lane's block from its end to its beginning. `rotations` may be NULL. */
NOINLINE void sweep_blocks(const struct lane_blocks *ql, vector shift, struct shears *rotations,
                           ptrdiff_t low, ptrdiff_t high)
{
    vector *d = ql->diagonal, *e = ql->next;
    struct turn turn = {splat(0), splat(0), splat(1)};
    vector moved = splat(0), bulge = splat(0);
    for (ptrdiff_t i = high - 1; i >= low; i--) {
        const vector_mask here = splat_bits((lane_bits)i), ends = ql->first == here;
        const vector_mask active = (ql->last > here) & (ql->first <= here);
        const vector_mask starts = ql->last == here + 1;
        bulge = select_lanes(starts, d[i + 1] - shift, bulge);
        const vector sine = select_lanes(starts, splat(1), turn.sine);
        const vector cosine = select_lanes(starts, splat(1), turn.cosine);
        moved = select_lanes(starts, splat(0), moved);
        const vector beside = cosine * e[i];
        turn = turn_of(bulge, sine * e[i]);
        e[i + 1] = select_lanes(active & ~starts, turn.length, e[i + 1]);
        if (rotations != NULL) {
            rotations[i] = shears_of(&turn, active);
        }
        const vector at = d[i + 1] - moved;
        const vector change =
            plus_product((d[i] - at) * turn.sine, turn.cosine + turn.cosine, beside);
        moved = turn.sine * change;
        d[i + 1] = select_lanes(active, at + moved, d[i + 1]);
        d[i] = select_lanes(ends, d[i] - moved, d[i]);
        bulge = plus_product(-beside, turn.cosine, change);
        e[i] = select_lanes(ends, bulge, e[i]);
    }
}

/* Returns in which lanes it has not converged. */
NOINLINE vector_mask iterate_ql(struct lane_blocks *ql, struct swept_columns *columns)
{
    const ptrdiff_t n = ql->n;
    ql->first = (vector_mask){0};
    for (ptrdiff_t sweep = 0; sweep < SWEEPS_PER_VALUE * n; sweep++) {
        find_blocks(ql);
        const ptrdiff_t low = least_of(ql->first), high = most_of(ql->last);
        if (low == n - 1) {
            break;
        }
        sweep_blocks(ql, shift_of(ql), add_sweep(columns, low, high), low, high);
    }
    finish_sweeps(columns);
    return ql->first < splat_bits((lane_bits)n - 1);
}

#endif
