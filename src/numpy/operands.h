/* The operands of a call that needs none of NumPy's machinery: ordinary arrays of one dtype. */
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
};

/* Called once, at import. -1 with an exception. */
int operands_initialize(void);

/* Reads the operands of a vectorcall for the table that `call` has. False: they are unusual, the call is
 * NumPy's. */
bool operands_read(struct ufunc_call *call, PyObject *const *args, size_t count,
                   PyObject *keywords);

/* An output that was not given; NULL with an exception. */
PyArrayObject *operands_new_output(const struct ufunc_call *call, int ndim, const npy_intp shape[],
                                   bool is_fortran);

/* Elements of the call when its operands are broadcast; 0 where the shapes do not go together. */
npy_intp operands_size(const struct ufunc_call *call);

/* The bytes that an array's elements lie in. */
struct extent array_extent(PyArrayObject *array);

/* Whether every input shares no byte with the output, which is given, or coincides with it where
 * that is allowed. */
bool operands_output_is_independent(const struct ufunc_call *call, bool may_coincide);

#endif
