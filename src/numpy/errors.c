#include "errors.h"

#include "numpy_private.h"
#include "threads/pool.h"

#include <pthread.h>

int errors_raised(void)
{
    return fetestexcept(ERRORS_OF_NUMPY);
}

void errors_clear(void)
{
    if (fetestexcept(ERRORS_OF_NUMPY) != 0) {
        feclearexcept(ERRORS_OF_NUMPY);
    }
}

int errors_report(const char *name, int raised)
{
    return raised == 0 ? 0
                       : PyUFunc_GiveFloatingpointErrors(
                             name, (raised & FE_DIVBYZERO ? NPY_FPE_DIVIDEBYZERO : 0) |
                                       (raised & FE_OVERFLOW ? NPY_FPE_OVERFLOW : 0) |
                                       (raised & FE_UNDERFLOW ? NPY_FPE_UNDERFLOW : 0) |
                                       (raised & FE_INVALID ? NPY_FPE_INVALID : 0));
}

PyObject *errors_finish(const char *name, PyObject *result, int raised)
{
    bool failed = PyErr_Occurred() != NULL;
    if (!failed && raised != 0) {
        feclearexcept(raised);
        failed = errors_report(name, raised) < 0;
    }
    if (failed) {
        Py_DECREF(result);
        return NULL;
    }
    return result;
}

/* Carries a Python exception from the thread that met it to the thread that called the ufunc.
 * A loop raises between PyGILState_Ensure and PyGILState_Release. On a thread that Python does not
 * know, Release would destroy the thread state and the exception with it; so workers get a thread
 * state of their own, which they keep until they end. */
static PyInterpreterState *interpreter;
static pthread_key_t worker_state;

static void forget_worker(void *state)
{
    if (!private_is_finalizing()) {
        PyEval_RestoreThread(state);
        PyThreadState_Clear(state);
        PyThreadState_DeleteCurrent();
    }
}

int failure_initialize(void)
{
    interpreter = PyInterpreterState_Get();
    if (pthread_key_create(&worker_state, forget_worker) != 0) {
        PyErr_SetString(PyExc_ImportError, "numc_ufuncs: no thread-specific key is left");
        return -1;
    }
    return 0;
}

void failure_before_threads(void *hook_data)
{
    struct failure *failure = hook_data;
    failure->threads_run = true;
    /* NumPy keeps the GIL for up to 500 elements: a worker that raises would wait for it for ever. */
    failure->released = private_holds_gil() ? PyEval_SaveThread() : NULL;
}

void failure_after_threads(void *hook_data)
{
    struct failure *failure = hook_data;
    failure->threads_run = false;
    if (failure->released != NULL) {
        PyEval_RestoreThread(failure->released);
    }
    if (failure->type != NULL) {
        const PyGILState_STATE gil = PyGILState_Ensure();
        PyErr_Restore(failure->type, failure->value, failure->traceback);
        PyGILState_Release(gil);
    }
}

void failure_before_chunk(void *hook_data)
{
    const struct failure *failure = hook_data;
    if (failure->threads_run && PyGILState_GetThisThreadState() == NULL) {
        PyThreadState *state = PyThreadState_New(interpreter);
        if (state != NULL) {
            pthread_setspecific(worker_state, state);
            pool_keep_worker(); /* its end might meet the interpreter's */
        }
    }
}

void failure_after_chunk(void *hook_data, ptrdiff_t first)
{
    struct failure *failure = hook_data;
    if (!failure->threads_run) {
        return;
    }
    PyThreadState *state = PyGILState_GetThisThreadState();
    if (state == NULL || !private_has_exception(state)) {
        return;
    }
    /* One thread at a time, by a lock that is never held while waiting for the GIL. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    PyObject *type, *value, *traceback;
    PyEval_RestoreThread(state);
    PyErr_Fetch(&type, &value, &traceback);
    pthread_mutex_lock(&lock);
    const bool earliest = failure->type == NULL || first < failure->first;
    if (earliest) {
        PyObject *const later[] = {failure->type, failure->value, failure->traceback};
        failure->type = type;
        failure->value = value;
        failure->traceback = traceback;
        failure->first = first;
        type = later[0];
        value = later[1];
        traceback = later[2];
    }
    pthread_mutex_unlock(&lock);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    PyEval_SaveThread();
}
