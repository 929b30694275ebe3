#include "patched_functions.h"

#include "dtypes.h"
#include "numpy_private.h"
#include "options.h"

#include <string.h>

/* Smaller operands gain less than a Python function takes. Floating-point ones are BLAS's in `dot`. */
enum { LEAST_ELEMENTS = 512, LEAST_BLAS_ELEMENTS = 65536 };

typedef PyObject *fastcall(PyObject *, PyObject *const *, Py_ssize_t);
typedef PyObject *fastcall_with_keywords(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

enum { DOT, METHOD_DOT, INNER, VDOT, EINSUM, FUNCTIONS };

static struct function {
    const char *name, *switched_by; /* NULL: the same */
    bool is_method, takes_keywords, takes_out, is_blas;
    int first; /* of two arrays among the arguments */
    PyCFunction trampoline, numpys;
    PyObject *key, *replacement; /* the name that switches it, as a string */
    _Atomic bool is_patched;
} functions[FUNCTIONS];

static bool is_float(int type)
{
    return type == NPY_FLOAT || type == NPY_DOUBLE || type == NPY_CFLOAT || type == NPY_CDOUBLE;
}

static bool may_gain(const struct function *function, PyObject *a, PyObject *b)
{
    if (!PyArray_CheckExact(a) || !PyArray_CheckExact(b)) {
        return false;
    }
    PyArrayObject *first = (PyArrayObject *)a, *second = (PyArrayObject *)b;
    const npy_intp least =
        function->is_blas && is_float(PyArray_TYPE(first)) ? LEAST_BLAS_ELEMENTS : LEAST_ELEMENTS;
    return PyArray_SIZE(first) + PyArray_SIZE(second) >= least &&
           dtype_is_number(PyArray_TYPE(first)) && dtype_is_number(PyArray_TYPE(second));
}

static bool is_out(PyObject *keyword)
{
    return PyUnicode_CompareWithASCIIString(keyword, "out") == 0;
}

/* A new reference; NULL without an exception if NumPy is to compute it. */
static PyObject *by_ours(struct function *function, PyObject *self, PyObject *const *args,
                         Py_ssize_t count, PyObject *keywords)
{
    enum { MOST_ARGUMENTS = 4 };
    PyObject *of_call[MOST_ARGUMENTS];
    const Py_ssize_t all = count + (keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0);
    const Py_ssize_t shift = function->is_method, least = function->first + 2;
    const bool has_out = all + shift == least + 1 && function->takes_out &&
                         (count == all || is_out(PyTuple_GET_ITEM(keywords, 0)));
    if (!options_is_patched(&function->is_patched, function->key) || count + shift < least ||
        (all + shift > least && !has_out)) {
        return NULL;
    }
    of_call[0] = self;
    memcpy(of_call + shift, args, (size_t)all * sizeof *args);
    if (!may_gain(function, of_call[function->first], of_call[function->first + 1])) {
        return NULL;
    }
    PyObject *result =
        PyObject_Vectorcall(function->replacement, of_call, (size_t)(count + shift), keywords);
    if (result == Py_NotImplemented) {
        Py_DECREF(result);
        return NULL;
    }
    return result;
}

static PyObject *with_keywords(struct function *function, PyObject *self, PyObject *const *args,
                               Py_ssize_t count, PyObject *keywords)
{
    PyObject *result = by_ours(function, self, args, count, keywords);
    return result != NULL || PyErr_Occurred()
               ? result
               : ((fastcall_with_keywords *)(void (*)(void))function->numpys)(self, args, count,
                                                                              keywords);
}

static PyObject *without_keywords(struct function *function, PyObject *self, PyObject *const *args,
                                  Py_ssize_t count)
{
    PyObject *result = by_ours(function, self, args, count, NULL);
    return result != NULL || PyErr_Occurred()
               ? result
               : ((fastcall *)(void (*)(void))function->numpys)(self, args, count);
}

static PyObject *dot(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    return with_keywords(&functions[DOT], self, args, count, keywords);
}

static PyObject *method_dot(PyObject *self, PyObject *const *args, Py_ssize_t count,
                            PyObject *keywords)
{
    return with_keywords(&functions[METHOD_DOT], self, args, count, keywords);
}

static PyObject *inner(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return without_keywords(&functions[INNER], self, args, count);
}

static PyObject *vdot(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return without_keywords(&functions[VDOT], self, args, count);
}

static PyObject *einsum(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    return with_keywords(&functions[EINSUM], self, args, count, keywords);
}

#define TRAMPOLINE(function) (PyCFunction)(void (*)(void))(function)
static struct function functions[FUNCTIONS] = {
    [DOT] = {"dot", .takes_keywords = true, .takes_out = true, .is_blas = true,
             .trampoline = TRAMPOLINE(dot)},
    [METHOD_DOT] = {"ndarray.dot", "dot", .is_method = true, .takes_keywords = true,
                    .takes_out = true, .is_blas = true, .trampoline = TRAMPOLINE(method_dot)},
    [INNER] = {"inner", .is_blas = true, .trampoline = TRAMPOLINE(inner)},
    [VDOT] = {"vdot", .is_blas = true, .trampoline = TRAMPOLINE(vdot)},
    [EINSUM] = {"einsum", .takes_keywords = true, .first = 1, .trampoline = TRAMPOLINE(einsum)},
};

static struct function *find(const char *name)
{
    struct function *found = NULL;
    for (int i = 0; i < FUNCTIONS; i++) {
        found = strcmp(functions[i].name, name) == 0 ? &functions[i] : found;
    }
    return found;
}

bool patched_functions_lead(const char *name, PyObject *callable, PyObject *replacement)
{
    struct function *function = find(name);
    if (function == NULL || function->numpys != NULL) {
        return function != NULL;
    }
    function->key = PyUnicode_InternFromString(function->switched_by != NULL ? function->switched_by
                                                                             : function->name);
    function->replacement = Py_NewRef(replacement);
    const int flags = METH_FASTCALL | (function->takes_keywords ? METH_KEYWORDS : 0);
    return function->key != NULL &&
           private_replace(callable, flags, function->trampoline, &function->numpys);
}

static bool is_switched_by(const struct function *function, PyObject *name)
{
    return function->numpys != NULL && PyUnicode_Compare(function->key, name) == 0;
}

void patched_functions_switch(PyObject *name, bool on)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        if (is_switched_by(&functions[i], name)) {
            atomic_store(&functions[i].is_patched, on);
        }
    }
}

bool patched_functions_is_on(PyObject *name)
{
    bool on = false;
    for (int i = 0; i < FUNCTIONS; i++) {
        on = on || (is_switched_by(&functions[i], name) &&
                    options_is_patched(&functions[i].is_patched, functions[i].key));
    }
    return on;
}
