/* Whether what the kernels of QR decompositions return is the result, in long double. */
#ifndef NUMC_SMALL_REFLECTIONS_H
#define NUMC_SMALL_REFLECTIONS_H

#include "small_matrices.h"

/* Numbers 1 / eps times smaller than v may be anything: tau that make I - tau v v^H unitary. */
static void fill_taus(const struct problem *problem, const char *h, char *taus)
{
    const struct shape *shape = &problem->shapes[0], *of_taus = &problem->shapes[1];
    for (ptrdiff_t k = 0; k < of_taus->rows; k++) {
        long double square = 1;
        for (ptrdiff_t i = k + 1; i < shape->rows; i++) {
            const long double size = cabsl(get(shape, h, i, k));
            square += size * size;
        }
        put(of_taus, taus, k, 0, k % 5 == 4 ? 0 : 2 / square);
    }
}

/* The product of the reflections, all columns of it. */
static void multiply_reflections(const struct problem *problem, const char *h, const char *taus,
                                 exact *q)
{
    const struct shape *shape = &problem->shapes[0], *of_taus = &problem->shapes[1];
    const ptrdiff_t m = shape->rows;
    for (ptrdiff_t i = 0; i < m * m; i++) {
        q[i] = i % (m + 1) == 0 ? 1 : 0;
    }
    for (ptrdiff_t k = of_taus->rows; k-- > 0;) {
        const exact tau = get(of_taus, taus, k, 0);
        for (ptrdiff_t j = 0; j < m; j++) {
            exact share = q[k * m + j];
            for (ptrdiff_t i = k + 1; i < m; i++) {
                share += conjl(get(shape, h, i, k)) * q[i * m + j];
            }
            q[k * m + j] -= tau * share;
            for (ptrdiff_t i = k + 1; i < m; i++) {
                q[i * m + j] -= tau * get(shape, h, i, k) * share;
            }
        }
    }
}

static bool all_finite(const exact *q, ptrdiff_t count)
{
    exact sum = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        sum += q[i] * 0;
    }
    return sum == 0;
}

/* Signs are LAPACK's if each reflection turns its column's first number to the other side of 0. */
static void check_signs(const struct problem *problem, char *const operands[])
{
    const struct shape *shape = &problem->shapes[0], *of_taus = &problem->shapes[1];
    for (ptrdiff_t k = 0; k < of_taus->rows; k++) {
        const exact tau = get(of_taus, operands[1], k, 0), r = get(shape, operands[0], k, k);
        expect(tau == 0 || (creall(tau) >= 1 && cabsl(tau - 1) <= 1 + 8 * problem->epsilon),
               "%s: tau[%td] = %Lg", problem->name, k, creall(tau));
        expect(cimagl(r) == 0, "%s: r[%td] is not real", problem->name, k);
    }
}

/* `before`: the matrix, in whose place are now R and the reflections. */
static void check_reflections(const struct problem *problem, const char *before,
                              char *const operands[], enum matrix_kind kind, bool left)
{
    static exact q[MOST_ORDER * MOST_ORDER];
    const struct shape *shape = &problem->shapes[0];
    const ptrdiff_t m = shape->rows, n = shape->columns;
    const bool is_regular = kind != NOT_A_NUMBER && kind != INFINITE;
    expect(left == !is_regular, "%s, %td x %td: left or not", problem->name, m, n);
    if (left || !is_regular) {
        expect(memcmp(before, operands[0], (size_t)(m * n) * shape->item_size) == 0,
               "%s, %td x %td: left, but written", problem->name, m, n);
        return;
    }
    check_signs(problem, operands);
    multiply_reflections(problem, operands[0], operands[1], q);
    for (ptrdiff_t j = 0; j < n; j++) {
        long double norm = 0;
        for (ptrdiff_t i = 0; i < m; i++) {
            norm += cabsl(get(shape, before, i, j));
        }
        for (ptrdiff_t i = 0; i < m; i++) {
            exact rest = get(shape, before, i, j);
            for (ptrdiff_t k = 0; k <= j && k < m; k++) {
                rest -= q[i * m + k] * get(shape, operands[0], k, j);
            }
            expect(cabsl(rest) <= 8 * m * problem->epsilon * norm,
                   "%s, %td x %td: a - q r = %Lg of %Lg", problem->name, m, n, cabsl(rest), norm);
        }
    }
}

static void check_orthogonal(const struct problem *problem, char *const operands[], bool left)
{
    static exact q[MOST_ORDER * MOST_ORDER];
    const struct shape *shape = &problem->shapes[2];
    const ptrdiff_t m = shape->rows;
    multiply_reflections(problem, operands[0], operands[1], q);
    if (left || !all_finite(q, m * m)) {
        bool is_part_finite = true;
        for (ptrdiff_t i = 0; i < m; i++) {
            is_part_finite = is_part_finite && all_finite(q + i * m, shape->columns);
        }
        expect(left == !is_part_finite, "%s, %td rows: left or not", problem->name, m);
        return;
    }
    for (ptrdiff_t i = 0; i < m; i++) {
        for (ptrdiff_t j = 0; j < shape->columns; j++) {
            const exact x = get(shape, operands[2], i, j);
            expect(cabsl(x - q[i * m + j]) <= 8 * m * problem->epsilon,
                   "%s, %td rows: q[%td][%td] is %Lg too large", problem->name, m, i, j,
                   cabsl(x - q[i * m + j]));
        }
    }
}

#endif
