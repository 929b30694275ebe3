/* Generalized ufuncs, as other packages have them. */
#ifndef NUMC_GUFUNCS_H
#define NUMC_GUFUNCS_H

#include "numpy/numpy_api.h"

#include <stdbool.h>

#include <stdbool.h>

/* Adds them to a module; false with an exception. */
bool gufuncs_add(PyObject *module);

#endif
