/* What Python sees of devices. */
#ifndef NUMC_DEVICE_FUNCTIONS_H
#define NUMC_DEVICE_FUNCTIONS_H

#include "numpy_api.h"

int device_functions_add(PyObject *module);

#endif
