/* What NumPy calls back, for element-wise calls that it keeps. */
#include "elementwise_loop.h"

#include "dtypes.h"
#include "errors.h"
#include "options.h"
#include "policy_in_use.h"
#include "reduction_loop.h"

_Static_assert(sizeof(npy_intp) == sizeof(ptrdiff_t), "steps are handed on without conversion");

static const struct inner_loop_hooks hooks = {failure_before_threads, failure_after_threads,
                                              failure_before_chunk, failure_after_chunk};

/* Asks Python. What a handler of a signal raises meanwhile reaches the caller, unless an earlier part of
 * NumPy's call has set an exception: that stays. */
bool loop_allows_threads(PyObject *serial_if)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *answer = PyObject_CallNoArgs(serial_if);
    const bool allows = answer != NULL && PyObject_IsTrue(answer) == 0;
    Py_XDECREF(answer);
    if (type != NULL) {
        PyErr_Restore(type, value, traceback);
    }
    PyGILState_Release(gil);
    return allows;
}

static bool allows_threads(const struct elementwise *engine)
{
    return loop_allows_threads(((const struct loop *)engine)->serial_if);
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

/* Some loops of floats round the last elements of a row otherwise, where rows lie apart; and those of isnan(), isinf(),
 * isfinite() and signbit() leave out elements of an output that lies apart (seen in NumPy 2.5.5). */
static bool is_exact(const char types[], int inputs, int operands)
{
    const bool is_real = types[0] == NPY_FLOAT || types[0] == NPY_DOUBLE;
    return dtype_is_integer(types[operands - 1]) &&
           !(inputs == 1 && is_real && types[1] == NPY_BOOL);
}

void loop_initialize(struct loop *loop, const char types[], int inputs, int operands,
                     PyUFuncGenericFunction function, void *function_data,
                     const struct kernel *kernel, PyObject *serial_if)
{
    loop->engine = (struct elementwise){
        .function = function,
        .function_data = function_data,
        .hooks = kernel == NULL ? &hooks : NULL,
        .kernel = kernel,
        .kernel_takes_any_step = kernel != NULL && (types[0] == NPY_HALF || function == NULL),
        .same_bits = is_exact(types, inputs, operands) ? SAME_ANYWHERE : SAME_IN_LINE,
        .allows_threads = serial_if != NULL ? allows_threads : NULL,
        .inputs = inputs,
        .operands = operands,
        .policy = &policy_in_use,
    };
    for (int i = 0; i < operands; i++) {
        loop->engine.item_size[i] = dtype_of(types[i]).size;
    }
    elementwise_initialize(&loop->engine);
    loop->serial_if = serial_if;
}

/* Those of halves and of complex numbers compute some elements otherwise where inputs lie apart (seen in NumPy 2.5.2 with
 * AVX-512), and power() those whose exponent is repeated: goes_forward() of nested_call.c leaves these out. */
void loop_know_numpys(struct loop *loop, const char types[], bool zeros_tie)
{
    struct elementwise *engine = &loop->engine;
    bool are_real = true;
    for (int i = 0; i < engine->operands; i++) {
        const bool is_truth = i >= engine->inputs && types[i] == NPY_BOOL;
        are_real = are_real && (types[0] == NPY_FLOAT || types[0] == NPY_DOUBLE) &&
                   (types[i] == types[0] || is_truth);
    }
    engine->zeros_tie = zeros_tie;
    if (engine->same_bits == SAME_IN_LINE && are_real && !zeros_tie) {
        engine->same_bits = SAME_FORWARD;
    }
}

/* Not inlined: short loops, such as runs of a mask, need no room on the stack. */
static __attribute__((noinline)) void run_long(char **args, npy_intp n, const npy_intp *steps,
                                               struct loop *loop)
{
    struct options_scope scope;
    options_enter_loop(&scope);
    if (loop->reduction == NULL || !reduction_in_loop(loop->reduction, args, n, steps)) {
        struct failure failure = {.threads_run = false};
        elementwise_run_loop(&loop->engine, &failure, args, steps, n);
    }
    options_leave(&scope);
}

void loop_run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    struct loop *loop = data;
    const struct elementwise *engine = &loop->engine;
    if (elementwise_is_tiny(engine, dimensions[0])) {
        engine->function(args, dimensions, steps, engine->function_data);
    } else {
        run_long(args, dimensions[0], steps, loop);
    }
}
