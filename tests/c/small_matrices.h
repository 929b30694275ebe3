/* Problems for the kernels of small matrices, and whether a result is one, in long double. */
#ifndef NUMC_SMALL_MATRICES_H
#define NUMC_SMALL_MATRICES_H

#include "expect.h"
#include "kernels/linalg/linalg_kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#undef I

enum { MOST_ORDER = 24 };

typedef long double complex exact;

struct shape {
    ptrdiff_t rows, columns;
    size_t item_size;
    bool is_complex;
};

struct problem {
    const char *name;
    linalg_kernel *kernel;
    ptrdiff_t n, columns;
    int inputs, operands;
    struct shape shapes[4];
    long double epsilon, smallest, largest; /* of the dtype; normal numbers */
};

static struct problem problem_of(const struct linalg_dtype *dtype, const struct linalg_row *row,
                                 ptrdiff_t n, ptrdiff_t columns)
{
    const bool is_complex = dtype->kind == 'c';
    const size_t item = dtype->item_size, real = item / (is_complex ? 2 : 1);
    const struct shape square = {n, n, item, is_complex}, scalar = {1, 1, item, is_complex};
    const struct shape right = {n, columns, item, is_complex}, vector = {n, 1, item, is_complex};
    struct problem problem = {row->gufunc, row->kernel,      n, columns, 1,
                              2,           {square, square}, 0, 0,       0};
    problem.epsilon = real == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;
    problem.smallest = real == sizeof(float) ? FLT_MIN : DBL_MIN;
    problem.largest = real == sizeof(float) ? FLT_MAX : DBL_MAX;
    if (strncmp(row->gufunc, "solve", 5) == 0) {
        problem.inputs = 2;
        problem.operands = 3;
        problem.shapes[1] = problem.shapes[2] = row->gufunc[5] == '1' ? vector : right;
    } else if (strcmp(row->gufunc, "det") == 0) {
        problem.shapes[1] = scalar;
    } else if (strcmp(row->gufunc, "slogdet") == 0) {
        problem.operands = 3;
        problem.shapes[1] = scalar;
        problem.shapes[2] = (struct shape){1, 1, real, false};
    }
    return problem;
}

static bool is_cholesky(const struct problem *problem)
{
    return strncmp(problem->name, "cholesky", 8) == 0;
}

static exact get(const struct shape *shape, const char *matrix, ptrdiff_t i, ptrdiff_t j)
{
    const size_t real = shape->item_size / (shape->is_complex ? 2 : 1);
    const char *at = matrix + (i * shape->columns + j) * (ptrdiff_t)shape->item_size;
    long double parts[2] = {0, 0};
    for (int part = 0; part < (shape->is_complex ? 2 : 1); part++) {
        float single;
        double twice;
        memcpy(&single, at + (size_t)part * real, sizeof single);
        memcpy(&twice, at + (real == sizeof twice ? (size_t)part * real : 0),
               real == sizeof twice ? sizeof twice : 0);
        parts[part] = real == sizeof twice ? twice : single;
    }
    exact x;
    memcpy(&x, parts, sizeof x);
    return x;
}

static void put(const struct shape *shape, char *matrix, ptrdiff_t i, ptrdiff_t j, exact x)
{
    char *at = matrix + (i * shape->columns + j) * (ptrdiff_t)shape->item_size;
    long double parts[2];
    memcpy(parts, &x, sizeof x);
    for (int part = 0; part < (shape->is_complex ? 2 : 1); part++) {
        const float single = (float)parts[part];
        const double twice = (double)parts[part];
        if (shape->item_size == sizeof(float) * (shape->is_complex ? 2 : 1)) {
            memcpy(at + (size_t)part * sizeof single, &single, sizeof single);
        } else {
            memcpy(at + (size_t)part * sizeof twice, &twice, sizeof twice);
        }
    }
}

static long double random_real(void)
{
    return (long double)(random_bits() >> 40) * 0x1p-23L - 1;
}

static exact complex_of(long double re, long double im)
{
    const long double parts[2] = {re, im};
    exact x;
    memcpy(&x, parts, sizeof x);
    return x;
}

static exact random_number(bool is_complex)
{
    const long double re = random_real();
    return complex_of(re, is_complex ? random_real() : 0);
}

/* What a matrix of a problem is: SUBNORMAL ones may be LAPACK's, and those between them and SCALED are. */
enum matrix_kind {
    ORDINARY,
    SCALED,
    NOT_A_NUMBER,
    INFINITE,
    ZERO,
    EQUAL,
    RANK_1,
    SUBNORMAL,
    KINDS
};

static enum matrix_kind kind_of(ptrdiff_t index, ptrdiff_t n)
{
    const enum matrix_kind kind = index % 3 == 0 ? (enum matrix_kind)(index / 3 % KINDS) : ORDINARY;
    return n == 1 && (kind == EQUAL || kind == RANK_1) ? ZERO : kind;
}

