/* Whether what the kernels of small matrices return is the result, in long double. */
#ifndef NUMC_SMALL_RESULTS_H
#define NUMC_SMALL_RESULTS_H

#include "small_matrices.h"
#include "small_reflections.h"

/* The inverse and the determinant, by Gauss-Jordan elimination. Returns whether there is one. */
static bool invert(const struct problem *problem, const char *matrix, exact *inverse, exact *det)
{
    const ptrdiff_t n = problem->n;
    exact a[MOST_ORDER][2 * MOST_ORDER];
    *det = 1;
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            a[i][j] = element_of(problem, matrix, i, j);
            a[i][n + j] = i == j ? 1 : 0;
        }
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        ptrdiff_t pivot = k;
        for (ptrdiff_t i = k + 1; i < n; i++) {
            pivot = cabsl(a[i][k]) > cabsl(a[pivot][k]) ? i : pivot;
        }
        if (!(cabsl(a[pivot][k]) > 0)) {
            return false;
        }
        for (ptrdiff_t j = 0; j < 2 * n; j++) {
            const exact x = a[k][j];
            a[k][j] = a[pivot][j];
            a[pivot][j] = x;
        }
        *det *= pivot == k ? a[k][k] : -a[k][k];
        for (ptrdiff_t i = 0; i < n; i++) {
            const exact factor = a[i][k] / a[k][k];
            for (ptrdiff_t j = k; j < 2 * n && i != k; j++) {
                a[i][j] -= factor * a[k][j];
            }
        }
        for (ptrdiff_t j = 2 * n - 1; j >= k; j--) {
            a[k][j] /= a[k][k];
        }
    }
    for (ptrdiff_t i = 0; i < n * n; i++) {
        inverse[i] = a[i / n][n + i % n];
    }
    return true;
}

/* a x = b, up to the rounding errors of elimination, which are those of the largest numbers in a column. */
static void check_product(const struct problem *problem, const char *a, const char *x,
                          const char *b, const struct shape *shape)
{
    for (ptrdiff_t j = 0; j < shape->columns; j++) {
        long double largest_rest = 0, largest_size = 0;
        for (ptrdiff_t i = 0; i < problem->n; i++) {
            exact rest = b != NULL ? get(shape, b, i, j) : (exact)(i == j);
            long double size = cabsl(rest);
            for (ptrdiff_t k = 0; k < problem->n; k++) {
                const exact term = get(&problem->shapes[0], a, i, k) * get(shape, x, k, j);
                rest -= term;
                size += cabsl(term);
            }
            largest_size = fmaxl(largest_size, size);
            largest_rest = cabsl(rest) <= largest_rest ? largest_rest : cabsl(rest); /* or NaN */
        }
        expect(largest_rest <= 4 * problem->n * problem->epsilon * largest_size,
               "%s, n %td: a x - b = %Lg, of numbers of %Lg", problem->name, problem->n,
               largest_rest, largest_size);
    }
}

static void check_factor(const struct problem *problem, const char *a, const char *factor)
{
    const struct shape *shape = &problem->shapes[0];
    const bool up = reads_upper(problem);
    for (ptrdiff_t i = 0; i < problem->n; i++) {
        for (ptrdiff_t j = 0; j < problem->n; j++) {
            exact sum = 0;
            for (ptrdiff_t k = 0; k < problem->n; k++) {
                const exact x = up ? get(shape, factor, k, i) : get(shape, factor, i, k);
                const exact y = up ? get(shape, factor, k, j) : get(shape, factor, j, k);
                sum += up ? conjl(x) * y : x * conjl(y);
            }
            const long double scale =
                sqrtl(creall(get(shape, a, i, i)) * creall(get(shape, a, j, j)));
            expect(cabsl(sum - get(shape, a, i, j)) <= 8 * problem->n * problem->epsilon * scale,
                   "%s, n %td: a[%td][%td]", problem->name, problem->n, i, j);
            const exact x = get(shape, factor, i, j);
            expect(i == j ? creall(x) > 0 && cimagl(x) == 0 : (up ? i < j : i > j) || x == 0,
                   "%s, n %td: shape of the factor", problem->name, problem->n);
        }
    }
}

