/* Counts calls of ufuncs. */
#ifndef NUMC_HOOKS_H
#define NUMC_HOOKS_H

#include "numpy/numpy_api.h"

PyObject *hooks_count_calls(PyObject *module, PyObject *args);
PyObject *hooks_calls(PyObject *module, PyObject *unused);

#endif
