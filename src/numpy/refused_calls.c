#include "refused_calls.h"

#include "policy_in_use.h"

uint32_t refused_print(PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    enum { BITS = 32 };
    const uint64_t odd = 0x9e3779b97f4a7c15;
    uint64_t print = (uintptr_t)keywords + (uint64_t)policy_in_use.threshold;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyArrayObject *array = (PyArrayObject *)args[i];
        if (!PyArray_CheckExact(args[i])) { /* a dtype, say: programs name the same one each time */
            print = (print ^ (uintptr_t)args[i]) * odd;
            continue;
        }
        print = (print ^ (uintptr_t)PyArray_DESCR(array)) * odd;
        print = (print ^ (uint64_t)PyArray_FLAGS(array)) * odd;
        for (int axis = 0; axis < PyArray_NDIM(array); axis++) {
            print = (print ^ (uint64_t)PyArray_DIM(array, axis)) * odd;
            print = (print ^ (uint64_t)PyArray_STRIDE(array, axis)) * odd;
        }
    }
    return (uint32_t)(print >> BITS) | 1;
}
