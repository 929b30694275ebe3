/* The inner loops that NumPy calls: its own or our kernels, behind the engine. */
#ifndef NUMC_ELEMENTWISE_LOOP_H
#define NUMC_ELEMENTWISE_LOOP_H

#include "numpy_api.h"

#include "engine/elementwise.h"

struct loop {
    struct elementwise engine; /* what the engine calls the loop */
    const struct reduction_kernel
        *reduction;                /* for calls that reduce or accumulate; NULL: NumPy's loop */
    elementwise_kernel *running;   /* of the lines of calls that accumulate; NULL: NumPy's loop */
    PyUFuncGenericFunction numpys; /* which filled_loop.c calls for the engine */
    void *numpys_data;
    bool keeps_second;   /* of its inputs as it is, repeated or not */
    PyObject *serial_if; /* called before threads run it, unless NULL */
};

/* Whether the engine may run a loop of these dtypes: not if elements are Python objects, or have
 * sizes that the table does not tell. */
bool loop_is_parallel(const char types[], int inputs, int operands);

/* Prepares `loop` for one row of a ufunc's table. `function` is NumPy's loop, NULL if it has none. */
void loop_initialize(struct loop *loop, const char types[], int inputs, int operands,
                     PyUFuncGenericFunction function, void *function_data,
                     const struct kernel *kernel, PyObject *serial_if);

/* Adds what is known of the inner loops of NumPy's own ufuncs. */
void loop_know_numpys(struct loop *loop, const char types[], bool zeros_tie);

/* Whether that, called, says nothing against threads. */
bool loop_allows_threads(PyObject *serial_if);

/* The function to register, with a struct loop as its data. */
void loop_run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data);

#endif
