/* A call on the short way, its operands read: what call.c and iterated.c share. */
#ifndef NUMC_OPERANDS_H
#define NUMC_OPERANDS_H

#include "call.h"

/* A Python or NumPy scalar, as an element of the loop's dtype. */
union element {
    npy_longdouble aligned;
    char bytes[sizeof(npy_clongdouble)];
};

struct call {
    const struct call_table *table;
    const struct call_row *row;
    PyArrayObject *array[CALL_MOST_OPERANDS]; /* NULL: a scalar, or the output that is to be made */
    union element scalar[CALL_MOST_INPUTS];
};

/* An output that was not given. */
PyArrayObject *call_new_output(const struct call *call, int ndim, const npy_intp shape[],
                               bool is_fortran);

/* Around the computation: floating-point errors are told as np.errstate wants it. `out` is a new
 * reference, which becomes the result, or is given up when there is an exception. */
void call_clear_errors(void);
PyObject *call_finish(const struct call *call, PyArrayObject *out);

/* What has been raised since, and how that is told; 0, or -1 with an exception. */
int call_errors(void);
int call_give_errors(const char *name, int raised);

/* Sorts axes 0 to `axes` - 1 as NumPy's iterator does, the fastest first. `turn` says how operands have an
 * axis and a later one: below 0 if one has them in C order, above 0 if they only have them the other
 * way, 0 if none tells. */
typedef int call_turn(const void *context, int axis, int later);
void call_sort_axes(int axes, int order[], call_turn *turn, const void *context);

/* Whether every input shares no byte with the output, which is given, or coincides with it where
 * that is allowed. */
bool call_output_is_independent(const struct call *call, bool may_coincide);

/* Makes a call whose operands need axes of their own; as call_directly(). */
bool call_iterated(const struct call *call, PyObject **result);

/* The same for a product of matrices or vectors. */
bool call_product(const struct call *call, PyObject **result);

#endif
