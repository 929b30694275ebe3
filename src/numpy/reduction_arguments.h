/* What a call of reduce or accumulate asks for, if it does so in the usual way. */
#ifndef NUMC_REDUCTION_ARGUMENTS_H
#define NUMC_REDUCTION_ARGUMENTS_H

#include "numpy_api.h"

#include <stdbool.h>

/* References are borrowed. */
struct reduction_arguments {
    PyArrayObject *array;
    bool keepdims;
    PyObject *dtype, *out;     /* NULL: the default */
    PyObject *initial, *where; /* of reduce; NULL: not given */
    int ndim;
    bool reduced[NPY_MAXDIMS]; /* by axis */
};

/* Called once, at import. -1 with an exception. */
int reduction_arguments_initialize(void);

/* How many arguments beside the array a method has, of those of reduce. */
enum reduction_arguments_known { ARGUMENTS_OF_ACCUMULATE = 3, ARGUMENTS_OF_REDUCE = 6 };

/* False for what only NumPy understands: another object than an array, wrong axes. */
bool reduction_arguments_read(struct reduction_arguments *arguments,
                              enum reduction_arguments_known known, PyObject *const *args,
                              Py_ssize_t count, PyObject *keywords);

/* The type number that dtype= asks for, `usual` if it is not given, -1 if it has metadata or another byte
 * order, or if it is wrong: NumPy says so. */
int reduction_arguments_type(const struct reduction_arguments *arguments, int usual);

/* The axis, if there is one alone; else -1. */
int reduction_arguments_axis(const struct reduction_arguments *arguments);

#endif
