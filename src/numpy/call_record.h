/* Per thread: what the last call of a generalized ufunc did. */
#ifndef NUMC_CALL_RECORD_H
#define NUMC_CALL_RECORD_H

#include "numpy_api.h"

/* Records a call too short to be timed; the texts must be constants. */
void call_record_short(const char *op, const char *reason);

void call_record_set(const char *op, const char *device, const char *reason, double seconds,
                     int threads);

/* How many calls of this thread a device computed. */
unsigned long long call_record_offloads(void);

/* What numc_ufuncs.last_call() returns: a function of the module. */
PyObject *call_record_get(PyObject *module, PyObject *unused);

#endif
