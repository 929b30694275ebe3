/* The option memory: where NumPy's arrays get theirs from. */
#ifndef NUMC_MEMORY_HANDLER_H
#define NUMC_MEMORY_HANDLER_H

#include "numpy_api.h"

/* The Python functions behind that option and numc_ufuncs.memory. */
int memory_handler_add_functions(PyObject *module);

#endif
