/* The steps of a product, said in another way. */
#ifndef NUMC_PRODUCT_STEPS_H
#define NUMC_PRODUCT_STEPS_H

#include "product.h"

#include <stdbool.h>

/* Axes of one element count as contiguous, whatever their step. */
static inline void product_normalise(struct product *x, ptrdiff_t size)
{
    if (x->m == 1) {
        x->a.row_step = x->c.row_step = size;
    }
    if (x->k == 1) {
        x->a.column_step = x->b.row_step = size;
    }
    if (x->n == 1) {
        x->b.column_step = x->c.column_step = size;
    }
}

static inline struct strided strided_transposed(struct strided x)
{
    return (struct strided){x.data, x.batch_step, x.column_step, x.row_step};
}

/* The same product, computed as c^T = b^T a^T. */
static inline struct product product_transposed(const struct product *x)
{
    return (struct product){
        x->batch,
        x->n,
        x->m,
        x->k,
        strided_transposed(x->b),
        strided_transposed(x->a),
        strided_transposed(x->c),
    };
}

/* A result that is stored by columns is that of the transposed product. */
static inline struct product product_stored_by_rows(const struct product *x, ptrdiff_t size)
{
    const bool by_columns = x->c.column_step != size && x->c.row_step == size;
    return by_columns ? product_transposed(x) : *x;
}

/* BLAS takes rows, or columns, that are contiguous and do not overlap. */
static inline bool rows_are_dense(ptrdiff_t columns, ptrdiff_t row_step, ptrdiff_t column_step,
                                  ptrdiff_t size)
{
    return (columns == 1 || column_step == size) && row_step % size == 0 &&
           row_step >= columns * size;
}

static inline bool strided_suits_blas(const struct strided *x, ptrdiff_t rows, ptrdiff_t columns,
                                      ptrdiff_t size)
{
    return rows_are_dense(columns, x->row_step, x->column_step, size) ||
           rows_are_dense(rows, x->column_step, x->row_step, size);
}

#endif
