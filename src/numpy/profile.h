/* Which calls a program makes, from which lines, and what computes them. */
#ifndef NUMC_PROFILE_H
#define NUMC_PROFILE_H

#include "numpy_api.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* How many profiles are open. */
extern _Atomic int profiles_open;

static inline bool profile_is_on(void)
{
    return atomic_load_explicit(&profiles_open, memory_order_relaxed) != 0;
}

struct profile_sample {
    int64_t start_ns;
    uint64_t regions, offloads, kernel_calls;
};

/* Around a call, of a method unless that is NULL. `by_ours`: kernels or inner loops of ours, past
 * NumPy's machinery. `result` is NULL if it raised. */
void profile_begin(struct profile_sample *sample);
void profile_end(const struct profile_sample *sample, PyObject *ufunc, const char *method,
                 bool by_ours, PyObject *const *args, Py_ssize_t count, PyObject *keywords,
                 PyObject *result);

/* The Python functions behind profile(). */
int profile_add_functions(PyObject *module);

#endif
