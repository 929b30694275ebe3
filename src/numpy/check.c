#include "check.h"

_Atomic bool check_is_set;

static gil_or_mutex lock;        /* of these two: */
static PyObject *before, *after; /* Python functions */
static _Thread_local bool inside;

bool check_is_inside(void)
{
    return inside;
}

/* Meanwhile another thread may set another function. */
static PyObject *call_inside(PyObject *const *function, PyObject *const *args, size_t count)
{
    GIL_OR_LOCK(&lock);
    PyObject *called = Py_NewRef(*function);
    GIL_OR_UNLOCK(&lock);
    inside = true;
    PyObject *result = PyObject_Vectorcall(called, args, count, NULL);
    inside = false;
    Py_DECREF(called);
    return result;
}

static PyObject *as_dict(PyObject *const *values, PyObject *keywords)
{
    PyObject *dict = PyDict_New();
    const Py_ssize_t count = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t i = 0; i < count && dict != NULL; i++) {
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(keywords, i), values[i]) < 0) {
            Py_CLEAR(dict);
        }
    }
    return dict;
}

PyObject *check_before(PyObject *ufunc, const char *method, PyObject *const *args, Py_ssize_t count,
                       PyObject *keywords)
{
    PyObject *of_call[] = {ufunc, PyUnicode_FromString(method), PyTuple_New(count),
                           as_dict(args + count, keywords)};
    PyObject *expected = NULL;
    if (of_call[1] != NULL && of_call[2] != NULL && of_call[3] != NULL) {
        for (Py_ssize_t i = 0; i < count; i++) {
            PyTuple_SET_ITEM(of_call[2], i, Py_NewRef(args[i]));
        }
        expected = call_inside(&before, of_call, 4);
    }
    Py_XDECREF(of_call[1]);
    Py_XDECREF(of_call[2]);
    Py_XDECREF(of_call[3]);
    return expected;
}

PyObject *check_after(PyObject *expected, PyObject *result)
{
    PyObject *type, *value, *traceback; /* the call's own exception */
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *const of_call[] = {expected, result != NULL ? result : type};
    PyObject *done = of_call[1] != NULL ? call_inside(&after, of_call, 2) : NULL;
    Py_DECREF(expected);
    if (done == NULL && PyErr_Occurred()) {
        Py_CLEAR(result);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        return NULL;
    }
    Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
    return result;
}

static PyObject *set_check(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *first, *second;
    int on;
    if (!PyArg_ParseTuple(args, "OOp:set_check", &first, &second, &on)) {
        return NULL;
    }
    GIL_OR_LOCK(&lock);
    PyObject *const last[] = {before, after};
    before = Py_NewRef(first);
    after = Py_NewRef(second);
    GIL_OR_UNLOCK(&lock);
    Py_XDECREF(last[0]);
    Py_XDECREF(last[1]);
    atomic_store(&check_is_set, on);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_check", set_check, METH_VARARGS,
     "set_check(before, after, on): before each call, before(ufunc, method, args, keywords) is "
     "called, and "
     "after it, after(what that returned, the result or the type of an exception)."},
    {NULL, NULL, 0, NULL},
};

int check_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
