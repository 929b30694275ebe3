/* Each call computed both ways, and compared by a Python function: for finding a difference, not for speed. */
#ifndef NUMC_CHECK_H
#define NUMC_CHECK_H

#include "numpy_api.h"

#include <stdatomic.h>
#include <stdbool.h>

extern _Atomic bool check_is_set;

static inline bool check_is_on(void)
{
    return atomic_load_explicit(&check_is_set, memory_order_relaxed);
}

/* Whether this thread is comparing: then NumPy computes. */
bool check_is_inside(void);

/* What NumPy computes; a new reference, NULL with an exception. `keywords` are those of a vectorcall. */
PyObject *check_before(PyObject *ufunc, const char *method, PyObject *const *args, Py_ssize_t count,
                       PyObject *keywords);

/* Compares it with our result, NULL if the call raised, and returns that. Takes `expected`. */
PyObject *check_after(PyObject *expected, PyObject *result);

/* The Python function behind check(). */
int check_add_functions(PyObject *module);

#endif
