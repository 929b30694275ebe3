/* The package's environment variables, all of them. */
#ifndef NUMC_ENVIRONMENT_H
#define NUMC_ENVIRONMENT_H

#include "numpy_api.h"

/* Reads them and sets up kernels and threads accordingly. A value that is not understood is ignored
 * with a warning: a typo should not stop a program. -1 with an exception. */
int environment_apply(void);

/* Notes a RuntimeWarning that the package gives when its import is complete, so that it names the
 * line that imports it. The format is PyUnicode_FromFormat's. -1 with an exception. */
int environment_warn(const char *format, ...);

/* The texts noted since the last call of this: a new list. */
PyObject *environment_take_warnings(void);

#endif
