/* Shapes of operands, and where in memory they lie. */
#include "operands.h"

npy_intp operands_size(const struct ufunc_call *call)
{
    npy_intp size = 1;
    for (int axis = 1; axis <= NPY_MAXDIMS; axis++) {
        npy_intp longest = 1;
        bool exists = false;
        for (int i = 0; i <= call->table->inputs; i++) {
            if (call->array[i] != NULL && axis <= PyArray_NDIM(call->array[i])) {
                const npy_intp n = PyArray_DIM(call->array[i], PyArray_NDIM(call->array[i]) - axis);
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
    return PyArray_DATA(a) == PyArray_DATA(b) && ndim == PyArray_NDIM(b) &&
           PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), ndim) &&
           PyArray_CompareLists(PyArray_STRIDES(a), PyArray_STRIDES(b), ndim);
}

/* Whether NumPy casts the input, to a temporary array if it overlaps the output. */
static bool is_cast(const struct ufunc_call *call, PyArrayObject *in)
{
    return PyArray_TYPE(in) != call->row->input->type_num;
}

bool operands_output_is_independent(const struct ufunc_call *call, bool may_coincide)
{
    PyArrayObject *out = call->array[call->table->inputs];
    const struct extent written = array_extent(out);
    if (call->mask != NULL && extents_meet(written, array_extent(call->mask))) {
        return false;
    }
    for (int i = 0; i < call->table->inputs; i++) {
        PyArrayObject *in = call->array[i];
        if (in != NULL && extents_meet(written, array_extent(in)) &&
            !(may_coincide && !is_cast(call, in) && coincide(in, out))) {
            return false;
        }
    }
    return true;
}
