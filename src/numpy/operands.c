/* Shapes of operands, where in memory they lie, and the order of their axes. */
#include "operands.h"

#include "numpy_private.h"

#include <string.h>

npy_intp operands_size(PyArrayObject *const array[], int count)
{
    npy_intp size = 1;
    for (int axis = 1; axis <= NPY_MAXDIMS; axis++) {
        npy_intp longest = 1;
        bool exists = false;
        for (int i = 0; i < count; i++) {
            if (array[i] != NULL && axis <= PyArray_NDIM(array[i])) {
                const npy_intp n = PyArray_DIM(array[i], PyArray_NDIM(array[i]) - axis);
                if (n != 1 && longest != 1 && n != longest) {
                    return 0;
                }
                longest = n != 1 ? n : longest;
                exists = true;
            }
        }
        if (!exists) {
            break;
        }
        size *= longest;
    }
    return size;
}

bool operands_is_cast_whole(const struct ufunc_call *call, int input)
{
    bool is_cast = call->mask == NULL && operands_is_converted(call, input);
    /* It does so until it finds one that is too large. */
    for (int i = 0; i <= input && is_cast; i++) {
        is_cast = !operands_is_converted(call, i) ||
                  (PyArray_NDIM(call->array[i]) <= 1 &&
                   array_size(call->array[i]) <= private_buffer_size());
    }
    return is_cast;
}

PyArrayObject *operands_new_output_in_order(const struct ufunc_call *call, int ndim,
                                            const npy_intp shape[], const int order[])
{
    PyArray_Descr *dtype = call->row->output;
    npy_intp strides[NPY_MAXDIMS];
    /* Unsigned, since that of an array that is too large, which NumPy refuses below, wraps. */
    npy_uintp stride = (npy_uintp)PyDataType_ELSIZE(dtype);
    for (int i = 0; i < ndim; i++) {
        strides[order[i]] = (npy_intp)stride;
        stride *= (npy_uintp)shape[order[i]];
    }
    Py_INCREF(dtype);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, strides, NULL,
                                                 0, NULL);
}

bool operands_is_ordinary(PyObject *object)
{
    if (PyArray_CheckExact(object)) {
        return PyArray_TYPE((PyArrayObject *)object) <= NPY_HALF;
    }
    if (PyTuple_CheckExact(object)) { /* outputs, or axes */
        bool are = true;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object) && are; i++) {
            are = operands_is_ordinary(PyTuple_GET_ITEM(object, i));
        }
        return are;
    }
    return PyLong_CheckExact(object) || PyBool_Check(object) || PyFloat_CheckExact(object) ||
           PyUnicode_CheckExact(object) || object == Py_None || PyComplex_CheckExact(object) ||
           PyList_CheckExact(object) || PySlice_Check(object) || object == Py_Ellipsis ||
           PyArray_CheckAnyScalarExact(object) || dtype_asked_for(object) >= 0;
}

bool operands_are_ordinary(PyObject *const *args, Py_ssize_t positional, PyObject *keywords)
{
    const Py_ssize_t all = positional + (keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0);
    bool are = true;
    for (Py_ssize_t i = 0; i < all && are; i++) {
        are = operands_is_ordinary(args[i]);
    }
    return are;
}

bool operands_asks_for_new(PyObject *out)
{
    return out == Py_None ||
           (out == Py_Ellipsis && PyArray_GetNDArrayCFeatureVersion() >= API_OF_NUMPY_2_3);
}

bool array_is_plain(PyArrayObject *array)
{
    return PyArray_ISALIGNED(array) && PyArray_ISNOTSWAPPED(array) &&
           PyDataType_METADATA(PyArray_DESCR(array)) == NULL;
}

struct extent array_extent(PyArrayObject *array)
{
    return extent_of(PyArray_DATA(array), (size_t)PyArray_ITEMSIZE(array), PyArray_NDIM(array),
                     PyArray_DIMS(array), PyArray_STRIDES(array));
}

static bool coincide(PyArrayObject *a, PyArrayObject *b)
{
    const int ndim = PyArray_NDIM(a);
    return PyArray_DATA(a) == PyArray_DATA(b) && PyArray_TYPE(a) == PyArray_TYPE(b) &&
           PyArray_ISNOTSWAPPED(a) == PyArray_ISNOTSWAPPED(b) && ndim == PyArray_NDIM(b) &&
           PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), ndim) &&
           PyArray_CompareLists(PyArray_STRIDES(a), PyArray_STRIDES(b), ndim);
}

bool operands_output_is_independent(PyArrayObject *const array[], int count, PyArrayObject *mask,
                                    PyArrayObject *out, bool may_coincide)
{
    const struct extent written = array_extent(out);
    if (mask != NULL && extents_meet(written, array_extent(mask))) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (array[i] != NULL && extents_meet(written, array_extent(array[i])) &&
            !(may_coincide && coincide(array[i], out))) {
            return false;
        }
    }
    return true;
}

void axes_sort(int axes, int order[], axes_turn *turn, const void *context)
{
    for (int i = 0; i < axes; i++) {
        const int axis = axes - 1 - i;
        int place = i;
        for (int k = i - 1; k >= 0; k--) {
            const int turned = turn(context, axis, order[k]);
            if (turned < 0) {
                break;
            }
            place = turned > 0 ? k : place;
        }
        memmove(order + place + 1, order + place, (size_t)(i - place) * sizeof *order);
        order[place] = axis;
    }
}

static int compare_strides(const void *context, int axis, int later)
{
    PyArrayObject *array = (PyArrayObject *)context;
    const npy_intp outer = Py_ABS(PyArray_STRIDE(array, axis));
    return Py_ABS(PyArray_STRIDE(array, later)) <= outer ? -1 : 1;
}

void axes_sort_by_stride(PyArrayObject *array, int order[])
{
    axes_sort(PyArray_NDIM(array), order, compare_strides, array);
}

bool array_is_injective(PyArrayObject *array)
{
    int order[NPY_MAXDIMS];
    axes_sort_by_stride(array, order);
    npy_intp extent_so_far = PyArray_ITEMSIZE(array);
    for (int k = 0; k < PyArray_NDIM(array); k++) {
        const npy_intp n = PyArray_DIM(array, order[k]);
        const npy_intp step = Py_ABS(PyArray_STRIDE(array, order[k]));
        if (n > 1) {
            if (step < extent_so_far) {
                return false;
            }
            extent_so_far += step * (n - 1);
        }
    }
    return true;
}

bool array_is_one_line(PyArrayObject *array, npy_intp *step)
{
    *step = PyArray_ITEMSIZE(array);
    if (PyArray_IS_C_CONTIGUOUS(array)) {
        return true;
    }
    int order[NPY_MAXDIMS];
    axes_sort_by_stride(array, order);
    npy_intp next = 0;
    bool is_first = true;
    for (int k = 0; k < PyArray_NDIM(array); k++) {
        const npy_intp n = PyArray_DIM(array, order[k]), stride = PyArray_STRIDE(array, order[k]);
        if (n == 1) {
            continue;
        }
        if (!is_first && stride != next) {
            return false;
        }
        *step = is_first ? stride : *step;
        is_first = false;
        next = stride * n;
    }
    return true;
}

bool array_goes_forward(PyArrayObject *array, bool is_cast, bool may_repeat)
{
    bool backwards = false, repeats = false, varies = false;
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        const npy_intp step = array_step(array, i);
        backwards = backwards || step < 0;
        repeats = repeats || (step == 0 && PyArray_DIM(array, i) != 1);
        varies = varies || step != 0;
    }
    return (is_cast || !backwards) && (may_repeat || !repeats || !varies);
}
