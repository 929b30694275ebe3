/* Eigenvalues and vectors of real tridiagonal matrices, by the implicit QL iteration. Each lane has its own block
 * of its matrix; a sweep of rotations goes through all of them. */
#ifndef NUMC_QL_ITERATION_H
#define NUMC_QL_ITERATION_H

#include "jacobi.h"

enum {
    SWEEPS_PER_VALUE = 30, /* 2 are usual; then LAPACK takes over */
    SWEEPS_AT_ONCE = 8,    /* for which each part of the vectors is loaded once */
    VECTOR_ROWS_AT_ONCE = 4,
};

/* A rotation as three shears: by the tangent of half the angle, the sine, and that tangent. */
struct shears {
    vector half, sine;
};

/* Rotations of columns low to high. */
struct sweep {
    ptrdiff_t low, high;
    const struct shears *rotations;
};

struct ql_iteration {
    vector *diagonal, *next;  /* of T, and beside its diagonal */
    vector *vectors;          /* in columns, or NULL; its rows are `stride` apart */
    struct shears *rotations; /* SWEEPS_AT_ONCE * n; with vectors only */
    vector origin;            /* what has been taken off the diagonal */
    ptrdiff_t n, stride;
    vector_mask first, last; /* numbers of the diagonal in each lane's block */
    struct sweep waiting[SWEEPS_AT_ONCE];
    int waiting_count;
};

INLINE ptrdiff_t least_of(vector_mask x)
{
    lane_bits least = x[0];
    for (int lane = 1; lane < LANES; lane++) {
        least = x[lane] < least ? x[lane] : least;
    }
    return (ptrdiff_t)least;
}

INLINE ptrdiff_t most_of(vector_mask x)
{
    lane_bits most = x[0];
    for (int lane = 1; lane < LANES; lane++) {
        most = x[lane] > most ? x[lane] : most;
    }
    return (ptrdiff_t)most;
}

/* Next to what is beside it, or next to the matrix, whose size is 1. */
INLINE vector_mask is_negligible(const struct ql_iteration *ql, ptrdiff_t i)
{
    const vector size = magnitude(ql->next[i]), least = splat(EPSILON / 2);
    const vector at = magnitude(ql->diagonal[i] + ql->origin);
    const vector beside = magnitude(ql->diagonal[i + 1] + ql->origin);
    return (size <= least * splat((element)0x1p-16)) |
           (size * size <= least * at * (least * beside));
}

/* Lets each lane go on to its first block of more than one number. */
NOINLINE void find_blocks(struct ql_iteration *ql)
{
    const ptrdiff_t end = ql->n - 1;
    const vector_mask none = splat_bits((lane_bits)end);
    vector_mask first = ql->first, last = none;
    for (ptrdiff_t i = least_of(first); i < end; i++) {
        const vector_mask here = splat_bits((lane_bits)i), negligible = is_negligible(ql, i);
        ql->next[i] = select_lanes(negligible, splat(0), ql->next[i]);
        last = select_bits(negligible & (first < here) & (last == none), here, last);
        first -= negligible & (first == here); /* true is -1 */
    }
    ql->first = first;
    ql->last = last;
}

INLINE vector gathered(const vector *x, vector_mask index)
{
    vector found = splat(0);
    for (int lane = 0; lane < LANES; lane++) {
        found[lane] = x[index[lane]][lane];
    }
    return found;
}

