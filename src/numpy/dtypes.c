#include "dtypes.h"

#include "numpy_api.h"

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
