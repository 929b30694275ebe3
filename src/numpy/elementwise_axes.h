/* Element-wise calls whose operands need axes of their own: those that NumPy's iterator would go through. */
#ifndef NUMC_ELEMENTWISE_AXES_H
#define NUMC_ELEMENTWISE_AXES_H

#include "elementwise_offload.h"
#include "operands.h"

/* Computes a call over its axes; as call_directly(). */
bool axes_run(const struct ufunc_call *call, PyObject **result);

/* The same by a device, as elementwise_offload_run(). */
bool axes_run_on_device(const struct ufunc_call *call, struct elementwise_offload *offload,
                        PyObject **result);

#endif
