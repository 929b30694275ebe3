/* Scalars among the operands of a call, as elements of the loop's dtype. */
#ifndef NUMC_SCALARS_H
#define NUMC_SCALARS_H

#include "numpy_api.h"

#include "kernels/kernels.h"

#include <stdbool.h>

union element {
    npy_longdouble aligned;
    char bytes[sizeof(npy_clongdouble)];
};

/* A Python number as NumPy would convert it; false where that raises something or changes the dtype. */
bool scalar_convert_number(PyObject *number, int type, union element *element);

/* The element of a 0-d array, of a bool, or of a scalar of NumPy's. */
void scalar_read(PyObject *scalar, union element *element);

/* The same, converted; false if that raises a flag: NumPy would say so in other words. */
bool scalar_convert(PyObject *scalar, convert_elements *convert, union element *element);

#endif
