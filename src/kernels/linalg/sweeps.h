/* What iterations of tridiagonal and of bidiagonal matrices share. Each lane has its own block of its matrix; a sweep
 * of rotations goes through all of them. */
#ifndef NUMC_SWEEPS_H
#define NUMC_SWEEPS_H

#include "jacobi.h"

enum {
    SWEEPS_PER_VALUE = 30, /* 2 are usual; then LAPACK takes over */
    SWEEPS_AT_ONCE = 8,    /* for which each part of the vectors is loaded once */
    VECTOR_ROWS_AT_ONCE = 4,
};

/* Matrices of two diagonals, and the block of each lane. */
struct lane_blocks {
    vector *diagonal, *next; /* `next` is beside the diagonal */
    vector origin;           /* what has been taken off the diagonal */
    vector least;            /* numbers beside the diagonal that are less count as zero, */
    element least_ratio;     /* and those that are less than so many times the diagonal's */
    ptrdiff_t n;
    vector_mask first, last; /* numbers of the diagonal in each lane's block */
};

/* Lanes whose larger numbers come first. A call: GCC 12 fails where this is inlined and optimized by -O1. */
NOINLINE vector_mask has_larger_first(const vector *diagonal, ptrdiff_t n)
{
    return magnitude(diagonal[0]) > magnitude(diagonal[n - 1]);
}

/* Turned lanes are turned around. */
INLINE void copy_diagonals(const struct lane_blocks *blocks, const vector *diagonal,
                           const vector *next, vector_mask turned)
{
    const ptrdiff_t n = blocks->n;
    for (ptrdiff_t i = 0; i < n; i++) {
        blocks->diagonal[i] = select_lanes(turned, diagonal[n - 1 - i], diagonal[i]);
    }
    for (ptrdiff_t i = 0; i < n - 1; i++) {
        blocks->next[i] = select_lanes(turned, next[n - 2 - i], next[i]);
    }
}

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

INLINE vector gathered(const vector *x, vector_mask index)
{
    vector found = splat(0);
    for (int lane = 0; lane < LANES; lane++) {
        found[lane] = x[index[lane]][lane];
    }
    return found;
}

/* Next to the matrix, or to what is beside it. */
INLINE vector_mask is_negligible(const struct lane_blocks *blocks, ptrdiff_t i)
{
    const vector size = magnitude(blocks->next[i]), ratio = splat(blocks->least_ratio);
    const vector at = magnitude(blocks->diagonal[i] + blocks->origin);
    const vector beside = magnitude(blocks->diagonal[i + 1] + blocks->origin);
    return (size <= blocks->least) | (size * size <= ratio * at * (ratio * beside));
}

/* Lets each lane go on to its first block of more than one number. */
NOINLINE void find_blocks(struct lane_blocks *blocks)
{
    const ptrdiff_t end = blocks->n - 1;
    const vector_mask none = splat_bits((lane_bits)end);
    vector_mask first = blocks->first, last = none;
    for (ptrdiff_t i = least_of(first); i < end; i++) {
        const vector_mask here = splat_bits((lane_bits)i), negligible = is_negligible(blocks, i);
        blocks->next[i] = select_lanes(negligible, splat(0), blocks->next[i]);
        last = select_bits(negligible & (first < here) & (last == none), here, last);
        first -= negligible & (first == here); /* true is -1 */
    }
    blocks->first = first;
    blocks->last = last;
}

/* Turns (x, y) to (length, 0), with a cosine that is not negative. */
struct turn {
    vector length, sine, cosine;
};

INLINE struct turn turn_of(vector x, vector y)
{
    const vector square = plus_product(y * y, x, x);
    const vector_mask turns = square > splat(LEAST_SQUARE);
    const vector size = root(square);
    const vector length = select_lanes(turns, select_lanes(x < splat(0), -size, size), splat(0));
    const vector inverse = splat(1) / length;
    const vector sine = select_lanes(turns, y * inverse, splat(0));
    const vector cosine = select_lanes(turns, x * inverse, splat(1));
    /* They share the errors of the length, which would add up. */
    const vector rest = distance_from_unit(sine, cosine) * splat((element)0.5);
    return (struct turn){length, plus_product(sine, sine, rest),
                         plus_product(cosine, cosine, rest)};
}

/* A rotation as three shears: by the tangent of half the angle, the sine, and that tangent. */
struct shears {
    vector half, sine;
};

INLINE struct shears shears_of(const struct turn *turn, vector_mask active)
{
    return (struct shears){
        select_lanes(active, turn->sine / (splat(1) + turn->cosine), splat(0)),
        select_lanes(active, turn->sine, splat(0)),
    };
}

/* Rotations of columns low to high. */
struct sweep {
    ptrdiff_t low, high;
    const struct shears *rotations;
};

/* The columns of vectors, and the sweeps that wait for being applied to them. */
struct swept_columns {
    vector *vectors;          /* or NULL; its rows are `stride` apart */
    struct shears *rotations; /* SWEEPS_AT_ONCE * n; with vectors only */
    ptrdiff_t n, stride;
    struct sweep waiting[SWEEPS_AT_ONCE];
    int waiting_count;
};

/* Those of the identity, turned around in some lanes. */
NOINLINE void start_vectors(const struct swept_columns *columns, vector_mask turned)
{
    const ptrdiff_t n = columns->n;
    for (ptrdiff_t i = 0; i < n && columns->vectors != NULL; i++) {
        vector *row = columns->vectors + i * columns->stride;
        for (ptrdiff_t j = 0; j < n; j++) {
            row[j] = splat(0);
        }
        row[i] += select_lanes(turned, splat(0), splat(1));
        row[n - 1 - i] += select_lanes(turned, splat(1), splat(0));
    }
}

/* Rotates columns of `count` rows by all sweeps that wait. */
INLINE void rotate_rows(const struct swept_columns *columns, vector *rows, int count)
{
    const ptrdiff_t stride = columns->stride;
    for (int i = 0; i < columns->waiting_count; i++) {
        const struct sweep *sweep = &columns->waiting[i];
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

NOINLINE void rotate_vectors(struct swept_columns *columns)
{
    ptrdiff_t row = 0;
    for (; row < columns->n % VECTOR_ROWS_AT_ONCE; row++) {
        rotate_rows(columns, columns->vectors + row * columns->stride, 1);
    }
    for (; row < columns->n; row += VECTOR_ROWS_AT_ONCE) {
        rotate_rows(columns, columns->vectors + row * columns->stride, VECTOR_ROWS_AT_ONCE);
    }
    columns->waiting_count = 0;
}

/* Where a sweep's rotations of columns low to high are to be written; NULL without vectors. */
INLINE struct shears *add_sweep(struct swept_columns *columns, ptrdiff_t low, ptrdiff_t high)
{
    if (columns->vectors == NULL) {
        return NULL;
    }
    if (columns->waiting_count == SWEEPS_AT_ONCE) {
        rotate_vectors(columns);
    }
    struct shears *rotations = columns->rotations + columns->waiting_count * columns->n;
    columns->waiting[columns->waiting_count++] = (struct sweep){low, high, rotations};
    return rotations;
}

INLINE void finish_sweeps(struct swept_columns *columns)
{
    if (columns->waiting_count > 0) {
        rotate_vectors(columns);
    }
}

#endif