static void fill_hermitian(const struct problem *problem, char *matrix)
{
    const struct shape *shape = &problem->shapes[0];
    for (ptrdiff_t i = 0; i < problem->n; i++) {
        for (ptrdiff_t j = 0; j <= i; j++) {
            const exact x =
                i == j ? (exact)(2 * problem->n + random_real()) : random_number(shape->is_complex);
            put(shape, matrix, i, j, x);
            put(shape, matrix, j, i, conjl(x));
        }
    }
}

/* Fills matrix number `index` of an input. */
static void fill_input(const struct problem *problem, int input, ptrdiff_t index, char *matrix)
{
    const struct shape *shape = &problem->shapes[input];
    const enum matrix_kind kind = input == 0 ? kind_of(index, problem->n) : ORDINARY;
    const ptrdiff_t n = problem->n, row = (ptrdiff_t)random_below((size_t)n);
    const bool up = strcmp(problem->name, "cholesky_up") == 0;
    const ptrdiff_t column =
        is_cholesky(problem) ? (up ? n - 1 : 0) : (ptrdiff_t)random_below((size_t)n);
    for (ptrdiff_t i = 0; i < shape->rows; i++) {
        for (ptrdiff_t j = 0; j < shape->columns; j++) {
            put(shape, matrix, i, j, random_number(shape->is_complex));
        }
    }
    if (input == 0 && is_cholesky(problem)) {
        fill_hermitian(problem, matrix);
    }
    for (ptrdiff_t i = 0; i < shape->rows && input == 0; i++) {
        for (ptrdiff_t j = 0; j < shape->columns; j++) {
            const long double scale = ldexpl(1, (int)(4 * j - i / 2));
            const long double both = ldexpl(1, (int)(i + j) * -2);
            const exact x = get(shape, matrix, i, j);
            switch (kind) {
            case SCALED:
                put(shape, matrix, i, j, x * (is_cholesky(problem) ? both : scale));
                break;
            case NOT_A_NUMBER:
                put(shape, matrix, i, j, i == row && j == column ? (exact)NAN : x);
                break;
            case INFINITE:
                put(shape, matrix, i, j, i == row && j == column ? (exact)INFINITY : x);
                break;
            case ZERO:
                put(shape, matrix, i, j, 0);
                break;
            case EQUAL: /* the first and last row, and column */
                put(shape, matrix, i, j,
                    get(shape, matrix, i == n - 1 ? 0 : i, j == n - 1 ? 0 : j));
                break;
            case RANK_1:
                put(shape, matrix, i, j, (exact)((i + 1) * (j + 1)) / 3);
                break;
            case SUBNORMAL:
                put(shape, matrix, i, j, i == j ? problem->smallest / 8 : 0);
                break;
            default:
                break;
            }
        }
    }
}

/* An element of the matrix that is meant: cholesky reads one triangle. */
static exact element_of(const struct problem *problem, const char *matrix, ptrdiff_t i, ptrdiff_t j)
{
    const bool up = strcmp(problem->name, "cholesky_up") == 0;
    return is_cholesky(problem) && (up ? i > j : i < j)
               ? conjl(get(&problem->shapes[0], matrix, j, i))
               : get(&problem->shapes[0], matrix, i, j);
}

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

/* a x = b, up to the rounding errors that elimination may have. */
static void check_product(const struct problem *problem, const char *a, const char *x,
                          const char *b, const struct shape *shape)
{
    for (ptrdiff_t j = 0; j < shape->columns; j++) {
        for (ptrdiff_t i = 0; i < problem->n; i++) {
            exact rest = b != NULL ? get(shape, b, i, j) : (exact)(i == j);
            long double sizes = cabsl(rest);
            for (ptrdiff_t k = 0; k < problem->n; k++) {
                const exact term = get(&problem->shapes[0], a, i, k) * get(shape, x, k, j);
                rest -= term;
                sizes += cabsl(term);
            }
            expect(cabsl(rest) <= 16 * problem->n * problem->epsilon * sizes,
                   "%s, n %td: a x - b = %Lg, of numbers of %Lg", problem->name, problem->n,
                   cabsl(rest), sizes);
        }
    }
}

static void check_factor(const struct problem *problem, const char *a, const char *factor)
{
    const struct shape *shape = &problem->shapes[0];
    const bool up = strcmp(problem->name, "cholesky_up") == 0;
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

/* The result of one matrix, or that it is left to LAPACK. */
static void check_result(const struct problem *problem, ptrdiff_t index, char *const operands[],
                         bool left)
{
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
    const enum matrix_kind kind = kind_of(index, problem->n);
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
