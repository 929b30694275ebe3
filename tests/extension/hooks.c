/* Hooks that count calls of ufuncs. They are never taken off; install them before other threads compute. */
#include "hooks.h"

#include <stdatomic.h>

enum { MOST_HOOKS = 32 };

struct hook {
    PyUFuncObject *ufunc;
    vectorcallfunc vectorcall;
    _Atomic unsigned long long calls;
};

static struct hook hooks[MOST_HOOKS];
static int hook_count;

static struct hook *hook_of(PyObject *ufunc)
{
    for (int i = 0; i < hook_count; i++) {
        if ((PyObject *)hooks[i].ufunc == ufunc) {
            return &hooks[i];
        }
    }
    return NULL;
}

static PyObject *hooked_call(PyObject *self, PyObject *const *args, size_t count,
                             PyObject *keywords)
{
    struct hook *hook = hook_of(self);
    atomic_fetch_add(&hook->calls, 1);
    return hook->vectorcall(self, args, count, keywords);
}

PyObject *hooks_count_calls(PyObject *module, PyObject *args)
{
    (void)module;
    PyUFuncObject *ufunc;
    if (!PyArg_ParseTuple(args, "O!:count_calls", &PyUFunc_Type, &ufunc)) {
        return NULL;
    }
    if (hook_of((PyObject *)ufunc) != NULL) {
        return PyErr_Format(PyExc_ValueError, "%R has a hook already", ufunc);
    }
    if (hook_count == MOST_HOOKS) {
        return PyErr_Format(PyExc_ValueError, "no more than %d hooks", MOST_HOOKS);
    }
    struct hook *hook = &hooks[hook_count++];
    hook->ufunc = (PyUFuncObject *)Py_NewRef((PyObject *)ufunc);
    hook->vectorcall = ufunc->vectorcall;
    ufunc->vectorcall = hooked_call;
    Py_RETURN_NONE;
}

PyObject *hooks_calls(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *counts = PyDict_New();
    for (int i = 0; counts != NULL && i < hook_count; i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(atomic_load(&hooks[i].calls));
        if (count == NULL || PyDict_SetItem(counts, (PyObject *)hooks[i].ufunc, count) < 0) {
            Py_CLEAR(counts);
        }
        Py_XDECREF(count);
    }
    return counts;
}
