/* Python and NumPy, built for every NumPy from 2.0 on. */
#ifndef NUMC_NUMPY_API_H
#define NUMC_NUMPY_API_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL numc_array_api
#define PY_UFUNC_UNIQUE_SYMBOL numc_ufunc_api
#ifndef NUMC_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

/* Versions of its C API, whatever this is compiled against. */
enum { API_OF_NUMPY_2_1 = 0x13, API_OF_NUMPY_2_3 = 0x14, API_OF_NUMPY_2_4 = 0x15 };

/* What the GIL guards needs a mutex on a Python without one: Python's, whose waiters do not hold up its
 * garbage collector. No Python code may run under it. */
#ifdef Py_GIL_DISABLED
#define gil_or_mutex PyMutex
#define GIL_OR_LOCK(mutex) PyMutex_Lock(mutex)
#define GIL_OR_UNLOCK(mutex) PyMutex_Unlock(mutex)
#else
#define gil_or_mutex char
#define GIL_OR_LOCK(mutex) ((void)(mutex))
#define GIL_OR_UNLOCK(mutex) ((void)(mutex))
#endif

#endif
