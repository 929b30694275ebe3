/* Short calls of a ufunc that were left to NumPy are left to it at once the next time: to find out takes as long as
 * some of them. */
#ifndef NUMC_REFUSED_CALLS_H
#define NUMC_REFUSED_CALLS_H

#include "numpy_api.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { REFUSED_KEPT = 16 };

struct refused_calls {
    _Atomic uint32_t print[REFUSED_KEPT];
};

/* All that decides whether a short call gains anything, but for what its arrays hold, in a few bits: those of another
 * call may be the same. Never 0. */
uint32_t refused_print(PyObject *const *args, Py_ssize_t count, PyObject *keywords);

static inline bool refused_before(const struct refused_calls *calls, uint32_t print)
{
    return calls->print[print / 2 % REFUSED_KEPT] == print;
}

static inline void refused_keep(struct refused_calls *calls, uint32_t print)
{
    calls->print[print / 2 % REFUSED_KEPT] = print;
}

#endif
