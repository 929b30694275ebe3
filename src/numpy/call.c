/* A call past NumPy's broadcasting, iterators and buffers: its operands are read once, then its family
 * plans and computes it. Whatever is unusual is left to NumPy: other types than ndarray, other keywords
 * than `out`, casts (but of integers to divide), unaligned or empty operands, operands that overlap the
 * output, scalar results. */
#include "call.h"

#include "elementwise_call.h"
#include "matmul_call.h"
#include "numpy_private.h"
#include "operands.h"

#include <float.h>
#include <math.h>

static PyObject *out_keyword;

int call_initialize(void)
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

static bool read_operands(struct ufunc_call *call, PyObject *const *args, size_t count,
                          PyObject *keywords)
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

bool call_directly(const struct call_table *table, PyObject *const *args, size_t count,
                   PyObject *keywords, PyObject **result)
{
    struct ufunc_call call;
    call.table = table;
    call.row = NULL;
    if (!read_operands(&call, args, count, keywords)) {
        return false;
    }
    return table->is_product ? matmul_call(&call, result) : elementwise_call(&call, result);
}
