/* What NumPy's type numbers stand for: the one table of them. */
#ifndef NUMC_DTYPES_H
#define NUMC_DTYPES_H

#include "numpy_api.h"

#include <stdbool.h>
#include <stddef.h>

enum { DTYPES = 24 }; /* numbers of built-in types, up to NPY_HALF */

struct dtype {
    char kind;   /* as numpy.dtype.kind; 0 where elements are objects or have no fixed size */
    size_t size; /* bytes of an element */
};

extern const struct dtype dtype_table[DTYPES];

static inline struct dtype dtype_of(int type)
{
    return type >= 0 && type < DTYPES ? dtype_table[type] : (struct dtype){'\0', 0};
}

/* Bools and integers. */
static inline bool dtype_is_integer(int type)
{
    const char kind = dtype_of(type).kind;
    return kind == 'b' || kind == 'i' || kind == 'u';
}

/* Whether arithmetic is defined: bools, integers, floats, complex numbers; not times. */
static inline bool dtype_is_number(int type)
{
    const char kind = dtype_of(type).kind;
    return dtype_is_integer(type) || kind == 'f' || kind == 'c';
}

/* The type of a sum: NumPy widens integers to the size of long. */
int dtype_of_sum(int type);

/* The type number of a `dtype=` as most programs write it; -1: NumPy is to read it. */
int dtype_asked_for(PyObject *dtype);

/* The kind of kernels modulo 2^n: signed and unsigned integers have the same. */
static inline char dtype_modular_kind(int type)
{
    const char kind = dtype_of(type).kind;
    return kind == 'u' ? 'i' : kind;
}

#endif
