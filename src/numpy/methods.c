/* Shadows methods of np.ufunc: the attribute of an object comes before the method of its type. Under a patch
 * the methods of NumPy's ufuncs are led here, too: then `called` is NumPy's ufunc, else the clone itself. */
#include "methods.h"

#include "accumulate_call.h"
#include "call.h"
#include "check.h"
#include "clone.h"
#include "loop_reduction.h"
#include "numpy_private.h"
#include "operands.h"
#include "options.h"
#include "patch.h"
#include "profile.h"
#include "reduceat_call.h"
#include "reduction_call.h"
#include "reduction_start.h"

#include "engine/reduction_cutoffs.h"

#include <stdatomic.h>
#include <string.h>

/* What methods of np.ufunc are made of; NULL if this NumPy calls them in another way. */
typedef PyObject *fastcall(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

static PyCFunction numpy_at;
static fastcall *numpy_reduce, *numpy_accumulate, *numpy_reduceat, *numpy_outer;

/* NumPy's indexed loops belong to its own ufuncs: they are several times as fast as calls of a loop
 * for one element each. */
static PyObject *at(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const bool plain = operands_are_ordinary(args, count, NULL);
    PyObject *all = PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count && all != NULL; i++) {
        PyTuple_SET_ITEM(all, i, Py_NewRef(args[i]));
    }
    struct options_scope scope;
    options_enter(&scope);
    PyObject *result = all != NULL ? numpy_at(plain ? clone_original(self) : self, all) : NULL;
    options_leave(&scope);
    Py_XDECREF(all);
    return result;
}

/* As NumPy does it: a call of the ufunc, of the first array with an axis of one element for each of the
 * second. NULL without an exception if only NumPy knows the arguments. */
static PyObject *outer_by_call(PyObject *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *keywords)
{
    enum { MOST_ARGUMENTS = 16 };
    const PyUFuncObject *ufunc = (PyUFuncObject *)self;
    const Py_ssize_t all = count + (keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0);
    PyObject *of_call[MOST_ARGUMENTS];
    if (count != 2 || all > MOST_ARGUMENTS || ufunc->nin != 2 || ufunc->core_enabled ||
        !PyArray_CheckExact(args[0]) || !PyArray_CheckExact(args[1]) ||
        !operands_are_ordinary(args + count, 0, keywords)) {
        return NULL;
    }
    PyArrayObject *first = (PyArrayObject *)args[0];
    const int ndim = PyArray_NDIM(first), others = PyArray_NDIM((PyArrayObject *)args[1]);
    npy_intp dims[2 * NPY_MAXDIMS];
    if (ndim + others > NPY_MAXDIMS) {
        return NULL;
    }
    for (int i = 0; i < ndim + others; i++) {
        dims[i] = i < ndim ? PyArray_DIM(first, i) : 1;
    }
    PyArray_Dims shape = {dims, ndim + others};
    memcpy(of_call, args, (size_t)all * sizeof *args);
    of_call[0] = PyArray_Newshape(first, &shape, NPY_CORDER);
    if (of_call[0] == NULL) {
        return NULL;
    }
    PyObject *result = PyObject_Vectorcall(self, of_call, 2, keywords);
    Py_DECREF(of_call[0]);
    return result;
}

/* Else NumPy's method, within the options of open blocks: it does not go through our vectorcall. */
static PyObject *outer(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    PyObject *by_call = outer_by_call(self, args, count, keywords);
    if (by_call != NULL || PyErr_Occurred()) {
        return by_call;
    }
    struct options_scope scope;
    options_enter(&scope);
    PyObject *result = numpy_outer(self, args, count, keywords);
    options_leave(&scope);
    return result;
}

/* ---- reduce, accumulate and reduceat ---- */

static _Thread_local uint64_t reduced_arrays;
static _Thread_local const char
    *reduction_reason; /* why the last one was not by kernels, or NULL */

uint64_t methods_reduced_arrays(void)
{
    return reduced_arrays;
}

