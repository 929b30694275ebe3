/* Makes a ufunc out of another one's type table, resolver, flags and identity. */
#include "clone.h"

#include "call.h"
#include "call_table.h"
#include "check.h"
#include "dtypes.h"
#include "elementwise_loop.h"
#include "elementwise_offload.h"
#include "filled_loop.h"
#include "loop_reduction.h"
#include "matmul_call.h"
#include "numpy_private.h"
#include "offload.h"
#include "options.h"
#include "profile.h"
#include "reduction_loop.h"
#include "reduction_plan.h"
#include "resolved_arguments.h"
#include "stack_loop.h"

#include "kernels/reduction/running.h"

#include <stdbool.h>
#include <string.h>

/* What a clone points into; the clone owns it through a capsule in its `obj` field. */
struct clone {
    struct call_table calls;
    PyUFuncObject *original;
    PyObject *numpy_path; /* the ufunc for calls that call_directly() declines; borrowed */
    char *name, *doc, *types;
    PyUFuncGenericFunction *functions;
    void **data; /* one for each row, and the clone itself in front: see clone_of() */
    struct loop *loops;
    struct gufunc_loop *gufunc_loops;
    struct stack_loop *stack_loops;
    struct loop_reduction *reductions;  /* by row */
    struct reduction_op own_reductions; /* by type; without a name if there are none */
    const struct reduction_op *reduces, *accumulates;
    struct refused_calls refused_reductions;
    PyObject *original_loops; /* the original's `_loops` */
    const Py_ssize_t *loops_count;
    _Atomic Py_ssize_t loops_seen; /* *loops_count when they were last adopted */
    PyObject *serial_if;
    _Atomic bool is_patched;
};

static const char capsule_name[] = "numc_ufuncs.clone";

static struct clone *clone_of(const PyUFuncObject *ufunc)
{
    return private_owner(ufunc);
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
        PyMem_Free(clone->reductions);
        for (int row = 0; clone->gufunc_loops != NULL && row < clone->original->ntypes; row++) {
            offload_forget(&clone->gufunc_loops[row]);
        }
        PyMem_Free(clone->gufunc_loops);
        PyMem_Free(clone->stack_loops);
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
            offload_know(&clone->gufunc_loops[row]);
            clone->functions[row] = gufunc_run;
            clone->data[row] = &clone->gufunc_loops[row];
        } else if (stack_loop_initialize(&clone->stack_loops[row], original, row,
                                         clone->serial_if)) {
            clone->functions[row] = stack_loop_run;
            clone->data[row] = &clone->stack_loops[row];
        }
    }
}

static bool is_numpys(const PyUFuncObject *ufunc)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *own = numpy != NULL ? PyObject_GetAttrString(numpy, ufunc->name) : NULL;
    PyErr_Clear();
    Py_XDECREF(own);
    Py_XDECREF(numpy);
    return own == (const PyObject *)ufunc;
}

/* Other packages may have other operations of the same names. */
static void use_numpys_loops(struct clone *clone)
{
    const PyUFuncObject *original = clone->original;
    if (!is_numpys(original)) {
        return;
    }
    for (int row = 0; row < original->ntypes; row++) {
        struct loop_reduction *reduction = &clone->reductions[row];
        const bool reduces = loop_reduction_of_row(reduction, original, row);
        const char *types = original->types + row * original->nargs;
        loop_know_numpys(&clone->loops[row], types, reduces && reduction->kernel.zeros_tie);
        filled_loop_use(&clone->loops[row], original->name, types);
        if (!reduces) {
            continue;
        }
        clone->own_reductions.name = reduction->kernel.op;
        clone->own_reductions.of_type[(int)types[0]] = &reduction->kernel;
        if (!reduction->kernel.zeros_tie) {
            clone->loops[row].reduction = &reduction->kernel;
        }
    }
}

