/* Problems for the kernels of small matrices. */
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

enum { MOST_ORDER = 64, MOST_SMALL_ORDER = 24, MOST_QUICK_ORDER = 8, MOST_SIDES = 26 };

typedef long double complex exact;

struct shape {
    ptrdiff_t rows, columns;
    size_t item_size;
    bool is_complex;
};

struct problem {
    const char *name;
    const struct linalg_row *row;
    ptrdiff_t n, columns;
    int inputs, operands;
    bool in_place; /* the first input is an output, too */
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
    const struct shape reals = {n, 1, real, false};
    struct problem problem = {row->gufunc, row, n, columns, 1, 2, false, {square, square}, 0, 0, 0};
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
    } else if (strncmp(row->gufunc, "eigvalsh", 8) == 0 || strcmp(row->gufunc, "svd") == 0 ||
               strcmp(row->gufunc, "svd_n") == 0) {
        problem.shapes[1] = reals;
    } else if (strncmp(row->gufunc, "eigh", 4) == 0) {
        problem.operands = 3;
        problem.shapes[1] = reals;
        problem.shapes[2] = square;
    } else if (strncmp(row->gufunc, "svd_", 4) == 0) {
        problem.operands = 4;
        problem.shapes[2] = reals;
        problem.shapes[3] = square;
    } else if (strncmp(row->gufunc, "qr_", 3) == 0) {
        const ptrdiff_t least = n < columns ? n : columns;
        problem.in_place = strncmp(row->gufunc, "qr_r_raw", 8) == 0;
        problem.inputs = problem.in_place ? 1 : 2;
        problem.operands = problem.in_place ? 2 : 3;
        problem.shapes[0] = right;
        problem.shapes[1] = (struct shape){least, 1, item, is_complex};
        problem.shapes[2] = strcmp(row->gufunc, "qr_complete") == 0
                                ? square
                                : (struct shape){n, least, item, is_complex};
    }
    return problem;
}

static bool is_eigen(const struct problem *problem)
{
    return strncmp(problem->name, "eig", 3) == 0;
}

static bool is_svd(const struct problem *problem)
{
    return strncmp(problem->name, "svd", 3) == 0;
}

static bool is_qr(const struct problem *problem)
{
    return strncmp(problem->name, "qr_", 3) == 0;
}

static bool is_cholesky(const struct problem *problem)
{
    return strncmp(problem->name, "cholesky", 8) == 0;
}

static bool is_hermitian(const struct problem *problem)
{
    return is_cholesky(problem) || is_eigen(problem);
}

static bool reads_upper(const struct problem *problem)
{
    return strcmp(problem->name + strlen(problem->name) - 3, "_up") == 0;
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
    DIAGONAL,
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
                i == j ? (exact)((is_cholesky(problem) ? 2 * problem->n : 0) + random_real())
                       : random_number(shape->is_complex);
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
    const ptrdiff_t column = is_hermitian(problem)
                                 ? (reads_upper(problem) ? n - 1 : 0)
                                 : (ptrdiff_t)random_below((size_t)shape->columns);
    for (ptrdiff_t i = 0; i < shape->rows; i++) {
        for (ptrdiff_t j = 0; j < shape->columns; j++) {
            put(shape, matrix, i, j, random_number(shape->is_complex));
        }
    }
    if (input == 0 && is_hermitian(problem)) {
        fill_hermitian(problem, matrix);
    }
    for (ptrdiff_t i = 0; i < shape->rows && input == 0; i++) {
        for (ptrdiff_t j = 0; j < shape->columns; j++) {
            const long double scale =
                ldexpl(1, n <= MOST_SMALL_ORDER ? (int)(4 * j - i / 2) : (int)(j - i / 2));
            const long double both =
                ldexpl(1, n <= MOST_SMALL_ORDER ? (int)(i + j) * -2 : (int)(i + j) / -2);
            const exact x = get(shape, matrix, i, j);
            switch (kind) {
            case SCALED:
                put(shape, matrix, i, j, x * (is_hermitian(problem) ? both : scale));
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
                    get(shape, matrix, i == n - 1 ? 0 : i, j == shape->columns - 1 ? 0 : j));
                break;
            case RANK_1:
                put(shape, matrix, i, j, (exact)((i + 1) * (j + 1)) / 3);
                break;
            case DIAGONAL:
                put(shape, matrix, i, j, i == j ? x : 0);
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

/* An element of the matrix that is meant: of Hermitian ones one triangle is read. */
static exact element_of(const struct problem *problem, const char *matrix, ptrdiff_t i, ptrdiff_t j)
{
    return is_hermitian(problem) && (reads_upper(problem) ? i > j : i < j)
               ? conjl(get(&problem->shapes[0], matrix, j, i))
               : get(&problem->shapes[0], matrix, i, j);
}

#endif
