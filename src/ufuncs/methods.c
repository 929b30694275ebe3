/* Shadows methods of np.ufunc: the attribute of an object comes before the method of its type. */
#include "methods.h"

#include "clone.h"
#include "reduce.h"

#include <stdbool.h>
#include <string.h>

enum { SHORT_SEGMENT = 4096 }; /* longer ones gain from kernels and threads */

/* What methods of np.ufunc are made of; NULL if this NumPy calls them in another way. */
typedef PyObject *fastcall(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

static PyCFunction numpy_at;
static fastcall *numpy_reduce, *numpy_reduceat;

PyObject *methods_numpy_reduce(PyObject *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *keywords)
{
    return numpy_reduce(self, args, count, keywords);
}

/* Whether an argument cannot have an __array_ufunc__ of its own, which is to see our ufunc, nor a
 * dtype whose loops may have been registered with ours alone. */
static bool is_plain(PyObject *argument)
{
    if (PyArray_CheckExact(argument)) {
        return PyArray_TYPE((PyArrayObject *)argument) <= NPY_HALF;
    }
    return PyArray_CheckAnyScalarExact(argument) || PyFloat_CheckExact(argument) ||
           PyLong_CheckExact(argument) || PyComplex_CheckExact(argument) ||
           PyBool_Check(argument) || PyList_CheckExact(argument) || PyTuple_CheckExact(argument) ||
           PySlice_Check(argument) || argument == Py_Ellipsis || argument == Py_None;
}

/* NumPy's indexed loops belong to its own ufuncs: they are several times as fast as calls of a loop
 * for one element each. */
static PyObject *at(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    bool plain = true;
    PyObject *all = PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count && all != NULL; i++) {
        plain = plain && is_plain(args[i]);
        PyTuple_SET_ITEM(all, i, Py_NewRef(args[i]));
    }
    PyObject *result = all != NULL ? numpy_at(plain ? clone_original(self) : self, all) : NULL;
    Py_XDECREF(all);
    return result;
}

/* Whether segments are short along any axis. */
static bool segments_are_short(PyObject *object, PyObject *indices)
{
    if (!PyArray_CheckExact(object) ||
        !(PyArray_CheckExact(indices) || PyList_CheckExact(indices))) {
        return false;
    }
    const PyArrayObject *array = (PyArrayObject *)object;
    const npy_intp segments = PyArray_CheckExact(indices) ? PyArray_SIZE((PyArrayObject *)indices)
                                                          : PyList_GET_SIZE(indices);
    npy_intp longest = 0;
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        longest = PyArray_DIM(array, i) > longest ? PyArray_DIM(array, i) : longest;
    }
    return longest / SHORT_SEGMENT < segments;
}

/* A loop that computes a segment of a few elements takes no longer than the call of ours before it. */
static PyObject *reduceat(PyObject *self, PyObject *const *args, Py_ssize_t count,
                          PyObject *keywords)
{
    const Py_ssize_t all = count + (keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0);
    bool plain = count >= 2 && segments_are_short(args[0], args[1]);
    for (Py_ssize_t i = 0; i < all && plain; i++) {
        plain = is_plain(args[i]) && !PyTuple_CheckExact(args[i]);
    }
    return numpy_reduceat(plain ? clone_original(self) : self, args, count, keywords);
}

/* The docstrings, which hold the signatures, are NumPy's. */
#define FASTCALL(function) (PyCFunction)(void (*)(void))(function)
static PyMethodDef definition_of_at = {"at", FASTCALL(at), METH_FASTCALL, NULL};
static PyMethodDef definition_of_reduceat = {"reduceat", FASTCALL(reduceat),
                                             METH_FASTCALL | METH_KEYWORDS, NULL};
static PyMethodDef definitions_of_reduce[] = {
    {"reduce", FASTCALL(reduce_by_add), METH_FASTCALL | METH_KEYWORDS, NULL},
    {"reduce", FASTCALL(reduce_by_multiply), METH_FASTCALL | METH_KEYWORDS, NULL},
};

/* The function behind np.ufunc.<name>, if it is called with `flags`, and its docstring. */
static PyCFunction numpy_method(const char *name, int flags, const char **doc)
{
    PyObject *method = PyObject_GetAttrString((PyObject *)&PyUFunc_Type, name);
    PyCFunction function = NULL;
    if (method != NULL && Py_IS_TYPE(method, &PyMethodDescr_Type)) {
        const PyMethodDef *definition = ((PyMethodDescrObject *)method)->d_method;
        function = definition->ml_flags == flags ? definition->ml_meth : NULL;
        *doc = definition->ml_doc;
    }
    Py_XDECREF(method); /* its type keeps it */
    return function;
}

int methods_initialize(void)
{
    const char *doc = NULL;
    numpy_at = numpy_method("at", METH_VARARGS, &definition_of_at.ml_doc);
    numpy_reduce =
        (fastcall *)(void (*)(void))numpy_method("reduce", METH_FASTCALL | METH_KEYWORDS, &doc);
    definitions_of_reduce[0].ml_doc = definitions_of_reduce[1].ml_doc = doc;
    numpy_reduceat = (fastcall *)(void (*)(void))numpy_method(
        "reduceat", METH_FASTCALL | METH_KEYWORDS, &definition_of_reduceat.ml_doc);
    return PyErr_Occurred() ? -1 : reduce_initialize();
}

static int shadow(PyObject *clone, PyMethodDef *definition)
{
    PyObject *method = PyCFunction_NewEx(definition, clone, NULL);
    const int status =
        method != NULL ? PyObject_SetAttrString(clone, definition->ml_name, method) : -1;
    Py_XDECREF(method);
    return status;
}

int methods_shadow(PyObject *clone, const char *op)
{
    if (PyUFunc_Type.tp_dictoffset == 0) {
        return 0;
    }
    if (numpy_at != NULL && shadow(clone, &definition_of_at) < 0) {
        return -1;
    }
    if (numpy_reduceat != NULL && shadow(clone, &definition_of_reduceat) < 0) {
        return -1;
    }
    const bool adds = op != NULL && strcmp(op, "add") == 0;
    const bool multiplies = op != NULL && strcmp(op, "multiply") == 0;
    return numpy_reduce != NULL && (adds || multiplies)
               ? shadow(clone, &definitions_of_reduce[multiplies])
               : 0;
}
