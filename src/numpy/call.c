/* A call past NumPy's broadcasting, iterators and buffers: its operands are read once, then its family
 * plans and computes it. Whatever is unusual is left to NumPy: other types than ndarray, other keywords
 * than `out` and `where`, unusual casts, unaligned or empty operands, operands that overlap the output,
 * scalar results. */
#include "call.h"

#include "elementwise_call.h"
#include "errors.h"
#include "matmul_call.h"
#include "numpy_private.h"
#include "operands.h"
#include "policy_in_use.h"
#include "resolved_arguments.h"
#include "resolved_call.h"

#include "engine/elementwise_cutoffs.h"
#include "threads/limit.h"

enum {
    LEAST_MASKED_ELEMENTS = 1024, /* outputs of fewer are left to NumPy */
    MOST_SHORT_ELEMENTS = 8192,   /* of which no run is worth threads */
    FEW_MASKED_ELEMENTS = 128,    /* whose runs cost less than to ask for the original */
};

static PyObject *out_keyword, *where_keyword, *dtype_keyword;

int call_initialize(void)
{
    out_keyword = PyUnicode_InternFromString("out");
    where_keyword = PyUnicode_InternFromString("where");
    dtype_keyword = PyUnicode_InternFromString("dtype");
    const bool complete = out_keyword != NULL && where_keyword != NULL && dtype_keyword != NULL;
    return complete ? resolved_arguments_initialize() : -1;
}

/* An array that needs no preparation: not a subclass, aligned, native, its dtype without metadata. */
static bool is_plain(PyArrayObject *array, PyArray_Descr *dtype)
{
    PyArray_Descr *own = PyArray_DESCR(array);
    return (own == dtype || (own->type_num == dtype->type_num && PyArray_ISNBO(own->byteorder) &&
                             PyDataType_METADATA(own) == NULL)) &&
           PyArray_CHKFLAGS(array, NPY_ARRAY_ALIGNED);
}

static bool read_scalar(PyObject *scalar, const struct call_row *row, union element *element)
{
    if (Py_TYPE(scalar) == row->input->typeobj) {
        PyArray_ScalarAsCtype(scalar, element);
        return true;
    }
    const int type = row->input->type_num;
    /* With a Python integer, NumPy may choose the loop of long, which is another type of the same size. */
    return type != NPY_LONGLONG && type != NPY_ULONGLONG &&
           scalar_convert_number(scalar, type, element);
}

/* Whether `dtype=` names the one that the inputs have and the output gets, in a usual way: dtype_asked_for() takes
 * longer than the rest. */
static bool changes_nothing(PyObject *dtype, const struct call_row *row)
{
    const PyArray_Descr *descr = row->input;
    const bool is_named =
        PyUnicode_CheckExact(dtype)
            ? PyUnicode_GET_LENGTH(dtype) == 1 &&
                  PyUnicode_READ_CHAR(dtype, 0) == (Py_UCS4)descr->type
            : dtype == (PyObject *)descr || dtype == (PyObject *)descr->typeobj ||
                  (dtype == (PyObject *)&PyFloat_Type && descr->type_num == NPY_DOUBLE);
    return is_named && row->output->type_num == descr->type_num;
}

/* Reads the output of `f(..., out)` or `f(..., out=out)`, and `where=`; NULL where there is none. False if
 * there is anything else, but for a `dtype=` that changes nothing. */
static bool read_keywords(PyObject *const *args, Py_ssize_t positional, PyObject *keywords,
                          const struct ufunc_call *call, PyObject **out, PyObject **mask)
{
    const struct call_table *table = call->table;
    const int inputs = table->inputs;
    const Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    *out = positional > inputs ? args[inputs] : NULL;
    *mask = NULL;
    if (positional > inputs + 1 - table->warns_of_third) {
        return false;
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *keyword = PyTuple_GET_ITEM(keywords, i), *value = args[positional + i];
        if (keyword == out_keyword && *out == NULL) {
            const bool is_single = PyTuple_CheckExact(value) && PyTuple_GET_SIZE(value) == 1;
            if (value == Py_Ellipsis && table->is_product) {
                return false; /* a result without axes would be an array, too */
            }
            *out = is_single                      ? PyTuple_GET_ITEM(value, 0)
                   : operands_asks_for_new(value) ? NULL
                                                  : value;
        } else if (keyword == where_keyword) {
            *mask = value;
        } else if (keyword != dtype_keyword || table->is_product ||
                   !changes_nothing(value, call->row)) {
            return false;
        }
    }
    return *out == NULL || PyArray_CheckExact(*out);
}

/* A mask that the engine takes; NumPy says what is wrong with others, or warns where no output is given. */
static bool is_usual_mask(PyObject *mask, PyObject *out)
{
    return out != NULL && PyArray_CheckExact(mask) &&
           PyArray_TYPE((PyArrayObject *)mask) == NPY_BOOL &&
           array_size((PyArrayObject *)out) >= LEAST_MASKED_ELEMENTS;
}

