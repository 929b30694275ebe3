/* The operands of a call that needs none of NumPy's machinery: ordinary arrays. */
#ifndef NUMC_OPERANDS_H
#define NUMC_OPERANDS_H

#include "call_table.h"

#include "engine/overlap.h"

/* A Python or NumPy scalar, as an element of the loop's dtype. */
union element {
    npy_longdouble aligned;
    char bytes[sizeof(npy_clongdouble)];
};

struct ufunc_call {
    const struct call_table *table;
    const struct call_row *row;
    PyArrayObject *array[CALL_MOST_OPERANDS]; /* NULL: a scalar, or the output that is to be made */
    union element scalar[CALL_MOST_INPUTS];
    PyArrayObject *mask; /* NULL: all elements are computed */
    bool is_mixed;       /* some arrays are not of the row's dtype, but are converted: */
    convert_elements *convert[CALL_MOST_INPUTS]; /* NULL: of the row's; only if is_mixed */
};

/* An output that was not given; NULL with an exception. */
static inline PyArrayObject *operands_new_output(const struct ufunc_call *call, int ndim,
                                                 const npy_intp shape[], bool is_fortran)
{
    PyArray_Descr *dtype = call->row->output;
    Py_INCREF(dtype);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, NULL, NULL,
                                                 is_fortran, NULL);
}

/* Elements of the call when its operands are broadcast; 0 where the shapes do not go together. */
npy_intp operands_size(const struct ufunc_call *call);

/* Aligned, in the machine's byte order, and without metadata. */
bool array_is_plain(PyArrayObject *array);

/* The bytes that an array's elements lie in. */
struct extent array_extent(PyArrayObject *array);

/* Whether every input, and the mask, shares no byte with the output, which is given, or coincides with it where
 * that is allowed: not if NumPy would cast it. */
bool operands_output_is_independent(const struct ufunc_call *call, bool may_coincide);

#endif
