/* Python exceptions that a loop sets while it runs on several threads. */
#ifndef NUMC_FAILURE_H
#define NUMC_FAILURE_H

#include "numpy_api.h"

#include <stdbool.h>
#include <stddef.h>

/* The exception of the first element that failed, and what the caller gave up meanwhile. */
struct failure {
    bool threads_run;
    PyThreadState *released; /* the caller's, while it waits without the GIL */
    ptrdiff_t first;         /* of the part that failed */
    PyObject *type, *value, *traceback;
};

int failure_initialize(void);

/* Before and after the threads of a call run; afterwards the exception, if any, is the caller's.
 * `call` is its struct failure. */
void failure_before_threads(void *call);
void failure_after_threads(void *call);

/* Around a part of the call, on the thread that computes it. */
void failure_before_part(const struct failure *failure);
void failure_after_part(struct failure *failure, ptrdiff_t first);

#endif