static bool read_inputs(struct ufunc_call *call, PyObject *const *args)
{
    const int inputs = call->table->inputs;
    for (int i = 0; i < inputs && call->row == NULL; i++) {
        if (PyArray_CheckExact(args[i]) && PyArray_NDIM((PyArrayObject *)args[i]) > 0) {
            const int type = PyArray_DESCR((PyArrayObject *)args[i])->type_num;
            if (type < 0 || type >= CALL_TYPES || call->table->row[type].input == NULL) {
                return false;
            }
            call->row = &call->table->row[type];
        }
    }
    if (call->row == NULL) {
        return false; /* the result is a scalar */
    }
    for (int i = 0; i < inputs; i++) {
        call->array[i] = NULL;
        if (PyArray_CheckExact(args[i])) {
            call->array[i] = (PyArrayObject *)args[i];
            if (!is_plain(call->array[i], call->row->input)) {
                return false;
            }
        } else if (!read_scalar(args[i], call->row, &call->scalar[i])) {
            return false;
        }
    }
    return true;
}

static bool read_operands(struct ufunc_call *call, PyObject *const *args, size_t count,
                          PyObject *keywords)
{
    const int inputs = call->table->inputs;
    const Py_ssize_t positional = PyVectorcall_NARGS(count);
    PyObject *out, *mask;
    /* The inputs first: most of the calls that are not like this one have several dtypes. */
    if (positional < inputs || !read_inputs(call, args) ||
        !read_keywords(args, positional, keywords, call, &out, &mask) ||
        (mask != NULL && (call->table->is_product || !is_usual_mask(mask, out)))) {
        return false;
    }
    call->array[inputs] = (PyArrayObject *)out;
    call->mask = (PyArrayObject *)mask;
    return out == NULL || (is_plain(call->array[inputs], call->row->output) &&
                           private_is_writable(call->array[inputs]));
}

/* Whether there is an input whose dtype no kernel computes, nor what it is cast to. */
static bool lacks_kernel(const struct call_table *table, PyObject *const *args)
{
    bool lacks = false;
    for (int i = 0; i < table->inputs; i++) {
        const int type =
            PyArray_CheckExact(args[i]) ? PyArray_TYPE((PyArrayObject *)args[i]) : CALL_TYPES;
        const struct loop *loop = type < CALL_TYPES ? table->row[type].loop : NULL;
        lacks = lacks || (loop != NULL && type != NPY_BOOL && loop->engine.kernel == NULL);
    }
    return lacks;
}

bool call_names_mask(PyObject *keywords)
{
    bool names = false;
    for (Py_ssize_t i = 0; keywords != NULL && i < PyTuple_GET_SIZE(keywords) && !names; i++) {
        names = PyTuple_GET_ITEM(keywords, i) == where_keyword;
    }
    return names;
}

/* Of a call that has more elements than a few. */
static __attribute__((noinline)) bool gains_by_original(const struct call_table *table,
                                                        PyObject *const *args,
                                                        Py_ssize_t positional, PyObject *keywords,
                                                        npy_intp largest)
{
    const Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    const bool by_threads = threads_limit().threads > 1;
    const bool is_masked = call_names_mask(keywords);
    bool has_others = false;
    for (Py_ssize_t i = 0; i < named; i++) {
        has_others = has_others || PyTuple_GET_ITEM(keywords, i) != out_keyword;
    }
    const bool gains = is_masked ? !(by_threads && largest > MOST_SHORT_ELEMENTS)
                                 : largest > TINY_BELOW_ELEMENTS && !by_threads && !has_others &&
                                       lacks_kernel(table, args);
    return gains && operands_are_ordinary(args, positional, keywords);
}

bool call_suits_original(const struct call_table *table, PyObject *const *args, size_t count,
                         PyObject *keywords)
{
    const Py_ssize_t positional = PyVectorcall_NARGS(count);
    const Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    const npy_intp largest = operands_largest(args, positional + named);
    return largest > FEW_MASKED_ELEMENTS && policy_in_use.threshold == 0 && table->loops > 0 &&
           positional >= table->inputs &&
           gains_by_original(table, args, positional, keywords, largest);
}

/* A call with a mask, or one that read_operands() does not read. */
static __attribute__((noinline)) bool call_unusually(struct ufunc_call *call, PyObject *const *args,
                                                     size_t count, PyObject *keywords,
                                                     bool has_mask, PyObject **result)
{
    struct call_table *table = (struct call_table *)call->table;
    const Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    const Py_ssize_t all = PyVectorcall_NARGS(count) + named;
    const npy_intp largest = has_mask ? operands_largest(args, all) : 0;
    if (has_mask && largest < LEAST_MASKED_ELEMENTS) {
        return false; /* which NumPy computes in less time */
    }
    const uint32_t print = refused_print(args, all, keywords);
    if (refused_before(&table->refused, print)) {
        return false;
    }
    bool is_short = largest <= MOST_SHORT_ELEMENTS;
    const bool done = has_mask && read_operands(call, args, count, keywords)
                          ? elementwise_call(call, result)
                          : resolved_call(table, args, count, keywords, result, &is_short);
    if (!done && is_short) {
        refused_keep(&table->refused, print);
    }
    return done;
}

bool call_directly(const struct call_table *table, PyObject *const *args, size_t count,
                   PyObject *keywords, PyObject **result)
{
    if (table->is_stack) {
        return false;
    }
    struct ufunc_call call;
    call.table = table;
    call.row = NULL;
    call.is_resolved = false;
    const bool has_mask = call_names_mask(keywords);
    if (has_mask || !read_operands(&call, args, count, keywords)) {
        return call_unusually(&call, args, count, keywords, has_mask, result);
    }
    return table->is_product ? matmul_call(&call, result) : elementwise_call(&call, result);
}