static void check_determinant(const struct problem *problem, char *const operands[], exact det,
                              long double tolerance)
{
    const exact first = get(&problem->shapes[1], operands[1], 0, 0);
    if (problem->operands == 2) {
        expect(cabsl(first - det) <= tolerance * cabsl(det), "%s, n %td: %Lg instead of %Lg",
               problem->name, problem->n, creall(first), creall(det));
        return;
    }
    const long double log_det = logl(cabsl(det));
    const long double found = creall(get(&problem->shapes[2], operands[2], 0, 0));
    expect(cabsl(first - det / cabsl(det)) <= tolerance, "%s, n %td: sign", problem->name,
           problem->n);
    expect(fabsl(found - log_det) <= tolerance + problem->epsilon * fabsl(log_det),
           "%s, n %td: %Lg instead of %Lg", problem->name, problem->n, found, log_det);
}

/* Whether det has a result that is far from over- and underflow. */
static bool is_in_range(const struct problem *problem, exact det)
{
    return strcmp(problem->name, "det") != 0 ||
           (cabsl(det) > problem->smallest * 16 && cabsl(det) < problem->largest / 16);
}

/* Sums of powers of the values, which all of them together determine, are traces of powers of the matrix. */
static void check_values(const struct problem *problem, const exact *matrix,
                         const long double *values, long double norm)
{
    const ptrdiff_t n = problem->n;
    exact power[MOST_ORDER * MOST_ORDER], next[MOST_ORDER * MOST_ORDER];
    memcpy(power, matrix, (size_t)(n * n) * sizeof *power);
    /* Of large matrices the residuals say more, and powers take long. */
    for (ptrdiff_t k = 1; k <= (n <= MOST_SMALL_ORDER ? n : 3); k++) {
        exact trace = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            trace += power[i * n + i] / powl(norm, k) - powl(values[i] / norm, k);
        }
        expect(cabsl(trace) <= 16 * n * k * problem->epsilon, "%s, n %td: sum of powers %td: %Lg",
               problem->name, n, k, cabsl(trace));
        for (ptrdiff_t i = 0; i < n * n; i++) {
            next[i] = 0;
            for (ptrdiff_t j = 0; j < n; j++) {
                next[i] += power[i / n * n + j] * matrix[j * n + i % n];
            }
        }
        memcpy(power, next, (size_t)(n * n) * sizeof *power);
    }
}

static void check_columns(const struct problem *problem, const exact *columns, const char *what)
{
    const ptrdiff_t n = problem->n;
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = 0; j <= i; j++) {
            exact sum = i == j ? -1 : 0;
            for (ptrdiff_t k = 0; k < n; k++) {
                sum += conjl(columns[k * n + i]) * columns[k * n + j];
            }
            expect(cabsl(sum) <= 16 * n * problem->epsilon, "%s, n %td: %s, columns %td, %td: %Lg",
                   problem->name, n, what, i, j, cabsl(sum));
        }
    }
}

