#include "scalars.h"

#include "dtypes.h"
#include "errors.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The least and the largest normal number of the parts of a float or complex dtype. */
struct normals {
    double least, largest;
};

static struct normals normal_range(int type)
{
    switch (type) {
    case NPY_HALF:
        return (struct normals){0x1p-14, 65504};
    case NPY_FLOAT:
    case NPY_CFLOAT:
        return (struct normals){(double)FLT_MIN, (double)FLT_MAX};
    default:
        return (struct normals){0, INFINITY};
    }
}

/* Writes a number that suits the dtype, by NumPy's own conversion. */
static bool pack(PyObject *number, int type, union element *element)
{
    PyArray_Descr *dtype = PyArray_DescrFromType(type);
    const bool packed = dtype != NULL && PyArray_Pack(dtype, element->bytes, number) == 0;
    Py_XDECREF((PyObject *)dtype);
    PyErr_Clear();
    return packed;
}

/* Whether the conversion to a float or complex dtype raises no flag. */
static bool is_normal(double value, int type)
{
    const struct normals normal = normal_range(type);
    const double magnitude = fabs(value);
    return value == 0 || isinf(value) || (magnitude >= normal.least && magnitude <= normal.largest);
}

static bool convert_complex(PyObject *number, int type, union element *element)
{
    return dtype_of(type).kind == 'c' && is_normal(PyComplex_RealAsDouble(number), type) &&
           is_normal(PyComplex_ImagAsDouble(number), type) && pack(number, type, element);
}

static bool convert_float(double value, PyObject *number, int type, union element *element)
{
    if (type == NPY_DOUBLE) {
        *(npy_double *)element = value;
        return true;
    }
    const char kind = dtype_of(type).kind;
    if ((kind != 'f' && kind != 'c') || !is_normal(value, type)) {
        return false;
    }
    if (type == NPY_FLOAT) {
        *(npy_float *)element = (npy_float)value;
        return true;
    }
    return pack(number, type, element);
}

/* Whether an integer dtype holds a value. */
static bool integer_holds(int type, long long value)
{
    const struct dtype dtype = dtype_of(type);
    const int bits = 8 * (int)dtype.size;
    if (dtype.kind == 'u') {
        return value >= 0 && (bits == 64 || value >> bits == 0);
    }
    return bits == 64 || (value >> (bits - 1) == (value < 0 ? -1 : 0));
}

bool scalar_convert_number(PyObject *number, int type, union element *element)
{
    if (PyFloat_CheckExact(number)) {
        return convert_float(PyFloat_AS_DOUBLE(number), number, type, element);
    }
    if (PyComplex_CheckExact(number)) {
        return convert_complex(number, type, element);
    }
    if (!PyLong_CheckExact(number)) {
        return false;
    }
    int overflow;
    const long long integer = PyLong_AsLongLongAndOverflow(number, &overflow);
    const char kind = dtype_of(type).kind;
    if (overflow != 0) {
        return false;
    }
    if (kind == 'i' || kind == 'u') {
        memcpy(element->bytes, &integer, sizeof integer); /* both architectures are little-endian */
        return integer_holds(type, integer);
    }
    const long long exact = 1LL << DBL_MANT_DIG;
    return integer <= exact && integer >= -exact &&
           convert_float((double)integer, number, type, element);
}

void scalar_read(PyObject *scalar, union element *element)
{
    if (PyArray_CheckExact(scalar)) {
        PyArrayObject *array = (PyArrayObject *)scalar;
        memcpy(element->bytes, PyArray_DATA(array), (size_t)PyArray_ITEMSIZE(array));
    } else if (PyBool_Check(scalar)) {
        element->bytes[0] = scalar == Py_True;
    } else {
        PyArray_ScalarAsCtype(scalar, element);
    }
}

bool scalar_convert(PyObject *scalar, convert_elements *convert, union element *element)
{
    union element own;
    scalar_read(scalar, &own);
    feclearexcept(ERRORS_OF_NUMPY);
    convert(own.bytes, 0, element->bytes, 1);
    return fetestexcept(ERRORS_OF_NUMPY) == 0;
}
