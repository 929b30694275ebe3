/* Large calls whose inner loop NumPy has to be asked for. */
#ifndef NUMC_RESOLVED_CALL_H
#define NUMC_RESOLVED_CALL_H

#include "call_table.h"

/* As call_directly(). `is_short`: the inputs fit NumPy's buffer. */
bool resolved_call(const struct call_table *table, PyObject *const *args, size_t count,
                   PyObject *keywords, PyObject **result, bool *is_short);

#endif
