/* Makes a ufunc out of another one's type table, resolver, flags and identity. */
#include "plugin.h"

#include "call.h"
#include "call_table.h"
#include "dtypes.h"
#include "elementwise_loop.h"
#include "matmul_loop.h"
#include "reduction_loop.h"

#include <stdbool.h>
#include <string.h>

/* What a clone points into; the clone owns it through a capsule in its `obj` field. */
struct clone {
    struct call_table calls;
    PyUFuncObject *original;
    char *name, *doc, *types;
    PyUFuncGenericFunction *functions;
    void **data; /* one for each row, and the clone itself in front: see clone_of() */
    struct loop *loops;
    struct gufunc_loop *gufunc_loops;
    PyObject *original_loops; /* its `_loops` */
    const Py_ssize_t *loops_count;
    Py_ssize_t loops_seen; /* loops_count at the last look */
    PyObject *serial_if;
};

static const char capsule_name[] = "numc_ufuncs.clone";

static vectorcallfunc numpy_vectorcall; /* what NumPy gives every new ufunc */

static struct clone *clone_of(const PyUFuncObject *ufunc)
{
    return ufunc->data[-1];
}

static void release(struct clone *clone)
{
    if (clone != NULL) {
        PyMem_Free(clone->name);
        PyMem_Free(clone->doc);
        PyMem_Free(clone->types);
        PyMem_Free(clone->functions);
        if (clone->data != NULL) {
            PyMem_Free(clone->data - 1);
        }
        PyMem_Free(clone->loops);
        for (int row = 0; clone->gufunc_loops != NULL && row < clone->original->ntypes; row++) {
            offload_forget(&clone->gufunc_loops[row].offload);
        }
        PyMem_Free(clone->gufunc_loops);
        call_table_release(&clone->calls);
        Py_XDECREF((PyObject *)clone->original);
        Py_XDECREF(clone->serial_if);
        Py_XDECREF(clone->original_loops);
        PyMem_Free(clone);
    }
}

static void release_capsule(PyObject *capsule)
{
    release(PyCapsule_GetPointer(capsule, capsule_name));
}

static void *copy_of(const void *bytes, size_t size)
{
    void *copy = PyMem_Malloc(size > 0 ? size : 1);
    if (copy != NULL && size > 0) {
        memcpy(copy, bytes, size);
    }
    return copy;
}

/* The kernel for a row such as `ff->f`, all operands of one dtype. */
static const struct kernel *kernel_of_row(const char *op, const char types[], int operands)
{
    for (int i = 1; i < operands; i++) {
        if (types[i] != types[0]) {
            return NULL;
        }
    }
    const char kind = dtype_modular_kind(types[0]);
    return op != NULL && (kind == 'i' || kind == 'f')
               ? kernels_find(op, kind, dtype_of(types[0]).size)
               : NULL;
}

static void use_gufunc_loops(struct clone *clone, const char *op)
{
    const PyUFuncObject *original = clone->original;
    for (int row = 0; row < original->ntypes && original->core_enabled; row++) {
        if (gufunc_initialize(&clone->gufunc_loops[row], op, clone->types + row * original->nargs,
                              original->nargs, clone->functions[row], clone->data[row])) {
            clone->functions[row] = gufunc_run;
            clone->data[row] = &clone->gufunc_loops[row];
        }
    }
}

static struct clone *clone_tables(PyUFuncObject *original, const char *op, const char *doc,
                                  PyObject *serial_if)
{
    const size_t rows = (size_t)original->ntypes;
    const int operands = original->nargs;
    struct clone *clone = PyMem_Calloc(1, sizeof *clone);
    if (clone == NULL) {
        goto no_memory;
    }
    clone->original = (PyUFuncObject *)Py_NewRef((PyObject *)original);
    clone->serial_if = Py_XNewRef(serial_if);
    clone->name = copy_of(original->name, strlen(original->name) + 1);
    clone->doc = copy_of(doc, strlen(doc) + 1);
    clone->types = copy_of(original->types, rows * (size_t)operands);
    clone->functions = copy_of(original->functions, rows * sizeof *clone->functions);
    void **data = PyMem_Calloc(rows + 1, sizeof *data);
    if (data != NULL) {
        data[0] = clone;
        clone->data = data + 1;
    }
    clone->loops = PyMem_Calloc(rows, sizeof *clone->loops);
    clone->gufunc_loops = PyMem_Calloc(rows, sizeof *clone->gufunc_loops);
    if (clone->name == NULL || clone->doc == NULL || clone->types == NULL ||
        clone->functions == NULL || clone->data == NULL || clone->loops == NULL ||
        clone->gufunc_loops == NULL) {
        goto no_memory;
    }
    if (original->data != NULL) {
        memcpy(clone->data, original->data, rows * sizeof *clone->data);
    }
    use_gufunc_loops(clone, op);
    /* The loop of a gufunc has core dimensions that the engine does not know. */
    for (size_t row = 0; row < rows && !original->core_enabled; row++) {
        const char *types = original->types + row * (size_t)operands;
        if (original->functions[row] == NULL || !loop_is_parallel(types, original->nin, operands)) {
            continue;
        }
        loop_initialize(&clone->loops[row], types, original->nin, operands,
                        original->functions[row], clone->data[row],
                        kernel_of_row(op, types, operands), serial_if);
        clone->loops[row].reduction = reduction_of_row(op, types, operands);
        clone->functions[row] = loop_run;
        clone->data[row] = &clone->loops[row];
    }
    return clone;

no_memory:
    PyErr_NoMemory();
    release(clone);
    return NULL;
}

