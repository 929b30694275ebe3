/* Shadows methods of np.ufunc: the attribute of an object comes before the method of its type. */
#include "methods.h"

#include "numpy_private.h"
#include "options.h"
#include "plugin.h"
#include "reduction_call.h"

#include <stdbool.h>
#include <string.h>

enum { SHORT_SEGMENT = 4096 }; /* longer ones gain from kernels and threads */

/* What methods of np.ufunc are made of; NULL if this NumPy calls them in another way. */
typedef PyObject *fastcall(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

static PyCFunction numpy_at;
static fastcall *numpy_reduce, *numpy_accumulate, *numpy_reduceat, *numpy_outer;

PyObject *methods_numpy_reduce(PyObject *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *keywords)
{
    return numpy_reduce(self, args, count, keywords);
}

PyObject *methods_numpy_accumulate(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                   PyObject *keywords)
{
    return numpy_accumulate(self, args, count, keywords);
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
    const bool entered = options_enter();
    PyObject *result = all != NULL ? numpy_at(plain ? clone_original(self) : self, all) : NULL;
    options_leave(entered);
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
    const bool entered = options_enter();
    PyObject *result = numpy_reduceat(plain ? clone_original(self) : self, args, count, keywords);
    options_leave(entered);
    return result;
}

/* NumPy's own, which calls the loops past the ufunc's vectorcall. */
static PyObject *outer(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    const bool entered = options_enter();
    PyObject *result = numpy_outer(self, args, count, keywords);
    options_leave(entered);
    return result;
}

/* The docstrings, which hold the signatures, are NumPy's. */
#define FASTCALL(function) (PyCFunction)(void (*)(void))(function)
#define METHOD(name, function)                                                                     \
    {                                                                                              \
        name, FASTCALL(function), METH_FASTCALL | METH_KEYWORDS, NULL                              \
    }
static PyMethodDef definition_of_at = {"at", FASTCALL(at), METH_FASTCALL, NULL};
static PyMethodDef definition_of_reduceat = METHOD("reduceat", reduceat);
static PyMethodDef definition_of_outer = METHOD("outer", outer);
enum { ADD, MULTIPLY, OTHER, OPS };
static PyMethodDef definitions_of_reduce[OPS] = {
    METHOD("reduce", reduce_by_add),
    METHOD("reduce", reduce_by_multiply),
    METHOD("reduce", reduce_by_other),
};
static PyMethodDef definitions_of_accumulate[OPS] = {
    METHOD("accumulate", accumulate_by_add),
    METHOD("accumulate", accumulate_by_multiply),
    METHOD("accumulate", accumulate_by_other),
};

/* The function behind np.ufunc.<name>, if it is called with `flags`; its docstring becomes that of the
 * `count` definitions. */
static PyCFunction numpy_method(const char *name, int flags, PyMethodDef *definitions, int count)
{
    const char *doc = NULL;
    const PyCFunction function = private_method(name, flags, &doc);
    for (int i = 0; i < count; i++) {
        definitions[i].ml_doc = doc;
    }
    return function;
}

static fastcall *numpy_fastcall(const char *name, PyMethodDef *definitions, int count)
{
    return (fastcall *)(void (*)(void))numpy_method(name, METH_FASTCALL | METH_KEYWORDS,
                                                    definitions, count);
}

int methods_initialize(void)
{
    numpy_at = numpy_method("at", METH_VARARGS, &definition_of_at, 1);
    numpy_reduce = numpy_fastcall("reduce", definitions_of_reduce, OPS);
    numpy_accumulate = numpy_fastcall("accumulate", definitions_of_accumulate, OPS);
    numpy_reduceat = numpy_fastcall("reduceat", &definition_of_reduceat, 1);
    numpy_outer = numpy_fastcall("outer", &definition_of_outer, 1);
    return reduce_initialize();
}

static int shadow(PyObject *clone, PyMethodDef *definition)
{
    PyObject *method = PyCFunction_NewEx(definition, clone, NULL);
    const int status =
        method != NULL ? PyObject_SetAttrString(clone, definition->ml_name, method) : -1;
    Py_XDECREF(method);
    return status;
}

/* Where the loops outside its table are unknown, a clone's methods are those of its original. */
static int shadow_by_original(PyObject *clone)
{
    static const char *const names[] = {"reduce", "accumulate", "reduceat", "outer", "at"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        PyObject *method = PyObject_GetAttrString(clone_original(clone), names[i]);
        const int status = method != NULL ? PyObject_SetAttrString(clone, names[i], method) : -1;
        Py_XDECREF(method);
        if (status < 0) {
            return -1;
        }
    }
    return 0;
}

int methods_shadow(PyObject *clone, const char *op)
{
    if (PyUFunc_Type.tp_dictoffset == 0) {
        return 0;
    }
    if (!private_known[PRIVATE_LOOPS]) {
        return shadow_by_original(clone);
    }
    const int of_op = op != NULL && strcmp(op, "add") == 0        ? ADD
                      : op != NULL && strcmp(op, "multiply") == 0 ? MULTIPLY
                                                                  : OTHER;
    const bool failed =
        (numpy_at != NULL && shadow(clone, &definition_of_at) < 0) ||
        (numpy_reduce != NULL && shadow(clone, &definitions_of_reduce[of_op]) < 0) ||
        (numpy_accumulate != NULL && shadow(clone, &definitions_of_accumulate[of_op]) < 0) ||
        (numpy_reduceat != NULL && shadow(clone, &definition_of_reduceat) < 0) ||
        (numpy_outer != NULL && shadow(clone, &definition_of_outer) < 0);
    return failed ? -1 : 0;
}
