/* A call past NumPy's broadcasting, iterators and buffers: its operands are read once, then its family
 * plans and computes it. Whatever is unusual is left to NumPy: other types than ndarray, other keywords
 * than `out` and `where`, unusual casts, unaligned or empty operands, operands that overlap the output,
 * scalar results. */
#include "call.h"

#include "elementwise_call.h"
#include "errors.h"
#include "matmul_call.h"
#include "numpy_private.h"
#include "operands.h"

#include <float.h>
#include <math.h>

/* Where all operands have fewer elements, it is not worth looking at what they make when broadcast. */
enum { LEAST_BUFFERED_ELEMENTS = 1024 };

/* Outputs of fewer elements are left to NumPy. */
enum { LEAST_MASKED_ELEMENTS = 1024 };

static PyObject *out_keyword, *where_keyword;

int call_initialize(void)
{
    out_keyword = PyUnicode_InternFromString("out");
    where_keyword = PyUnicode_InternFromString("where");
    return out_keyword != NULL && where_keyword != NULL ? 0 : -1;
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

/* Reads the output of `f(..., out)` or `f(..., out=out)`, and `where=`; NULL where there is none. False if
 * there is anything else. */
static bool read_keywords(PyObject *const *args, Py_ssize_t positional, PyObject *keywords,
                          int inputs, PyObject **out, PyObject **mask)
{
    const Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    *out = positional > inputs ? args[inputs] : NULL;
    *mask = NULL;
    if (positional < inputs || positional > inputs + 1) {
        return false;
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *keyword = PyTuple_GET_ITEM(keywords, i), *value = args[positional + i];
        if (keyword == out_keyword && *out == NULL) {
            const bool is_single = PyTuple_CheckExact(value) && PyTuple_GET_SIZE(value) == 1;
            *out = is_single ? PyTuple_GET_ITEM(value, 0) : value;
        } else if (keyword == where_keyword) {
            *mask = value;
        } else {
            return false;
        }
    }
    return *out == NULL || PyArray_CheckExact(*out);
}

/* A mask that the engine takes; NumPy says what is wrong with others, or warns where no output is given. */
static bool is_usual_mask(PyObject *mask, PyObject *out)
{
    return out != NULL && PyArray_CheckExact(mask) &&
           PyArray_TYPE((PyArrayObject *)mask) == NPY_BOOL &&
           PyArray_SIZE((PyArrayObject *)out) >= LEAST_MASKED_ELEMENTS;
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

/* ---- inputs of several dtypes ---- */

/* What an input is; -1: something unusual. */
static int kind_of(PyObject *input)
{
    PyArray_Descr *dtype;
    if (PyFloat_CheckExact(input) || PyLong_CheckExact(input)) {
        return PyFloat_CheckExact(input) ? INPUT_PYTHON_FLOAT : INPUT_PYTHON_INT;
    }
    if (PyArray_CheckExact(input)) {
        dtype = PyArray_DESCR((PyArrayObject *)input);
        const bool plain = is_plain((PyArrayObject *)input, dtype);
        return plain && PyArray_ISNBO(dtype->byteorder) && PyDataType_METADATA(dtype) == NULL &&
                       dtype->type_num < CALL_TYPES
                   ? dtype->type_num
                   : -1;
    }
    if (PyBool_Check(input)) {
        return NPY_BOOL;
    }
    if (!PyArray_IsScalar(input, Generic) || !PyArray_CheckAnyScalarExact(input)) {
        return -1;
    }
    dtype = PyArray_DescrFromScalar(input);
    const int type = dtype != NULL && dtype->type_num < CALL_TYPES ? dtype->type_num : -1;
    Py_XDECREF(dtype);
    PyErr_Clear();
    return type;
}

static bool is_of_dtype(int type, PyArray_Descr *dtype)
{
    const struct dtype is = dtype_of(type), wanted = dtype_of(dtype->type_num);
    return is.kind == wanted.kind && is.size == wanted.size;
}

/* The element of a 0-d array, or of a scalar whose dtype kind_of() tells. */
static void read_element(PyObject *input, union element *element)
{
    if (PyArray_CheckExact(input)) {
        PyArrayObject *array = (PyArrayObject *)input;
        memcpy(element->bytes, PyArray_DATA(array), (size_t)PyArray_ITEMSIZE(array));
    } else if (PyBool_Check(input)) {
        element->bytes[0] = input == Py_True;
    } else {
        PyArray_ScalarAsCtype(input, element);
    }
}

/* False if the conversion raises a flag: NumPy would say so in other words. */
static bool convert_element(PyObject *input, convert_elements *convert, union element *element)
{
    union element own;
    read_element(input, &own);
    feclearexcept(ERRORS_OF_NUMPY);
    convert(own.bytes, 0, element->bytes, 1);
    return fetestexcept(ERRORS_OF_NUMPY) == 0;
}

static bool read_mixed_input(struct ufunc_call *call, int i, PyObject *input, int kind)
{
    PyArray_Descr *dtype = call->row->input;
    const bool is_array = PyArray_CheckExact(input) && PyArray_NDIM((PyArrayObject *)input) > 0;
    call->convert[i] = NULL;
    call->array[i] = is_array ? (PyArrayObject *)input : NULL;
    if (kind >= CALL_TYPES) {
        return convert_number(input, dtype->type_num, &call->scalar[i]);
    }
    if (is_of_dtype(kind, dtype)) {
        if (!is_array) {
            read_element(input, &call->scalar[i]);
        }
        return true;
    }
    const struct dtype from = dtype_of(kind), to = dtype_of(dtype->type_num);
    convert_elements *convert =
        conversion_find(from.kind, from.size, dtype_modular_kind(dtype->type_num), to.size);
    if (convert != NULL && !is_array) {
        return convert_element(input, convert, &call->scalar[i]);
    }
    call->convert[i] = convert;
    return convert != NULL;
}

/* How many elements the call has; 0: few. */
static npy_intp size_if_large(struct ufunc_call *call, PyObject *const *args)
{
    const int inputs = call->table->inputs;
    bool is_large = false;
    call->array[inputs] = NULL;
    for (int i = 0; i < inputs; i++) {
        call->array[i] = PyArray_CheckExact(args[i]) ? (PyArrayObject *)args[i] : NULL;
        is_large = is_large || (call->array[i] != NULL &&
                                PyArray_SIZE(call->array[i]) > LEAST_BUFFERED_ELEMENTS);
    }
    const npy_intp size = is_large ? operands_size(call) : 0;
    return size > NPY_BUFSIZE ? size : 0;
}

/* Inputs that NumPy would cast in buffers: fewer elements are cast as a whole. */
static __attribute__((noinline)) bool read_mixed_inputs(struct ufunc_call *call,
                                                        PyObject *const *args)
{
    int kind[CALL_MOST_INPUTS];
    const npy_intp size = call->table->is_product ? 0 : size_if_large(call, args);
    if (size == 0) {
        return false;
    }
    for (int i = 0; i < call->table->inputs; i++) {
        kind[i] = kind_of(args[i]);
        if (kind[i] < 0) {
            return false;
        }
    }
    call->is_mixed = true;
    call->row = call_table_mixed((struct call_table *)call->table, kind);
    for (int i = 0; i < call->table->inputs && call->row != NULL; i++) {
        if (!read_mixed_input(call, i, args[i], kind[i])) {
            return false;
        }
    }
    return call->row != NULL && size > private_buffer_size();
}

static bool read_operands(struct ufunc_call *call, PyObject *const *args, size_t count,
                          PyObject *keywords)
{
    const int inputs = call->table->inputs;
    PyObject *out, *mask;
    if (!read_keywords(args, PyVectorcall_NARGS(count), keywords, inputs, &out, &mask) ||
        (mask != NULL && (call->table->is_product || !is_usual_mask(mask, out))) ||
        !(read_inputs(call, args) || read_mixed_inputs(call, args))) {
        return false;
    }
    call->array[inputs] = (PyArrayObject *)out;
    call->mask = (PyArrayObject *)mask;
    return out == NULL || (is_plain(call->array[inputs], call->row->output) &&
                           private_is_writable(call->array[inputs]));
}

bool call_directly(const struct call_table *table, PyObject *const *args, size_t count,
                   PyObject *keywords, PyObject **result)
{
    struct ufunc_call call;
    call.table = table;
    call.row = NULL;
    call.is_mixed = false;
    if (!read_operands(&call, args, count, keywords)) {
        return false;
    }
    return table->is_product ? matmul_call(&call, result) : elementwise_call(&call, result);
}