/* Room for a row of each table, and copies of the original's. False if memory was refused. */
static bool make_tables(struct clone *clone, const char *doc)
{
    const PyUFuncObject *original = clone->original;
    const size_t rows = (size_t)original->ntypes;
    void **data = PyMem_Calloc(rows + 1, sizeof *data);
    if (data != NULL) {
        data[0] = clone;
        clone->data = data + 1;
    }
    clone->name = copy_of(original->name, strlen(original->name) + 1);
    clone->doc = copy_of(doc, strlen(doc) + 1);
    clone->types = copy_of(original->types, rows * (size_t)original->nargs);
    clone->functions = copy_of(original->functions, rows * sizeof *clone->functions);
    clone->loops = PyMem_Calloc(rows, sizeof *clone->loops);
    clone->gufunc_loops = PyMem_Calloc(rows, sizeof *clone->gufunc_loops);
    clone->stack_loops = PyMem_Calloc(rows, sizeof *clone->stack_loops);
    clone->reductions = PyMem_Calloc(rows, sizeof *clone->reductions);
    if (data == NULL || clone->name == NULL || clone->doc == NULL || clone->types == NULL ||
        clone->functions == NULL || clone->loops == NULL || clone->gufunc_loops == NULL ||
        clone->stack_loops == NULL || clone->reductions == NULL) {
        return false;
    }
    if (original->data != NULL) {
        memcpy(clone->data, original->data, rows * sizeof *clone->data);
    }
    return true;
}

/* The loop of a gufunc has core dimensions that the engine does not know. */
static void use_loops(struct clone *clone, const char *op)
{
    const PyUFuncObject *original = clone->original;
    const int operands = original->nargs;
    for (int row = 0; row < original->ntypes && !original->core_enabled; row++) {
        const char *types = original->types + row * operands;
        if (original->functions[row] == NULL || !loop_is_parallel(types, original->nin, operands)) {
            continue;
        }
        loop_initialize(&clone->loops[row], types, original->nin, operands,
                        original->functions[row], clone->data[row],
                        kernel_of_row(op, types, operands), clone->serial_if);
        clone->loops[row].reduction = reduction_of_row(op, types, operands);
        clone->functions[row] = loop_run;
        clone->data[row] = &clone->loops[row];
    }
}

static void use_running_kernels(struct clone *clone)
{
    const PyUFuncObject *original = clone->original;
    for (int row = 0; row < original->ntypes; row++) {
        struct loop *loop = &clone->loops[row];
        const struct dtype dtype = dtype_of(original->types[row * original->nargs]);
        const char *op = clone->accumulates != NULL ? clone->accumulates->name
                         : loop->reduction != NULL  ? loop->reduction->op
                                                    : NULL;
        loop->running = op != NULL ? running_kernel_find(op, dtype.kind, dtype.size) : NULL;
    }
}

static struct clone *clone_tables(PyUFuncObject *original, const char *op, const char *doc,
                                  PyObject *serial_if)
{
    struct clone *clone = PyMem_Calloc(1, sizeof *clone);
    if (clone != NULL) {
        clone->original = (PyUFuncObject *)Py_NewRef((PyObject *)original);
        clone->serial_if = Py_XNewRef(serial_if);
    }
    if (clone == NULL || !make_tables(clone, doc)) {
        PyErr_NoMemory();
        release(clone);
        return NULL;
    }
    use_gufunc_loops(clone, op);
    use_loops(clone, op);
    use_numpys_loops(clone);
    clone->accumulates = op == NULL                    ? NULL
                         : strcmp(op, "add") == 0      ? &reduction_op_add
                         : strcmp(op, "multiply") == 0 ? &reduction_op_multiply
                                                       : NULL;
    use_running_kernels(clone);
    clone->reduces =
        clone->own_reductions.name != NULL ? &clone->own_reductions : clone->accumulates;
    return clone;
}

const struct reduction_op *clone_reduction_op(PyObject *clone)
{
    return clone_of((PyUFuncObject *)clone)->reduces;
}

const struct reduction_op *clone_accumulation_op(PyObject *clone)
{
    return clone_of((PyUFuncObject *)clone)->accumulates;
}

_Atomic bool *clone_is_patched(PyObject *clone)
{
    return &clone_of((PyUFuncObject *)clone)->is_patched;
}

