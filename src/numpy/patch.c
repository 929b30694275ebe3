/* Trampolines: once a ufunc has one, it keeps it, because another thread may be in it at any time. Patching
 * and restoring only switch a flag that it reads. */
#include "patch.h"

#include "check.h"
#include "clone.h"
#include "numpy_private.h"
#include "operands.h"
#include "options.h"
#include "patched_functions.h"
#include "profile.h"

/* Overlapping operands of fewer elements gain nothing from threads. */
enum { LEAST_ELEMENTS = 8192 };

/* The clone that a ufunc has been given, NULL if none. */
static PyObject *given_clone(PyObject *ufunc)
{
    PyObject *kept = private_kept((PyUFuncObject *)ufunc);
    return clone_is_of(kept, ufunc) ? kept : NULL;
}

PyObject *patch_clone(PyObject *ufunc)
{
    PyObject *clone = given_clone(ufunc);
    return clone != NULL && options_is_patched(clone_is_patched(clone), ufunc) ? clone : NULL;
}

/* Whether our inner loops may gain where NumPy has to call them: of products, and of large calls. */
static bool gains_by_loops(PyObject *called, PyObject *const *args, size_t count,
                           PyObject *keywords)
{
    const Py_ssize_t positional = PyVectorcall_NARGS(count);
    const bool is_large = ((PyUFuncObject *)called)->core_enabled ||
                          operands_largest(args, positional) >= LEAST_ELEMENTS;
    return is_large && operands_are_ordinary(args, positional, keywords);
}

PyObject *patch_finish(PyObject *clone, PyObject *called, PyObject *result)
{
    if (result != NULL || clone == called || !PyErr_ExceptionMatches(PyExc_TypeError)) {
        return result;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *named = value != NULL ? PyObject_GetAttrString(value, "ufunc") : NULL;
    if (named == clone) {
        PyObject_SetAttrString(value, "ufunc", called);
    }
    Py_XDECREF(named);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return NULL;
}

static PyObject *call_by_numpy(PyObject *clone, PyObject *called, PyObject *const *args,
                               size_t count, PyObject *keywords)
{
    return gains_by_loops(called, args, count, keywords)
               ? patch_finish(clone, called,
                              clone_call_by_numpy(clone, called, args, count, keywords))
               : private_numpy_vectorcall(called, args, count, keywords);
}

static PyObject *call(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords)
{
    PyObject *clone = private_kept((PyUFuncObject *)self);
    const bool is_led =
        options_is_patched(clone_is_patched(clone), self) &&
        (clone_may_gain(clone, args, count, keywords) || profile_is_on() || check_is_on());
    return is_led ? clone_call(clone, self, args, count, keywords, call_by_numpy)
                  : private_numpy_vectorcall(self, args, count, keywords);
}

/* ---- Python ---- */

static PyObject *lead_to_clone(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *original, *clone;
    if (!PyArg_ParseTuple(args, "O!O!:lead_to_clone", &PyUFunc_Type, &original, &PyUFunc_Type,
                          &clone)) {
        return NULL;
    }
    PyUFuncObject *ufunc = (PyUFuncObject *)original;
    if (clone_is_of(clone, original) && private_is_free(ufunc)) {
        private_take_over(ufunc, Py_NewRef(clone), call);
    }
    return PyBool_FromLong(given_clone(original) != NULL);
}

static PyObject *lead_function(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    PyObject *callable, *replacement;
    if (!PyArg_ParseTuple(args, "sOO:lead_function", &name, &callable, &replacement)) {
        return NULL;
    }
    return PyBool_FromLong(patched_functions_lead(name, callable, replacement));
}

static PyObject *set_patched(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *what;
    int on;
    if (!PyArg_ParseTuple(args, "Op:set_patched", &what, &on)) {
        return NULL;
    }
    if (PyUnicode_Check(what)) {
        patched_functions_switch(what, on);
    } else if (Py_IS_TYPE(what, &PyUFunc_Type) && given_clone(what) != NULL) {
        atomic_store(clone_is_patched(given_clone(what)), on);
    }
    Py_RETURN_NONE;
}

static PyObject *is_patched(PyObject *module, PyObject *what)
{
    (void)module;
    return PyBool_FromLong(PyUnicode_Check(what)
                               ? patched_functions_is_on(what)
                               : Py_IS_TYPE(what, &PyUFunc_Type) && patch_clone(what) != NULL);
}

static PyMethodDef functions[] = {
    {"lead_to_clone", lead_to_clone, METH_VARARGS,
     "lead_to_clone(ufunc, clone): lead calls of NumPy's ufunc to its clone while it is patched. "
     "False if something else has its calls."},
    {"lead_function", lead_function, METH_VARARGS,
     "lead_function(name, callable, replacement): the same for a function."},
    {"set_patched", set_patched, METH_VARARGS,
     "set_patched(what, on): a ufunc, or the name of a function, in the whole process."},
    {"is_patched", is_patched, METH_O,
     "is_patched(what): whether calls of the ufunc or function from here are led to ours."},
    {NULL, NULL, 0, NULL},
};

int patch_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
