/* The operands of a call, as they are handed to a ufunc: read once, before anything is decided. */
#include "operands.h"

#include "numpy_private.h"

#include <float.h>
#include <math.h>

static PyObject *out_keyword;

int operands_initialize(void)
{
    out_keyword = PyUnicode_InternFromString("out");
    return out_keyword != NULL ? 0 : -1;
}

/* An array that needs no preparation: not a subclass, aligned, native, its dtype without metadata. */
static bool is_plain(PyArrayObject *array, PyArray_Descr *dtype)
{
    PyArray_Descr *own = PyArray_DESCR(array);
    return (own == dtype || (own->type_num == dtype->type_num && PyArray_ISNBO(own->byteorder) &&
                             PyDataType_METADATA(own) == NULL)) &&
           PyArray_CHKFLAGS(array, NPY_ARRAY_ALIGNED);
}

/* A Python number as NumPy would convert it, where that raises nothing and changes no dtype. */
static bool convert_number(PyObject *number, int type, union element *element)
{
    double value;
    if (PyFloat_CheckExact(number)) {
        value = PyFloat_AS_DOUBLE(number);
    } else if (PyLong_CheckExact(number)) {
        int overflow;
        const long long integer = PyLong_AsLongLongAndOverflow(number, &overflow);
        const long long exact = 1LL << DBL_MANT_DIG;
        switch (overflow == 0 ? type : NPY_NOTYPE) {
        case NPY_INT:
            *(npy_int *)element = (npy_int)integer;
            return integer >= NPY_MIN_INT && integer <= NPY_MAX_INT;
        case NPY_LONG:
            *(npy_long *)element = (npy_long)integer;
            return integer >= NPY_MIN_LONG && integer <= NPY_MAX_LONG;
        case NPY_UBYTE:
            *(npy_ubyte *)element = (npy_ubyte)integer;
            return integer >= 0 && integer <= NPY_MAX_UBYTE;
        case NPY_BYTE:
            *(npy_byte *)element = (npy_byte)integer;
            return integer >= NPY_MIN_BYTE && integer <= NPY_MAX_BYTE;
        case NPY_DOUBLE:
        case NPY_FLOAT:
            break;
        default:
            return false;
        }
        if (integer > exact || integer < -exact) {
            return false;
        }
        value = (double)integer;
    } else {
        return false;
    }
    if (type == NPY_DOUBLE) {
        *(npy_double *)element = value;
        return true;
    }
    const double magnitude = fabs(value);
    if (type == NPY_FLOAT &&
        (value == 0 || (magnitude >= (double)FLT_MIN && magnitude <= (double)FLT_MAX))) {
        *(npy_float *)element = (npy_float)value;
        return true;
    }
    return false;
}

static bool read_scalar(PyObject *scalar, const struct call_row *row, union element *element)
{
    if (Py_TYPE(scalar) == row->input->typeobj) {
        PyArray_ScalarAsCtype(scalar, element);
        return true;
    }
    return convert_number(scalar, row->input->type_num, element);
}

/* The output of `f(..., out)` or `f(..., out=out)`; NULL with *found where there is none. */
static PyObject *find_out(PyObject *const *args, Py_ssize_t positional, PyObject *keywords,
                          int inputs, bool *usual)
{
    const Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    *usual = positional >= inputs && positional + named <= inputs + 1;
    if (!*usual || positional + named == inputs) {
        return NULL;
    }
    PyObject *out = args[inputs];
    if (named == 1) {
        *usual = PyTuple_GET_ITEM(keywords, 0) == out_keyword;
        if (PyTuple_CheckExact(out) && PyTuple_GET_SIZE(out) == 1) {
            out = PyTuple_GET_ITEM(out, 0);
        }
    }
    *usual = *usual && PyArray_CheckExact(out);
    return out;
}

static bool read_inputs(struct ufunc_call *call, PyObject *const *args)
{
    const int inputs = call->table->inputs;
    for (int i = 0; i < inputs && call->row == NULL; i++) {
        if (PyArray_CheckExact(args[i]) && PyArray_NDIM((PyArrayObject *)args[i]) > 0) {
            const int type = PyArray_DESCR((PyArrayObject *)args[i])->type_num;
            if (type < 0 || type >= CALL_TYPES || call->table->row[type].input == NULL) {
                return false;
            }
            call->row = &call->table->row[type];
        }
    }
    if (call->row == NULL) {
        return false; /* the result is a scalar */
    }
    for (int i = 0; i < inputs; i++) {
        call->array[i] = NULL;
        if (PyArray_CheckExact(args[i])) {
            call->array[i] = (PyArrayObject *)args[i];
            if (!is_plain(call->array[i], call->row->input)) {
                return false;
            }
        } else if (!read_scalar(args[i], call->row, &call->scalar[i])) {
            return false;
        }
    }
    return true;
}

bool operands_read(struct ufunc_call *call, PyObject *const *args, size_t count, PyObject *keywords)
{
    const int inputs = call->table->inputs;
    bool usual;
    PyObject *out = find_out(args, PyVectorcall_NARGS(count), keywords, inputs, &usual);
    if (!usual || !read_inputs(call, args)) {
        return false;
    }
    call->array[inputs] = (PyArrayObject *)out;
    return out == NULL || (is_plain(call->array[inputs], call->row->output) &&
                           private_is_writable(call->array[inputs]));
}

/* ---- the output ---- */

PyArrayObject *operands_new_output(const struct ufunc_call *call, int ndim, const npy_intp shape[],
                                   bool is_fortran)
{
    PyArray_Descr *dtype = call->row->output;
    Py_INCREF(dtype);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, NULL, NULL,
                                                 is_fortran, NULL);
}

/* ---- shapes, and where they lie ---- */

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

bool operands_output_is_independent(const struct ufunc_call *call, bool may_coincide)
{
    PyArrayObject *out = call->array[call->table->inputs];
    const struct extent written = array_extent(out);
    for (int i = 0; i < call->table->inputs; i++) {
        PyArrayObject *in = call->array[i];
        if (in != NULL && extents_meet(written, array_extent(in)) &&
            !(may_coincide && coincide(in, out))) {
            return false;
        }
    }
    return true;
}
