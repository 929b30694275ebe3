/* A call of one of our ufuncs. */
#ifndef NUMC_CALL_H
#define NUMC_CALL_H

#include "numpy_api.h"

#include <stdbool.h>

struct call_table;

/* Called once, at import. -1 with an exception. */
int call_initialize(void);

/* Whether `where=` is among the keywords, or NULL, of a call or a method. */
bool call_names_mask(PyObject *keywords);

/* Makes a vectorcall, if it needs none of NumPy's machinery. False: nothing was done, NumPy has to;
 * otherwise *result is the array, or NULL with an exception. */
bool call_directly(const struct call_table *table, PyObject *const *args, size_t count,
                   PyObject *keywords, PyObject **result);

/* Whether a call that NumPy makes gains nothing by our loops, while those of the original, which no argument can tell
 * from ours, take each run a few ns earlier: runs of a mask that are too short, or neither kernels nor threads. */
bool call_suits_original(const struct call_table *table, PyObject *const *args, size_t count,
                         PyObject *keywords);

#endif
