/* The operands of a call that needs none of NumPy's machinery: ordinary arrays. */
#ifndef NUMC_OPERANDS_H
#define NUMC_OPERANDS_H

#include "call_table.h"
#include "scalars.h"

#include "kernels/extent.h"

struct ufunc_call {
    const struct call_table *table;
    const struct call_row *row;
    PyArrayObject *array[CALL_MOST_OPERANDS]; /* NULL: a scalar, or the output that is to be made */
    union element scalar[CALL_MOST_INPUTS];
    PyArrayObject *mask; /* NULL: all elements are computed */
    bool is_resolved;    /* as resolved_call.c found; only then there is: */
    NPY_ORDER order;     /* of an output that is to be made */
    convert_elements *convert[CALL_MOST_OPERANDS]; /* arrays of another dtype; NULL: of the row's */
};

/* Whether an operand is an array of another dtype than the loop's. */
static inline bool operands_is_converted(const struct ufunc_call *call, int operand)
{
    return call->is_resolved && call->convert[operand] != NULL;
}

/* Whether NumPy casts an input as a whole, to contiguous elements, before its iterator sees it. */
bool operands_is_cast_whole(const struct ufunc_call *call, int input);

/* Whether an argument has no __array_ufunc__ of its own, which is to see the ufunc that was called, nor a dtype
 * whose loops may have been registered with that one alone. */
bool operands_is_ordinary(PyObject *object);

/* Whether all are: no argument of a call can tell which ufunc it is passed to. */
bool operands_are_ordinary(PyObject *const *args, Py_ssize_t positional, PyObject *keywords);

/* Whether `out=` asks for a new array: None, and from NumPy 2.3 on `...`, which differs from it where the
 * result has no axes. */
bool operands_asks_for_new(PyObject *out);

/* An output that was not given; NULL with an exception. */
static inline PyArrayObject *operands_new_output(const struct ufunc_call *call, int ndim,
                                                 const npy_intp shape[], bool is_fortran)
{
    PyArray_Descr *dtype = call->row->output;
    Py_INCREF(dtype);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, NULL, NULL,
                                                 is_fortran, NULL);
}

/* The same, its axes in that order, the fastest first. */
PyArrayObject *operands_new_output_in_order(const struct ufunc_call *call, int ndim,
                                            const npy_intp shape[], const int order[]);

/* PyArray_SIZE() is a call. */
static inline npy_intp array_size(PyArrayObject *array)
{
    npy_intp size = 1;
    for (int axis = 0; axis < PyArray_NDIM(array); axis++) {
        size *= PyArray_DIM(array, axis);
    }
    return size;
}

/* Elements of the largest array among arguments; 0 if there is none. */
static inline npy_intp operands_largest(PyObject *const *args, Py_ssize_t count)
{
    npy_intp largest = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        const npy_intp size =
            PyArray_CheckExact(args[i]) ? array_size((PyArrayObject *)args[i]) : 0;
        largest = size > largest ? size : largest;
    }
    return largest;
}

/* Elements of arrays when they are broadcast, those that are NULL aside; 0 where the shapes do not go
 * together. */
npy_intp operands_size(PyArrayObject *const array[], int count);

/* Aligned, in the machine's byte order, and without metadata. */
bool array_is_plain(PyArrayObject *array);

/* The bytes that an array's elements lie in. */
struct extent array_extent(PyArrayObject *array);

/* The stride of an axis; 0 where there is one element: it means nothing, NumPy makes it zero, too. */
static inline npy_intp array_step(PyArrayObject *array, int axis)
{
    return PyArray_DIM(array, axis) != 1 ? PyArray_STRIDE(array, axis) : 0;
}

/* Whether no two elements of an array share a byte: each axis steps over all that lies within the smaller
 * ones. */
bool array_is_injective(PyArrayObject *array);

/* Whether one step, in bytes, leads through an array, in some order of its axes. */
bool array_is_one_line(PyArrayObject *array, npy_intp *step);

/* Whether no element of an array lies before one that it follows, unless it `is_cast`, and thereby copied. Where it may
 * not repeat, whether each element is met once, too, or all are one. */
bool array_goes_forward(PyArrayObject *array, bool is_cast, bool may_repeat);

/* Whether `out` shares no byte with a mask, nor with any of `count` arrays, unless it is the very same one,
 * and `may_coincide`. Arrays and mask that are NULL do not count. */
bool operands_output_is_independent(PyArrayObject *const array[], int count, PyArrayObject *mask,
                                    PyArrayObject *out, bool may_coincide);

/* Compares an axis with a later one as NumPy's iterator does: -1 keep their C order, 1 swap them,
 * 0 undecided. */
typedef int axes_turn(const void *context, int axis, int later);

/* What all operands so far say, with one more: its steps along both axes. Operands that disagree keep C order. */
static inline int axes_turn_with(int turn, npy_intp outer, npy_intp inner)
{
    if (outer == 0 || inner == 0) {
        return turn;
    }
    return turn < 0 || Py_ABS(inner) <= Py_ABS(outer) ? -1 : 1;
}

/* Sorts axes 0 to `axes` - 1 into `order`, the fastest first, as that iterator goes through them. */
void axes_sort(int axes, int order[], axes_turn *turn, const void *context);

/* Sorts the axes of an array by their strides, the smallest first; among equal ones the last comes first. */
void axes_sort_by_stride(PyArrayObject *array, int order[]);

#endif