const struct call_row *clone_row(PyObject *clone, int type)
{
    return &clone_of((PyUFuncObject *)clone)->calls.row[type];
}

struct refused_calls *clone_refused_reductions(PyObject *clone)
{
    return &clone_of((PyUFuncObject *)clone)->refused_reductions;
}

PyObject *clone_original(PyObject *clone)
{
    return (PyObject *)clone_of((PyUFuncObject *)clone)->original;
}

static __attribute__((noinline)) int adopt_loops(PyUFuncObject *ufunc)
{
    struct clone *clone = clone_of(ufunc);
    const Py_ssize_t loops = private_read_count(clone->loops_count);
    if (private_adopt_loops(ufunc, clone->original) < 0) {
        return -1;
    }
    clone->loops_seen = loops;
    return 0;
}

/* Packages register loops with the original at any time, ml_dtypes when it is imported: the clone
 * gets them at the next call. */
static bool call_outside_blocks(PyUFuncObject *ufunc, PyObject *const *args, size_t count,
                                PyObject *keywords, PyObject **result)
{
    const struct clone *clone = clone_of(ufunc);
    if (private_read_count(clone->loops_count) != clone->loops_seen && adopt_loops(ufunc) < 0) {
        *result = NULL;
        return true;
    }
    return call_directly(&clone->calls, args, count, keywords, result);
}

static __attribute__((noinline)) bool call_in_block(PyUFuncObject *ufunc, PyObject *const *args,
                                                    size_t count, PyObject *keywords,
                                                    PyObject **result)
{
    struct options_scope scope;
    options_show(&scope);
    const bool done = call_outside_blocks(ufunc, args, count, keywords, result);
    options_restore(&scope);
    return done;
}

static inline bool call_without_numpy(PyObject *clone, PyObject *const *args, size_t count,
                                      PyObject *keywords, PyObject **result)
{
    PyUFuncObject *ufunc = (PyUFuncObject *)clone;
    return options_in_blocks() ? call_in_block(ufunc, args, count, keywords, result)
                               : call_outside_blocks(ufunc, args, count, keywords, result);
}

static PyObject *call_profiled(PyObject *clone, PyObject *called, PyObject *const *args,
                               size_t count, PyObject *keywords, clone_by_numpy *by_numpy)
{
    struct profile_sample sample;
    PyObject *result;
    profile_begin(&sample);
    const bool by_ours = call_without_numpy(clone, args, count, keywords, &result);
    if (!by_ours) {
        result = by_numpy(clone, called, args, count, keywords);
    }
    profile_end(&sample, called, NULL, by_ours, args, PyVectorcall_NARGS(count), keywords, result);
    return result;
}

static __attribute__((noinline)) PyObject *call_observed(PyObject *clone, PyObject *called,
                                                         PyObject *const *args, size_t count,
                                                         PyObject *keywords,
                                                         clone_by_numpy *by_numpy)
{
    if (!check_is_on()) {
        return call_profiled(clone, called, args, count, keywords, by_numpy);
    }
    if (check_is_inside()) {
        return private_numpy_vectorcall(clone_original(clone), args, count, keywords);
    }
    PyObject *expected =
        check_before(called, "__call__", args, PyVectorcall_NARGS(count), keywords);
    return expected == NULL ? NULL
                            : check_after(expected, call_profiled(clone, called, args, count,
                                                                  keywords, by_numpy));
}

PyObject *clone_call(PyObject *clone, PyObject *called, PyObject *const *args, size_t count,
                     PyObject *keywords, clone_by_numpy *by_numpy)
{
    PyObject *result;
    if (profile_is_on() || check_is_on()) {
        return call_observed(clone, called, args, count, keywords, by_numpy);
    }
    return call_without_numpy(clone, args, count, keywords, &result)
               ? result
               : by_numpy(clone, called, args, count, keywords);
}

/* Whether a generalized ufunc gets a stack, not one item. */
static bool has_stack(const PyUFuncObject *ufunc, PyObject *const *args, Py_ssize_t positional)
{
    for (Py_ssize_t i = 0; i < positional && i < ufunc->nin; i++) {
        if (PyArray_CheckExact(args[i]) &&
            PyArray_NDIM((PyArrayObject *)args[i]) > ufunc->core_num_dims[i]) {
            return true;
        }
    }
    return false;
}