/* Wilkinson's: of both values of the first two numbers' matrix, the one that is next to the first. */
INLINE vector shift_of(const struct ql_iteration *ql)
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
NOINLINE void sweep_blocks(const struct ql_iteration *ql, vector shift, struct shears *rotations,
                           ptrdiff_t low, ptrdiff_t high)
{
    vector *d = ql->diagonal, *e = ql->next;
    vector sine = splat(0), cosine = splat(1), moved = splat(0), bulge = splat(0);
    for (ptrdiff_t i = high - 1; i >= low; i--) {
        const vector_mask here = splat_bits((lane_bits)i), ends = ql->first == here;
        const vector_mask active = (ql->last > here) & (ql->first <= here);
        const vector_mask starts = ql->last == here + 1;
        bulge = select_lanes(starts, d[i + 1] - shift, bulge);
        sine = select_lanes(starts, splat(1), sine);
        cosine = select_lanes(starts, splat(1), cosine);
        moved = select_lanes(starts, splat(0), moved);
        const vector aside = sine * e[i], beside = cosine * e[i];
        const vector square = plus_product(aside * aside, bulge, bulge);
        const vector_mask turns = square > splat(LEAST_SQUARE);
        const vector size = root(square);
        const vector length =
            select_lanes(turns, select_lanes(bulge < splat(0), -size, size), splat(0));
        e[i + 1] = select_lanes(active & ~starts, length, e[i + 1]);
        const vector inverse = splat(1) / length;
        sine = select_lanes(turns, aside * inverse, splat(0));
        cosine = select_lanes(turns, bulge * inverse, splat(1));
        /* They share the errors of the length, which would add up. */
        const vector rest = distance_from_unit(sine, cosine) * splat((element)0.5);
        sine = plus_product(sine, sine, rest);
        cosine = plus_product(cosine, cosine, rest);
        if (rotations != NULL) {
            rotations[i].sine = select_lanes(active, sine, splat(0));
            rotations[i].half = select_lanes(active, sine / (splat(1) + cosine), splat(0));
        }
        const vector at = d[i + 1] - moved;
        const vector turn = plus_product((d[i] - at) * sine, cosine + cosine, beside);
        moved = sine * turn;
        d[i + 1] = select_lanes(active, at + moved, d[i + 1]);
        d[i] = select_lanes(ends, d[i] - moved, d[i]);
        bulge = plus_product(-beside, cosine, turn);
        e[i] = select_lanes(ends, bulge, e[i]);
    }
}

/* Rotates columns of `count` rows by all sweeps that wait. */
INLINE void rotate_rows(const struct ql_iteration *ql, vector *rows, int count)
{
    const ptrdiff_t stride = ql->stride;
    for (int i = 0; i < ql->waiting_count; i++) {
        const struct sweep *sweep = &ql->waiting[i];
        vector carried[VECTOR_ROWS_AT_ONCE];
        UNROLL for (int k = 0; k < count; k++)
        {
            carried[k] = rows[k * stride + sweep->high];
        }
        for (ptrdiff_t j = sweep->high - 1; j >= sweep->low; j--) {
            const vector half = sweep->rotations[j].half, sine = sweep->rotations[j].sine;
            UNROLL for (int k = 0; k < count; k++)
            {
                const vector other = rows[k * stride + j];
                const vector sheared = plus_product(carried[k], half, other);
                carried[k] = minus_product(other, sine, sheared);
                rows[k * stride + j + 1] = plus_product(sheared, half, carried[k]);
            }
        }
        UNROLL for (int k = 0; k < count; k++)
        {
            rows[k * stride + sweep->low] = carried[k];
        }
    }
}

NOINLINE void rotate_vectors(struct ql_iteration *ql)
{
    ptrdiff_t row = 0;
    for (; row < ql->n % VECTOR_ROWS_AT_ONCE; row++) {
        rotate_rows(ql, ql->vectors + row * ql->stride, 1);
    }
    for (; row < ql->n; row += VECTOR_ROWS_AT_ONCE) {
        rotate_rows(ql, ql->vectors + row * ql->stride, VECTOR_ROWS_AT_ONCE);
    }
    ql->waiting_count = 0;
}

/* Returns in which lanes it has not converged. */
NOINLINE vector_mask iterate_ql(struct ql_iteration *ql)
{
    const ptrdiff_t n = ql->n;
    ql->first = (vector_mask){0};
    for (ptrdiff_t sweep = 0; sweep < SWEEPS_PER_VALUE * n; sweep++) {
        find_blocks(ql);
        const ptrdiff_t low = least_of(ql->first), high = most_of(ql->last);
        if (low == n - 1) {
            break;
        }
        struct shears *rotations = NULL;
        if (ql->vectors != NULL) {
            rotations = ql->rotations + ql->waiting_count * n;
            ql->waiting[ql->waiting_count++] = (struct sweep){low, high, rotations};
        }
        sweep_blocks(ql, shift_of(ql), rotations, low, high);
        if (ql->waiting_count == SWEEPS_AT_ONCE) {
            rotate_vectors(ql);
        }
    }
    if (ql->waiting_count > 0) {
        rotate_vectors(ql);
    }
    return ql->first < splat_bits((lane_bits)n - 1);
}

#endif
