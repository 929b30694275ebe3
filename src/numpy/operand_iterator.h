/* NumPy's iterator over the operands of an element-wise call. */
#ifndef NUMC_OPERAND_ITERATOR_H
#define NUMC_OPERAND_ITERATOR_H

#include "numpy_api.h"

#include "engine/elementwise.h"

struct iterator_operands {
    int inputs, operands;
    PyArrayObject *array[MOST_OPERANDS]; /* borrowed; NULL: an output that is to be made */
    PyArray_Descr *dtype[MOST_OPERANDS]; /* of the inner loop; borrowed */
    PyArrayObject *mask;                 /* NULL: there is none */
    NPY_ORDER order;
};

/* Makes outputs that are missing as NumPy would; the mask is one operand more, after the others. NULL without
 * an exception: NumPy's own path says what is wrong. */
NpyIter *operand_iterator_new(const struct iterator_operands *operands, npy_uint32 flags,
                              npy_uint32 operand_flags, NPY_CASTING casting);

#endif
