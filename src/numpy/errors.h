/* Errors on their way to Python: floating-point flags, and exceptions that workers met. */
#ifndef NUMC_ERRORS_H
#define NUMC_ERRORS_H

#include "numpy_api.h"

#include <fenv.h>
#include <stdbool.h>
#include <stddef.h>

enum { ERRORS_OF_NUMPY = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID };

/* Before a computation. */
void errors_clear(void);

/* The flags raised since. */
int errors_raised(void);

/* The same where only kernels ran. On x86-64 the C library asks the x87 unit, too, which none of them
 * uses: a tenth of a short call. */
static inline int errors_raised_by_kernel(void)
{
#if defined(__x86_64__)
    return (int)__builtin_ia32_stmxcsr() & ERRORS_OF_NUMPY;
#else
    return fetestexcept(ERRORS_OF_NUMPY);
#endif
}

/* Reports flags as np.errstate says; 0, or -1 with an exception. */
int errors_report(const char *name, int raised);

/* Clears and reports flags. `result` is a new reference: returned, or released if there is an
 * exception. */
PyObject *errors_finish(const char *name, PyObject *result, int raised);

/* The exception of the first chunk that failed, and the caller's thread state while it has
 * released the GIL. */
struct failure {
    bool threads_run;
    PyThreadState *released; /* the caller's, while it waits without the GIL */
    ptrdiff_t first;         /* of the chunk that failed */
    PyObject *type, *value, *traceback;
};

int failure_initialize(void);

/* Hooks of the engine, whose data is a struct failure.
 * Before and after the threads of a call run; afterwards the exception, if any, is the caller's. */
void failure_before_threads(void *hook_data);
void failure_after_threads(void *hook_data);

/* Around a chunk of the call, on the thread that computes it. */
void failure_before_chunk(void *hook_data);
void failure_after_chunk(void *hook_data, ptrdiff_t first);

#endif
