/* Products of matrices on all cores: how one is computed is decided once, then carried out. */
#ifndef NUMC_MATMUL_H
#define NUMC_MATMUL_H

#include "matmul_thin.h"
#include "threads/region.h"

/* How a gufunc multiplies one dtype. */
struct matmul_dtype {
    const struct matmul_kernel *kernel; /* NULL: there is only the fallback */
    const struct matmul_kernel *large;  /* for large products alone; NULL: there is none */
    ptrdiff_t item_size;
    bool is_vecdot;                  /* m and n are 1, but of a joined stack */
    const struct thin_kernels *thin; /* of floats and complex numbers; NULL: none */
    bool is_complex;
    bool conjugates; /* the first operand */
    bool has_blas;   /* the fallback calls it, and it may use threads of its own */
};

enum matmul_way {
    MATMUL_FALLBACK, /* the caller's own loop: NumPy's */
    MATMUL_EMPTY,    /* nothing to compute */
    MATMUL_ZEROS,    /* sums of nothing: k is 0 */
    MATMUL_STACK,    /* the kernel's own loop over a stack */
    MATMUL_DIRECT,   /* unpacked */
    MATMUL_RANGES,   /* unpacked, by ranges of rows or columns */
    MATMUL_PACKED,   /* by packed blocks */
    MATMUL_THIN,     /* floats, as fast as the larger operand is read */
    MATMUL_BOOL,     /* truth values as bits */
};

struct matmul_plan {
    const struct policy *policy;
    enum matmul_way way;
    int stack_threads; /* that share the stack */
    int threads;       /* that share each product */
    bool holds_blas;   /* which would use threads of its own beside those that share the stack */
    bool ends_early;   /* perhaps: sums of truth values end at the first product that is true */
    /* The rest is not for MATMUL_FALLBACK. */
    struct thin_task thin;              /* for MATMUL_THIN alone, which has no kernel */
    const struct matmul_kernel *kernel; /* with MATMUL_PACKED perhaps one for large products only */
    void (*stack)(const struct product *x); /* of the kernel, for MATMUL_STACK */
    struct product product; /* rows of c contiguous, where a transposition makes them so */
};

/* Whether the kernel's loop over a stack of sums takes such products. */
bool matmul_suits_dots(const struct matmul_kernel *kernel, const struct product *x);

/* Decides by the shape of one product alone who computes it, so that a product in a stack has the bits of
 * one by itself. The bits of integers, halves and truth values do not depend on threads either. */
void matmul_plan(struct matmul_plan *plan, const struct policy *policy,
                 const struct matmul_dtype *dtype, const struct product *product);

/* Carries out any plan but MATMUL_FALLBACK. */
void matmul_run(const struct matmul_plan *plan);

/* Calls run(context, first, count) for ranges of a stack of products, on the threads that share it. */
void matmul_run_stack(const struct matmul_plan *plan, ptrdiff_t products, region_range *run,
                      void *context);

#endif
