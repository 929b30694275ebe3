/* memory="cached": large blocks of NumPy's arrays are kept for reuse. */
#ifndef NUMC_MEMORY_HANDLER_H
#define NUMC_MEMORY_HANDLER_H

#include "numpy_api.h"

/* The Python functions behind that option and numc_ufuncs.memory. */
int memory_handler_add_functions(PyObject *module);

#endif
