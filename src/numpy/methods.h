/* Methods of NumPy's ufuncs that ours have in a faster form. */
#ifndef NUMC_METHODS_H
#define NUMC_METHODS_H

#include "numpy_api.h"

#include <stdint.h>

int methods_initialize(void);

/* Gives a clone methods of its own; from NumPy 2.2 on, before which ufuncs have no attributes. */
int methods_shadow(PyObject *clone);

/* Leads the methods of NumPy's ufuncs here, for those that are patched. */
void methods_lead_here(void);

/* How many whole arrays kernels have reduced so far, and why they did not reduce the last one; NULL if
 * they did. */
uint64_t methods_reduced_arrays(void);
const char *methods_reduction_reason(void);

#endif
