/* The inner loop that NumPy calls: NumPy's own loop or one of our kernels, behind the engine. */
#ifndef NUMC_LOOP_H
#define NUMC_LOOP_H

#include "numpy_api.h"

#include "engine/elementwise.h"
#include "engine/nested.h"
#include "errors.h"
#include "kernels/kernels.h"

struct loop {
    struct elementwise work;
    PyUFuncGenericFunction numpy_function; /* NULL: it has none, a kernel does all */
    void *numpy_data;
    const struct kernel *kernel; /* NULL: NumPy's loop runs */
    bool kernel_takes_any_step;  /* and beats NumPy's loop, which converts half by half */
    const struct reduction_kernel *reduction; /* likewise, for calls that reduce or accumulate */
    PyObject *serial_if;                      /* called before threads run it, unless NULL */
};

/* Whether the engine may run a loop of these dtypes: not if elements are Python objects, or have
 * sizes that the table does not tell. */
bool loop_is_parallel(const char types[], int inputs, int operands);

/* Prepares `loop` for one row of a ufunc's table. */
void loop_initialize(struct loop *loop, const char types[], int inputs, int operands,
                     PyUFuncGenericFunction numpy_function, void *numpy_data,
                     const struct kernel *kernel, PyObject *serial_if);

/* The kernel that computes n elements in this thread, at once; NULL if that is not the way. */
elementwise_kernel *loop_tiny_kernel(const struct loop *loop, const npy_intp step[], npy_intp n);

/* Computes n > 0 elements that may be computed in any order, see elements_commute(). */
void loop_run_commuting(struct loop *loop, char *data[], const npy_intp step[], npy_intp n);

/* The same for operands in several dimensions, for loops with a kernel. */
void loop_run_nested(struct loop *loop, struct nested *nested, bool streaming);

/* Computes a part of a call with NumPy's loop; `call` is the call's struct failure. */
void loop_run_part(const struct loop *loop, struct failure *call, char *data[],
                   const npy_intp step[], npy_intp first, npy_intp n);

/* The function to register, with a struct loop as its data. */
void loop_run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data);

#endif
