/* Element-wise calls whose operands need axes of their own, through NumPy's iterator. */
#ifndef NUMC_ELEMENTWISE_ITERATOR_H
#define NUMC_ELEMENTWISE_ITERATOR_H

#include "elementwise_offload.h"
#include "operands.h"

#include "engine/nested.h"

/* Computes a call by a kernel, over the axes that the iterator finds; as call_directly(). */
bool iterator_run_axes(const struct ufunc_call *call, PyObject **result);

/* The same by a device, as elementwise_offload_run(). */
bool iterator_run_on_device(const struct ufunc_call *call, struct elementwise_offload *offload,
                            PyObject **result);

/* Computes a call of n elements by NumPy's loop, on several threads: each gets ranges of the iterator. */
bool iterator_run_ranges(const struct ufunc_call *call, npy_intp n, int threads, PyObject **result);

/* The same on this thread. */
bool iterator_run_whole(const struct ufunc_call *call, npy_intp n, PyObject **result);

#endif