/* a * right = left * values, and the values and the columns are those of the problem. */
static void check_decomposition(const struct problem *problem, char *const operands[])
{
    const ptrdiff_t n = problem->n;
    const bool svd = is_svd(problem);
    const int of_values = svd && problem->operands == 4 ? 2 : 1;
    exact a[MOST_ORDER * MOST_ORDER], squared[MOST_ORDER * MOST_ORDER];
    long double values[MOST_ORDER], norm = 0;
    for (ptrdiff_t i = 0; i < n * n; i++) {
        a[i] = element_of(problem, operands[0], i / n, i % n);
        if (i % (n + 1) == 0 && is_eigen(problem)) {
            a[i] = creall(a[i]);
        }
        norm += cabsl(a[i]);
    }
    norm = norm > 0 ? norm : 1;
    for (ptrdiff_t i = 0; i < n; i++) {
        values[i] = creall(get(&problem->shapes[of_values], operands[of_values], i, 0));
        expect(i == 0 || (svd ? values[i] <= values[i - 1] : values[i] >= values[i - 1]),
               "%s, n %td: order of values", problem->name, n);
    }
    if (problem->operands > 2) {
        exact left[MOST_ORDER * MOST_ORDER], right[MOST_ORDER * MOST_ORDER];
        for (ptrdiff_t i = 0; i < n * n; i++) {
            left[i] = get(&problem->shapes[0], operands[svd ? 1 : 2], i / n, i % n);
            right[i] = svd ? conjl(get(&problem->shapes[0], operands[3], i % n, i / n)) : left[i];
        }
        for (ptrdiff_t i = 0; i < n * n; i++) {
            exact rest = -left[i] * values[i % n];
            for (ptrdiff_t k = 0; k < n; k++) {
                rest += a[i / n * n + k] * right[k * n + i % n];
            }
            expect(cabsl(rest) <= 8 * n * problem->epsilon * norm, "%s, n %td: a v - w u = %Lg",
                   problem->name, n, cabsl(rest));
        }
        check_columns(problem, left, "left");
        check_columns(problem, right, "right");
    }
    for (ptrdiff_t i = 0; i < n * n && svd; i++) {
        squared[i] = 0;
        for (ptrdiff_t k = 0; k < n; k++) {
            squared[i] += conjl(a[k * n + i / n]) * a[k * n + i % n];
        }
    }
    for (ptrdiff_t i = 0; i < n && svd; i++) {
        values[i] *= values[i];
    }
    check_values(problem, svd ? squared : a, values, svd ? norm * norm : norm);
}

/* The result of one matrix, or that it is left to LAPACK. `before`: the first operand, before the call. */
static void check_result(const struct problem *problem, ptrdiff_t index, const char *before,
                         char *const operands[], bool left)
{
    const enum matrix_kind kind = kind_of(index, problem->n);
    if (problem->in_place) {
        check_reflections(problem, before, operands, kind, left);
        return;
    }
    if (is_qr(problem)) {
        check_orthogonal(problem, operands, left);
        return;
    }
    if (is_eigen(problem) || is_svd(problem)) {
        const bool is_finite = kind != NOT_A_NUMBER && kind != INFINITE;
        expect(left ? !is_finite || kind == SUBNORMAL : is_finite, "%s, n %td: left or not",
               problem->name, problem->n);
        if (!left && is_finite) {
            check_decomposition(problem, operands);
        }
        return;
    }
    exact inverse[MOST_ORDER * MOST_ORDER], det;
    const struct shape *square = &problem->shapes[0];
    const bool regular = invert(problem, operands[0], inverse, &det);
    /* How many times larger relative errors of the determinant are than those of elements. */
    long double growth = regular ? 0 : (long double)INFINITY;
    for (ptrdiff_t i = 0; i < problem->n && regular; i++) {
        for (ptrdiff_t j = 0; j < problem->n; j++) {
            growth += cabsl(element_of(problem, operands[0], i, j) * inverse[j * problem->n + i]);
        }
    }
    if (!(growth * problem->epsilon < 0x1p-4L)) {
        expect(left, "%s, n %td: irregular, but not left", problem->name, problem->n);
        return;
    }
    const bool is_ordinary = growth * problem->epsilon < 0x1p-12L && is_in_range(problem, det) &&
                             kind != SUBNORMAL && (kind != SCALED || problem->n <= 8);
    expect(!left || !is_ordinary, "%s, n %td: left", problem->name, problem->n);
    if (left) {
        return;
    }
    if (is_cholesky(problem)) {
        check_factor(problem, operands[0], operands[1]);
    } else if (strcmp(problem->name, "inv") == 0) {
        check_product(problem, operands[0], operands[1], NULL, square);
    } else if (problem->inputs == 2) {
        check_product(problem, operands[0], operands[2], operands[1], &problem->shapes[1]);
    } else {
        check_determinant(problem, operands, det, 8 * problem->epsilon * growth);
    }
}

#endif
