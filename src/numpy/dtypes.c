#include "dtypes.h"

_Static_assert(NPY_HALF + 1 == DTYPES, "the table has a row for each type number");

const struct dtype dtype_table[DTYPES] = {
    [NPY_BOOL] = {'b', sizeof(npy_bool)},
    [NPY_BYTE] = {'i', sizeof(npy_byte)},
    [NPY_UBYTE] = {'u', sizeof(npy_ubyte)},
    [NPY_SHORT] = {'i', sizeof(npy_short)},
    [NPY_USHORT] = {'u', sizeof(npy_ushort)},
    [NPY_INT] = {'i', sizeof(npy_int)},
    [NPY_UINT] = {'u', sizeof(npy_uint)},
    [NPY_LONG] = {'i', sizeof(npy_long)},
    [NPY_ULONG] = {'u', sizeof(npy_ulong)},
    [NPY_LONGLONG] = {'i', sizeof(npy_longlong)},
    [NPY_ULONGLONG] = {'u', sizeof(npy_ulonglong)},
    [NPY_FLOAT] = {'f', sizeof(npy_float)},
    [NPY_DOUBLE] = {'f', sizeof(npy_double)},
    [NPY_LONGDOUBLE] = {'f', sizeof(npy_longdouble)},
    [NPY_CFLOAT] = {'c', sizeof(npy_cfloat)},
    [NPY_CDOUBLE] = {'c', sizeof(npy_cdouble)},
    [NPY_CLONGDOUBLE] = {'c', sizeof(npy_clongdouble)},
    [NPY_DATETIME] = {'M', sizeof(npy_datetime)},
    [NPY_TIMEDELTA] = {'m', sizeof(npy_timedelta)},
    [NPY_HALF] = {'f', sizeof(npy_half)},
};

int dtype_of_sum(int type)
{
    if (!dtype_is_integer(type)) {
        return type;
    }
    const bool is_short = type != NPY_LONGLONG && type != NPY_ULONGLONG;
    return !is_short ? type : dtype_of(type).kind == 'u' ? NPY_ULONG : NPY_LONG;
}

int dtype_asked_for(PyObject *dtype)
{
    int number = -1;
    if (PyUnicode_CheckExact(dtype) && PyUnicode_GET_LENGTH(dtype) == 1) {
        PyArray_Descr *descr = PyArray_DescrFromType((int)PyUnicode_READ_CHAR(dtype, 0));
        number = descr != NULL ? descr->type_num : -1;
        Py_XDECREF(descr);
        PyErr_Clear();
    } else if (dtype == (PyObject *)&PyFloat_Type || dtype == (PyObject *)&PyDoubleArrType_Type) {
        number = NPY_DOUBLE;
    } else if (dtype == (PyObject *)&PyFloatArrType_Type) {
        number = NPY_FLOAT;
    } else if (PyArray_DescrCheck(dtype) && PyArray_ISNBO(((PyArray_Descr *)dtype)->byteorder)) {
        number = ((PyArray_Descr *)dtype)->type_num;
    }
    return dtype_is_number(number) ? number : -1;
}