/* For no more elements NumPy is as fast if there are keywords other than `out`. */
enum { FEW_WITH_KEYWORDS = 512 };

bool clone_may_gain(PyObject *clone, PyObject *const *args, size_t count, PyObject *keywords)
{
    const struct call_table *table = &clone_of((PyUFuncObject *)clone)->calls;
    if (table->is_stack) {
        return has_stack((PyUFuncObject *)clone, args, PyVectorcall_NARGS(count));
    }
    const Py_ssize_t positional = PyVectorcall_NARGS(count);
    bool has_array = false, are_usual = true, is_large = false;
    for (Py_ssize_t i = 0; i < positional && i < table->inputs; i++) {
        PyArrayObject *array = (PyArrayObject *)args[i];
        if (!PyArray_CheckExact(args[i]) || PyArray_NDIM(array) == 0) {
            continue;
        }
        const int type = PyArray_TYPE(array);
        has_array = true;
        are_usual = are_usual && type >= 0 && type < CALL_TYPES && PyArray_DIM(array, 0) > 0 &&
                    PyArray_ISNBO(PyArray_DESCR(array)->byteorder);
        is_large = is_large || array_size(array) > FEW_WITH_KEYWORDS;
    }
    const bool is_by_keywords = keywords != NULL && PyUnicode_CompareWithASCIIString(
                                                        PyTuple_GET_ITEM(keywords, 0), "out") != 0;
    return has_array && (is_large || table->is_product || (are_usual && !is_by_keywords));
}

PyObject *clone_call_by_numpy(PyObject *clone, PyObject *called, PyObject *const *args,
                              size_t count, PyObject *keywords)
{
    (void)called;
    const struct clone *own = clone_of((PyUFuncObject *)clone);
    /* NumPy warns for ufuncs of its own only. */
    const bool warns = own->calls.warns_of_third && PyVectorcall_NARGS(count) > own->calls.inputs;
    if (warns || call_suits_original(&own->calls, args, count, keywords)) {
        return private_numpy_vectorcall((PyObject *)own->original, args, count, keywords);
    }
    struct options_scope scope;
    options_enter(&scope);
    PyObject *result = private_numpy_vectorcall(own->numpy_path, args, count, keywords);
    options_leave(&scope);
    return result;
}

static PyObject *call(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords)
{
    return clone_call(self, self, args, count, keywords, clone_call_by_numpy);
}

bool clone_is_of(PyObject *object, PyObject *original)
{
    return object != NULL && Py_IS_TYPE(object, &PyUFunc_Type) &&
           ((PyUFuncObject *)object)->vectorcall == call && clone_original(object) == original;
}

PyObject *clone_ufunc(PyUFuncObject *original, const char *op, const char *doc, PyObject *serial_if)
{
    if (!private_allows_clones()) {
        return Py_NewRef((PyObject *)original);
    }
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
    private_take_over(ufunc, capsule, call);
    clone->numpy_path = (PyObject *)(private_known[PRIVATE_LOOPS] ? ufunc : original);
    clone->original_loops = private_loops(original);
    clone->loops_count = private_loops_count(clone->original_loops);
    clone->loops_seen = *clone->loops_count;
    ufunc->type_resolver = original->type_resolver;
    ufunc->iter_flags = original->iter_flags;
    private_copy_core_dimensions(ufunc, original);
    if (original->op_flags != NULL && ufunc->op_flags != NULL) {
        memcpy(ufunc->op_flags, original->op_flags,
               sizeof *ufunc->op_flags * (size_t)original->nargs);
    }
    if (private_adopt_loops(ufunc, original) < 0 ||
        call_table_initialize(&clone->calls, ufunc, clone->loops) < 0) {
        Py_DECREF((PyObject *)ufunc);
        return NULL;
    }
    clone->calls.device_op = elementwise_offload_op(op);
    return (PyObject *)ufunc;
}
