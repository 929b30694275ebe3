/* Functions of NumPy that are products but no ufuncs, led to ours under a patch. */
#ifndef NUMC_PATCHED_FUNCTIONS_H
#define NUMC_PATCHED_FUNCTIONS_H

#include "numpy_api.h"

#include <stdbool.h>

/* Leads a function, or a method of arrays, to a Python function that returns NotImplemented for what NumPy is
 * to compute. `name` is one of those that it knows. False if NumPy calls it in another way than expected. */
bool patched_functions_lead(const char *name, PyObject *callable, PyObject *replacement);

/* Switches those of that name in the whole process. */
void patched_functions_switch(PyObject *name, bool on);

/* Whether calls from here are led to ours. */
bool patched_functions_is_on(PyObject *name);

#endif
