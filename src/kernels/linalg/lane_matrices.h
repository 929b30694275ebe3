/* Matrices of numbers, real or complex, in lanes: row after row, a number's parts one after the other. */
#ifndef NUMC_LANE_MATRICES_H
#define NUMC_LANE_MATRICES_H

#include "lane_transpose.h"

/* Order of a matrix: up to here LAPACK is slower. */
enum { MOST_N = LANE_BYTES >= 32 && PARTS == 1 ? 24 : 16 };

static size_t two_matrices(ptrdiff_t n)
{
    (void)n; /* rows and columns beside the matrix may be MOST_N */
    return 2 * MOST_N * MOST_N * sizeof(number);
}

/* The matrices of a stack that are computed together. Lanes without one repeat the last. */
struct lane_group {
    ptrdiff_t first;
    int lanes;
};

/* Computes a group of a stack; returns the lanes that are left to LAPACK. */
typedef vector_mask compute_group(const struct linalg_stack *stack, const struct lane_group *group);

INLINE uint64_t compute_groups(const struct linalg_stack *stack, compute_group *compute)
{
    uint64_t left = 0;
    for (ptrdiff_t first = 0; first < stack->count; first += LANES) {
        const ptrdiff_t rest = stack->count - first;
        const struct lane_group group = {first, rest < LANES ? (int)rest : LANES};
        const uint64_t lanes = ((uint64_t)1 << group.lanes) - 1;
        left |= (mask_bits(compute(stack, &group)) & lanes) << first;
    }
    return left;
}

/* Through a pointer: a struct that is returned would be copied as a vector, long before its parts are. */
INLINE void find_addresses(const struct linalg_operand *x, const struct lane_group *group,
                           struct lane_addresses *at)
{
    char *data = x->data + group->first * x->step;
    for (int lane = 0; lane < LANES; lane++) {
        at->of[lane] = data;
        data += lane + 1 < group->lanes ? x->step : 0;
    }
}

INLINE void transpose_numbers(number *x, ptrdiff_t n, ptrdiff_t stride)
{
    for (ptrdiff_t i = 1; i < n; i++) {
        for (ptrdiff_t j = 0; j < i; j++) {
            const number lower = x[i * stride + j];
            x[i * stride + j] = x[j * stride + i];
            x[j * stride + i] = lower;
        }
    }
}

/* Square matrices that are contiguous column after column. */
INLINE bool is_transposed(const struct linalg_operand *x, ptrdiff_t rows, ptrdiff_t columns)
{
    const ptrdiff_t item = PARTS * (ptrdiff_t)sizeof(element);
    return rows == columns && rows > 1 && x->row_step == item && x->column_step == rows * item;
}

NOINLINE void load_numbers(const struct linalg_operand *x, const struct lane_group *group,
                           ptrdiff_t rows, ptrdiff_t columns, number *to)
{
    const ptrdiff_t size = sizeof(element), item = PARTS * size;
    struct lane_addresses from;
    find_addresses(x, group, &from);
    const bool transposed = is_transposed(x, rows, columns);
    if (transposed || (x->column_step == item && x->row_step == columns * item)) {
        load_line(&from, 0, rows * columns * PARTS, (vector *)to);
        if (transposed) {
            transpose_numbers(to, rows, rows);
        }
        return;
    }
    for (ptrdiff_t i = 0; i < rows; i++) {
        if (x->column_step == item) {
            load_line(&from, i * x->row_step, columns * PARTS, (vector *)(to + i * columns));
            continue;
        }
        for (ptrdiff_t j = 0; j < columns; j++) {
            for (int part = 0; part < PARTS; part++) {
                load_squares(&from, i * x->row_step + j * x->column_step + part * size, 1,
                             (vector *)(to + i * columns + j) + part);
            }
        }
    }
}

/* May reorder what is in `from`. */
NOINLINE void store_numbers(const struct linalg_operand *x, const struct lane_group *group,
                            ptrdiff_t rows, ptrdiff_t columns, number *from)
{
    const ptrdiff_t size = sizeof(element), item = PARTS * size;
    struct lane_addresses to;
    find_addresses(x, group, &to);
    const bool transposed = is_transposed(x, rows, columns);
    if (transposed || (x->column_step == item && x->row_step == columns * item)) {
        if (transposed) {
            transpose_numbers(from, rows, rows);
        }
        store_line(&to, 0, rows * columns * PARTS, group->lanes, (const vector *)from);
        return;
    }
    for (ptrdiff_t i = 0; i < rows; i++) {
        if (x->column_step == item) {
            store_line(&to, i * x->row_step, columns * PARTS, group->lanes,
                       (const vector *)(from + i * columns));
            continue;
        }
        for (ptrdiff_t j = 0; j < columns; j++) {
            for (int part = 0; part < PARTS; part++) {
                store_squares(&to, i * x->row_step + j * x->column_step + part * size, 1,
                              group->lanes, (const vector *)(from + i * columns + j) + part);
            }
        }
    }
}

/* A vector of real numbers. */
NOINLINE void store_reals(const struct linalg_operand *x, const struct lane_group *group,
                          ptrdiff_t count, const vector *from)
{
    struct lane_addresses to;
    find_addresses(x, group, &to);
    if (x->row_step == (ptrdiff_t)sizeof(element)) {
        store_line(&to, 0, count, group->lanes, from);
        return;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        store_squares(&to, i * x->row_step, 1, group->lanes, from + i);
    }
}

#endif