const char *methods_reduction_reason(void)
{
    return reduction_reason;
}

static PyObject *reduce_or_leave(PyObject *clone, PyObject *called, PyObject *const *args,
                                 Py_ssize_t count, PyObject *keywords, bool *by_ours)
{
    struct reduction_arguments arguments;
    struct reduction_plan plan;
    if (!reduction_arguments_read(&arguments, ARGUMENTS_OF_REDUCE, args, count, keywords)) {
        reduction_reason = "arguments";
        return numpy_reduce(called, args, count, keywords);
    }
    const bool has_start = arguments.initial != NULL || arguments.where != NULL;
    bool suits = arguments.where == NULL || reduction_mask_suits(&arguments, &plan.masked);
    if (suits || PyArray_SIZE(arguments.array) >= reduction_short_loop()) {
        reduction_plan_reduce(&plan, clone_reduction_op(clone), &arguments);
        suits =
            !has_start || plan.way != REDUCE_BY_KERNELS || (suits && reduction_plan_start(&plan));
    }
    if (!suits) {
        plan.way = reduction_way_without_kernels(&arguments);
        plan.reason = "initial= or where=";
    }
    reduction_reason = plan.reason;
    if (plan.way == REDUCE_BY_KERNELS) {
        PyObject *result = reduction_run(&plan);
        if (result != NULL || PyErr_Occurred()) {
            *by_ours = true;
            return result;
        }
        reduction_reason = "no memory, or zeros of both signs";
    }
    /* NumPy's ufunc must not see arguments that may be anything. */
    const bool is_numpys =
        plan.way == REDUCE_BY_NUMPY && (!has_start || operands_are_ordinary(args, count, keywords));
    return numpy_reduce(is_numpys ? clone_original(clone) : clone, args, count, keywords);
}

static PyObject *accumulate_or_leave(PyObject *clone, PyObject *called, PyObject *const *args,
                                     Py_ssize_t count, PyObject *keywords, bool *by_ours)
{
    const struct reduction_op *op = clone_accumulation_op(clone);
    struct reduction_arguments arguments;
    if (!reduction_arguments_read(&arguments, ARGUMENTS_OF_ACCUMULATE, args, count, keywords)) {
        return numpy_accumulate(called, args, count, keywords);
    }
    PyObject *result = accumulate_call(clone, op, &arguments);
    if (result != NULL || PyErr_Occurred()) {
        *by_ours = true;
        return result;
    }
    const bool is_numpys = reduction_plan_accumulate(op, &arguments) == REDUCE_BY_NUMPY;
    return numpy_accumulate(is_numpys ? clone_original(clone) : clone, args, count, keywords);
}

/* What has no kernel goes to NumPy's ufunc: our inner loop's checks would take as long as a short segment. */
static PyObject *reduceat_by_numpy(PyObject *clone, PyObject *called, PyObject *const *args,
                                   Py_ssize_t count, PyObject *keywords)
{
    const bool plain = operands_are_ordinary(args, count, keywords);
    return numpy_reduceat(plain ? clone_original(clone) : called, args, count, keywords);
}

static PyObject *reduceat_or_leave(PyObject *clone, PyObject *called, PyObject *const *args,
                                   Py_ssize_t count, PyObject *keywords, bool *by_ours)
{
    PyObject *result = reduceat_call(clone_reduction_op(clone), args, count, keywords);
    *by_ours = result != NULL || PyErr_Occurred();
    return *by_ours ? result : reduceat_by_numpy(clone, called, args, count, keywords);
}

static const struct method {
    const char *name;
    PyObject *(*run)(PyObject *clone, PyObject *called, PyObject *const *args, Py_ssize_t count,
                     PyObject *keywords, bool *by_ours);
    fastcall *const *numpys;
} method_reduce = {"reduce", reduce_or_leave, &numpy_reduce},
  method_accumulate = {"accumulate", accumulate_or_leave, &numpy_accumulate},
  method_reduceat = {"reduceat", reduceat_or_leave, &numpy_reduceat};

