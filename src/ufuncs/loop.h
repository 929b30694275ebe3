/* The inner loop that NumPy calls: NumPy's own loop or one of our kernels, behind the engine. */
#ifndef NUMC_LOOP_H
#define NUMC_LOOP_H

#include "numpy_api.h"

#include "kernels.h"
#include "parallel.h"

struct loop {
    struct elementwise work;
    PyUFuncGenericFunction numpy_function;
    void *numpy_data;
    const struct kernel *kernel; /* NULL: NumPy's loop runs */
    const struct reduction *reduction; /* likewise, for calls that reduce or accumulate */
    PyObject *serial_if;         /* called before threads run it, unless NULL */
};

/* Whether the engine may run a loop of these dtypes: not if elements are Python objects, or have
 * sizes that the table does not tell. */
bool loop_is_parallel(const char types[], int inputs, int operands);

/* Prepares `loop` for one row of a ufunc's table. */
int loop_initialize(struct loop *loop, const char types[], int inputs, int operands,
                    PyUFuncGenericFunction numpy_function, void *numpy_data,
                    const struct kernel *kernel, PyObject *serial_if);

/* The function to register, with a struct loop as its data. */
void loop_run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data);

#endif
