/* Adapts NumPy's inner loops, and our kernels, to the parallel engine. */
#include "elementwise_loop.h"

#include "dtypes.h"
#include "errors.h"
#include "options.h"
#include "policy_in_use.h"
#include "reduction_loop.h"

_Static_assert(sizeof(npy_intp) == sizeof(ptrdiff_t), "steps are handed on without conversion");

/* Most kernels beat NumPy's loops only where elements are next to each other. */
static bool suits_kernel(const struct loop *loop, const ptrdiff_t step[])
{
    const struct elementwise *work = &loop->work;
    if (loop->kernel_takes_any_step) {
        return true;
    }
    for (int i = 0; i < work->operands; i++) {
        const bool next = step[i] == (ptrdiff_t)work->item_size[i];
        if (!next && !(i < work->inputs && step[i] == 0)) {
            return false;
        }
    }
    return true;
}

void loop_run_part(const struct loop *loop, struct failure *call, char *data[],
                   const npy_intp step[], npy_intp first, npy_intp n)
{
    failure_before_part(call);
    loop->numpy_function(data, &n, step, loop->numpy_data);
    failure_after_part(call, first);
}

/* The kernel for operands that lie so, or NULL if NumPy's loop is to run. */
static elementwise_kernel *kernel_for(const struct loop *loop, enum order order,
                                      const ptrdiff_t step[])
{
    if (loop->kernel == NULL || order == IN_ORDER || !suits_kernel(loop, step)) {
        return NULL;
    }
    const bool stream = order == ANY_ORDER_STREAMING && loop->kernel->streaming != NULL;
    return stream ? loop->kernel->streaming : loop->kernel->cached;
}

static void run_part(const struct elementwise *work, void *call, enum order order,
                     char *const data[], const ptrdiff_t step[], ptrdiff_t first, ptrdiff_t n)
{
    const struct loop *loop = (const struct loop *)work;
    elementwise_kernel *const kernel = kernel_for(loop, order, step);
    if (kernel != NULL) {
        kernel(data, step, n);
    } else {
        loop_run_part(loop, call, (char **)data, step, first, n);
    }
}

/* Of a loop with a kernel: NumPy's loop beside it sets no exceptions. */
static void run_rows(const struct elementwise *work, void *call, enum order order,
                     char *const data[], const ptrdiff_t row_step[], const ptrdiff_t step[],
                     ptrdiff_t rows, ptrdiff_t n)
{
    (void)call;
    const struct loop *loop = (const struct loop *)work;
    elementwise_kernel *const kernel = kernel_for(loop, order, step);
    char *row[NESTED_MOST_OPERANDS];
    for (int i = 0; i < work->operands; i++) {
        row[i] = data[i];
    }
    for (ptrdiff_t r = 0; r < rows; r++) {
        if (kernel != NULL) {
            kernel(row, step, n);
        } else {
            loop->numpy_function(row, &n, step, loop->numpy_data);
        }
        for (int i = 0; i < work->operands; i++) {
            row[i] += row_step[i];
        }
    }
}

/* Asks Python; an exception there is no reason to fail, only not to use threads. One that an
 * earlier part of NumPy's call has set stays. */
static bool allows_threads(const struct elementwise *work)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *answer = PyObject_CallNoArgs(((const struct loop *)work)->serial_if);
    const bool allows = answer != NULL && PyObject_IsTrue(answer) == 0;
    Py_XDECREF(answer);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(gil);
    return allows;
}

bool loop_is_parallel(const char types[], int inputs, int operands)
{
    for (int i = 0; i < operands; i++) {
        if (dtype_of(types[i]).size == 0) {
            return false;
        }
    }
    return inputs < operands && operands <= MOST_OPERANDS;
}

void loop_initialize(struct loop *loop, const char types[], int inputs, int operands,
                     PyUFuncGenericFunction numpy_function, void *numpy_data,
                     const struct kernel *kernel, PyObject *serial_if)
{
    loop->work.run = run_part;
    loop->work.run_rows = run_rows;
    loop->work.allows_threads = serial_if != NULL ? allows_threads : NULL;
    loop->work.before_threads = failure_before_threads;
    loop->work.after_threads = failure_after_threads;
    loop->work.asks_for_order = kernel != NULL;
    loop->work.policy = &policy_in_use;
    loop->work.inputs = inputs;
    loop->work.operands = operands;
    for (int i = 0; i < operands; i++) {
        loop->work.item_size[i] = dtype_of(types[i]).size;
    }
    elementwise_initialize(&loop->work);
    loop->numpy_function = numpy_function;
    loop->numpy_data = numpy_data;
    loop->kernel = kernel;
    loop->kernel_takes_any_step =
        kernel != NULL && (types[0] == NPY_HALF || numpy_function == NULL);
    loop->serial_if = serial_if;
}

void loop_run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    struct loop *loop = data;
    if (elementwise_is_tiny(&loop->work, dimensions[0])) {
        loop->numpy_function(args, dimensions, steps, loop->numpy_data);
        return;
    }
    const bool entered = options_enter_loop();
    if (loop->reduction == NULL ||
        !reduction_in_loop(loop->reduction, args, dimensions[0], steps)) {
        struct failure failure = {.threads_run = false};
        elementwise_run(&loop->work, &failure, args, steps, dimensions[0]);
    }
    options_leave(entered);
}

elementwise_kernel *loop_tiny_kernel(const struct loop *loop, const npy_intp step[], npy_intp n)
{
    return loop->kernel != NULL && elementwise_is_tiny(&loop->work, n) && suits_kernel(loop, step)
               ? loop->kernel->cached
               : NULL;
}

void loop_run_commuting(struct loop *loop, char *data[], const npy_intp step[], npy_intp n)
{
    elementwise_kernel *const kernel = loop_tiny_kernel(loop, step, n);
    if (kernel != NULL) {
        kernel(data, step, n);
    } else if (elementwise_is_tiny(&loop->work, n)) {
        loop->numpy_function(data, &n, step, loop->numpy_data);
    } else {
        loop_run(data, &n, step, loop);
    }
}

void loop_run_nested(struct loop *loop, struct nested *nested, bool streaming)
{
    struct failure failure = {.threads_run = false};
    nested_run(&loop->work, &failure, nested, streaming);
}