/* `print` of a short call; 0: it is none that is kept. */
static PyObject *run(const struct method *method, PyObject *clone, PyObject *called,
                     PyObject *const *args, Py_ssize_t count, PyObject *keywords, uint32_t print)
{
    struct options_scope scope;
    struct profile_sample sample;
    bool by_ours = false;
    const bool is_profiled = profile_is_on();
    if (is_profiled) {
        profile_begin(&sample);
    }
    options_enter(&scope);
    PyObject *result = method->run(clone, called, args, count, keywords, &by_ours);
    options_leave(&scope);
    if (is_profiled) {
        profile_end(&sample, called, method->name, by_ours, args, count, keywords, result);
    }
    if (by_ours) {
        reduced_arrays++;
    } else if (print != 0 && result != NULL) {
        refused_keep(clone_refused_reductions(clone), print);
    }
    return patch_finish(clone, called, result);
}

/* Quick, and true for what NumPy's method does as fast, if no argument can tell which ufunc it belongs to. Masked
 * reductions get a `print`. */
static bool is_short(const struct method *method, PyObject *clone, PyObject *called,
                     PyObject *const *args, Py_ssize_t count, PyObject *keywords, uint32_t *print)
{
    if (count < 1 || !PyArray_CheckExact(args[0])) {
        return called != clone;
    }
    PyArrayObject *array = (PyArrayObject *)args[0];
    if (array_size(array) >= reduction_short_loop()) {
        return false;
    }
    bool is_numpys =
        method != &method_reduce || reduction_is_short(clone_reduction_op(clone), array);
    if (!is_numpys && call_names_mask(keywords)) {
        *print = refused_print(args, count + PyTuple_GET_SIZE(keywords), keywords);
        is_numpys = refused_before(clone_refused_reductions(clone), *print);
    }
    return is_numpys && (called != clone || operands_are_ordinary(args, count, keywords));
}

static PyObject *run_or_check(const struct method *method, PyObject *clone, PyObject *called,
                              PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    const bool is_checked = check_is_on();
    uint32_t print = 0;
    if (is_checked
            ? check_is_inside()
            : !profile_is_on() && is_short(method, clone, called, args, count, keywords, &print)) {
        reduction_reason = "short";
        return (*method->numpys)(clone_original(clone), args, count, keywords);
    }
    if (!is_checked) {
        return run(method, clone, called, args, count, keywords, print);
    }
    PyObject *expected = check_before(called, method->name, args, count, keywords);
    return expected == NULL
               ? NULL
               : check_after(expected, run(method, clone, called, args, count, keywords, print));
}

static PyObject *reduce(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    return run_or_check(&method_reduce, self, self, args, count, keywords);
}

static PyObject *accumulate(PyObject *self, PyObject *const *args, Py_ssize_t count,
                            PyObject *keywords)
{
    return run_or_check(&method_accumulate, self, self, args, count, keywords);
}

static PyObject *reduceat(PyObject *self, PyObject *const *args, Py_ssize_t count,
                          PyObject *keywords)
{
    return run_or_check(&method_reduceat, self, self, args, count, keywords);
}

/* The docstrings, which hold the signatures, are NumPy's. */
#define FASTCALL(function) (PyCFunction)(void (*)(void))(function)
#define METHOD(name, function)                                                                     \
    {                                                                                              \
        name, FASTCALL(function), METH_FASTCALL | METH_KEYWORDS, NULL                              \
    }
static PyMethodDef definition_of_at = {"at", FASTCALL(at), METH_FASTCALL, NULL};
static PyMethodDef definition_of_outer = METHOD("outer", outer);
static PyMethodDef definition_of_reduce = METHOD("reduce", reduce);
static PyMethodDef definition_of_accumulate = METHOD("accumulate", accumulate);
static PyMethodDef definition_of_reduceat = METHOD("reduceat", reduceat);

