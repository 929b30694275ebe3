/* Kernels for stacks of small matrices: several matrices at a time, one in each lane of a vector.
 * Knows nothing of Python, NumPy or threads. */
#ifndef NUMC_LINALG_KERNELS_H
#define NUMC_LINALG_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* In NumPy's order of operands of the gufunc: inputs, then outputs. Steps in bytes, of any sign, and data
 * of any alignment. Vectors (b of solve1, w of eigh, s of svd) have a row_step only, scalars neither. */
struct linalg_operand {
    char *data;
    ptrdiff_t step, row_step, column_step;
};

enum { LINALG_MOST_AT_ONCE = 64 };

struct linalg_stack {
    ptrdiff_t count;   /* of matrices, 1 to LINALG_MOST_AT_ONCE */
    ptrdiff_t n;       /* order of the matrices, at least 1; rows of those of qr */
    ptrdiff_t columns; /* of right-hand sides; of the matrices of qr */
    struct linalg_operand operand[4];
    char *workspace; /* of the row's workspace_bytes, aligned to cache lines */
};

/* Computes the matrices of a stack, and returns a mask of those that it leaves to LAPACK, whose outputs may
 * be anything: all that are singular or nearly so, and all with NaN, infinities or subnormal numbers.
 * The bits of a result depend on its matrix and the instruction set alone. May raise floating-point
 * flags that mean nothing. Outputs share no byte with inputs or each other. */
typedef uint64_t linalg_kernel(const struct linalg_stack *stack);

/* A kernel for matrices of order 1 to most_n; a list ends with a row of NULL. */
struct linalg_row {
    const char *gufunc;
    ptrdiff_t most_n;
    linalg_kernel *kernel;
    size_t (*workspace_bytes)(ptrdiff_t n); /* more than every thread's stack has */
};

/* What one instruction set has for one dtype. */
struct linalg_dtype {
    char kind; /* as numpy.dtype.kind */
    size_t item_size;
    const struct linalg_row *rows;
};

/* The row for NumPy's gufunc of that name (numpy.linalg._umath_linalg), inputs of that kind and item
 * size, and order n; NULL if there is none that gains. The best of the processor, within
 * kernels_restrict(). */
const struct linalg_row *linalg_kernel_find(const char *gufunc, char kind, size_t item_size,
                                            ptrdiff_t n);

/* Dtype number `index` of an instruction set, whatever is selected; NULL past the last, or if the
 * processor lacks it. */
const struct linalg_dtype *linalg_dtype_of_isa(const char *isa, int index);

#endif
