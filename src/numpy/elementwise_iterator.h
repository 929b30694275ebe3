/* Element-wise calls of NumPy's loops, through its iterator. */
#ifndef NUMC_ELEMENTWISE_ITERATOR_H
#define NUMC_ELEMENTWISE_ITERATOR_H

#include "operands.h"

/* Computes a call of n elements by NumPy's loop, on several threads: each gets ranges of the iterator. */
bool iterator_run_ranges(const struct ufunc_call *call, npy_intp n, int threads, PyObject **result);

/* The same on this thread. */
bool iterator_run_whole(const struct ufunc_call *call, npy_intp n, PyObject **result);

#endif