/* The function behind np.ufunc.<name>, if it is called with `flags`, whose docstring becomes ours. */
static PyCFunction numpy_method(PyMethodDef *definition, int flags)
{
    return private_method(definition->ml_name, flags, &definition->ml_doc);
}

static fastcall *numpy_fastcall(PyMethodDef *definition)
{
    return (fastcall *)(void (*)(void))numpy_method(definition, METH_FASTCALL | METH_KEYWORDS);
}

int methods_initialize(void)
{
    numpy_at = numpy_method(&definition_of_at, METH_VARARGS);
    numpy_reduce = numpy_fastcall(&definition_of_reduce);
    numpy_accumulate = numpy_fastcall(&definition_of_accumulate);
    numpy_reduceat = numpy_fastcall(&definition_of_reduceat);
    numpy_outer = numpy_fastcall(&definition_of_outer);
    reduction_plan_initialize();
    return loop_reduction_initialize() < 0 ? -1 : reduction_arguments_initialize();
}

static int shadow(PyObject *clone, PyMethodDef *definition)
{
    PyObject *method = PyCFunction_NewEx(definition, clone, NULL);
    const int status =
        method != NULL ? PyObject_SetAttrString(clone, definition->ml_name, method) : -1;
    Py_XDECREF(method);
    return status;
}

/* Where NumPy's `_loops` are unknown, the clone gets its original's methods. */
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

int methods_shadow(PyObject *clone)
{
    /* Without private_allows_clones(), `clone` is NumPy's own ufunc. */
    if (PyUFunc_Type.tp_dictoffset == 0 || !private_allows_clones()) {
        return 0;
    }
    if (!private_known[PRIVATE_LOOPS]) {
        return shadow_by_original(clone);
    }
    const bool failed =
        (numpy_at != NULL && shadow(clone, &definition_of_at) < 0) ||
        (numpy_reduce != NULL && shadow(clone, &definition_of_reduce) < 0) ||
        (numpy_accumulate != NULL && shadow(clone, &definition_of_accumulate) < 0) ||
        (numpy_reduceat != NULL && shadow(clone, &definition_of_reduceat) < 0) ||
        (numpy_outer != NULL && shadow(clone, &definition_of_outer) < 0);
    return failed ? -1 : 0;
}

/* ---- NumPy's methods under a patch ---- */

static PyObject *run_patched(const struct method *method, PyObject *self, PyObject *const *args,
                             Py_ssize_t count, PyObject *keywords)
{
    PyObject *clone = patch_clone(self);
    return clone == NULL ? (*method->numpys)(self, args, count, keywords)
                         : run_or_check(method, clone, self, args, count, keywords);
}

static PyObject *patched_reduce(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                PyObject *keywords)
{
    return run_patched(&method_reduce, self, args, count, keywords);
}

static PyObject *patched_accumulate(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                    PyObject *keywords)
{
    return run_patched(&method_accumulate, self, args, count, keywords);
}

static PyObject *patched_reduceat(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                  PyObject *keywords)
{
    return run_patched(&method_reduceat, self, args, count, keywords);
}

/* NumPy's method does not go through the trampoline of its ufunc. */
static PyObject *patched_outer(PyObject *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *keywords)
{
    PyObject *result =
        patch_clone(self) != NULL ? outer_by_call(self, args, count, keywords) : NULL;
    return result != NULL || PyErr_Occurred() ? result : numpy_outer(self, args, count, keywords);
}

void methods_lead_here(void)
{
    static const struct {
        const char *name;
        fastcall *function;
    } methods[] = {
        {"reduce", patched_reduce},
        {"accumulate", patched_accumulate},
        {"reduceat", patched_reduceat},
        {"outer", patched_outer},
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        PyObject *method = PyObject_GetAttrString((PyObject *)&PyUFunc_Type, methods[i].name);
        PyCFunction before;
        if (method != NULL) {
            private_replace(method, METH_FASTCALL | METH_KEYWORDS,
                            (PyCFunction)(void (*)(void))methods[i].function, &before);
        }
        PyErr_Clear();
        Py_XDECREF(method);
    }
}