PyObject *clone_original(PyObject *clone)
{
    return (PyObject *)clone_of((PyUFuncObject *)clone)->original;
}

/* Loops outside the type table (strings) and promoters (comparisons with Python integers) are in
 * `_loops`: a list of (DTypes, loop) pairs, in later NumPy a dict. */
static int adopt_loops(PyUFuncObject *clone, PyUFuncObject *original)
{
    /* Where the loops of dtypes are that C code registered by number. They may come at any time, and
     * without one a call would not fail but compute with other dtypes: so both share the dict. */
    if (original->userloops == NULL) {
        original->userloops = PyDict_New();
    }
    Py_XSETREF(clone->userloops, Py_XNewRef(original->userloops));
    if (clone->userloops == NULL) {
        return -1;
    }
    if (PyDict_CheckExact(original->_loops) && PyDict_CheckExact(clone->_loops)) {
        return PyDict_Merge(clone->_loops, original->_loops, 0);
    }
    if (!PyList_CheckExact(original->_loops) || !PyList_CheckExact(clone->_loops)) {
        return 0;
    }
    const Py_ssize_t own = PyList_GET_SIZE(clone->_loops);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(original->_loops); i++) {
        PyObject *pair = PyList_GET_ITEM(original->_loops, i);
        PyObject *dtypes = PyTuple_GET_ITEM(pair, 0);
        int known = 0;
        for (Py_ssize_t k = 0; k < own && known == 0; k++) {
            PyObject *own_pair = PyList_GET_ITEM(clone->_loops, k);
            known = PyObject_RichCompareBool(PyTuple_GET_ITEM(own_pair, 0), dtypes, Py_EQ);
        }
        if (known < 0 || (known == 0 && PyList_Append(clone->_loops, pair) < 0)) {
            return -1;
        }
    }
    return 0;
}

/* Where a list or a dict keeps its length: every call reads it. */
static const Py_ssize_t *length_of(PyObject *loops)
{
    static const Py_ssize_t none;
    return PyList_CheckExact(loops)   ? &((PyVarObject *)loops)->ob_size
           : PyDict_CheckExact(loops) ? &((PyDictObject *)loops)->ma_used
                                      : &none;
}

static __attribute__((noinline)) PyObject *adopt_then_call(PyObject *self, PyObject *const *args,
                                                           size_t count, PyObject *keywords)
{
    PyUFuncObject *ufunc = (PyUFuncObject *)self;
    struct clone *clone = clone_of(ufunc);
    const Py_ssize_t loops = *clone->loops_count;
    if (adopt_loops(ufunc, clone->original) < 0) {
        return NULL;
    }
    clone->loops_seen = loops;
    return numpy_vectorcall(self, args, count, keywords);
}

/* Packages register loops with the original at any time, ml_dtypes when it is imported: the clone
 * gets them at the next call. */
static PyObject *call(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords)
{
    const struct clone *clone = clone_of((PyUFuncObject *)self);
    if (*clone->loops_count != clone->loops_seen) {
        return adopt_then_call(self, args, count, keywords);
    }
    PyObject *result;
    if (call_directly(&clone->calls, args, count, keywords, &result)) {
        return result;
    }
    return numpy_vectorcall(self, args, count, keywords);
}

PyObject *clone_ufunc(PyUFuncObject *original, const char *op, const char *doc, PyObject *serial_if)
{
    struct clone *clone = clone_tables(original, op, doc, serial_if);
    if (clone == NULL) {
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(clone, capsule_name, release_capsule);
    if (capsule == NULL) {
        release(clone);
        return NULL;
    }
    PyUFuncObject *ufunc = (PyUFuncObject *)PyUFunc_FromFuncAndDataAndSignatureAndIdentity(
        clone->functions, clone->data, clone->types, original->ntypes, original->nin,
        original->nout, original->identity, clone->name, clone->doc, 0, original->core_signature,
        original->identity_value);
    if (ufunc == NULL) {
        Py_DECREF(capsule);
        return NULL;
    }
    ufunc->obj = capsule;
    ufunc->type_resolver = original->type_resolver;
    ufunc->iter_flags = original->iter_flags;
    if (original->op_flags != NULL && ufunc->op_flags != NULL) {
        memcpy(ufunc->op_flags, original->op_flags,
               sizeof *ufunc->op_flags * (size_t)original->nargs);
    }
    if (adopt_loops(ufunc, original) < 0 ||
        call_table_initialize(&clone->calls, ufunc, clone->loops) < 0) {
        Py_DECREF((PyObject *)ufunc);
        return NULL;
    }
    clone->original_loops = Py_NewRef(original->_loops);
    clone->loops_count = length_of(original->_loops);
    clone->loops_seen = *clone->loops_count;
    numpy_vectorcall = ufunc->vectorcall;
    ufunc->vectorcall = call;
    return (PyObject *)ufunc;
}
