/* The short way of a call, past NumPy's iterators and buffers. Whatever is unusual is left to NumPy:
 * other types than ndarray, other keywords than `out`, casts (but of integers to divide), unaligned
 * or empty operands, operands that overlap the output, scalar results. */
#include "call.h"

#include "engine/overlap.h"
#include "numpy_private.h"
#include "operands.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <string.h>

struct call_counts call_counts;

static PyObject *out_keyword;

int call_initialize(void)
{
    out_keyword = PyUnicode_InternFromString("out");
    return out_keyword != NULL ? 0 : -1;
}

/* ---- the operands ---- */

/* An array that needs no preparation: not a subclass, aligned, native, its dtype without metadata. */
static bool is_plain(PyArrayObject *array, PyArray_Descr *dtype)
{
    PyArray_Descr *own = PyArray_DESCR(array);
    return (own == dtype || (own->type_num == dtype->type_num && PyArray_ISNBO(own->byteorder) &&
                             PyDataType_METADATA(own) == NULL)) &&
           PyArray_CHKFLAGS(array, NPY_ARRAY_ALIGNED);
}

/* A Python number as NumPy would convert it, where that raises nothing and changes no dtype. */
static bool convert_number(PyObject *number, int type, union element *element)
{
    double value;
    if (PyFloat_CheckExact(number)) {
        value = PyFloat_AS_DOUBLE(number);
    } else if (PyLong_CheckExact(number)) {
        int overflow;
        const long long integer = PyLong_AsLongLongAndOverflow(number, &overflow);
        const long long exact = 1LL << DBL_MANT_DIG;
        switch (overflow == 0 ? type : NPY_NOTYPE) {
        case NPY_INT:
            *(npy_int *)element = (npy_int)integer;
            return integer >= NPY_MIN_INT && integer <= NPY_MAX_INT;
        case NPY_LONG:
            *(npy_long *)element = (npy_long)integer;
            return integer >= NPY_MIN_LONG && integer <= NPY_MAX_LONG;
        case NPY_UBYTE:
            *(npy_ubyte *)element = (npy_ubyte)integer;
            return integer >= 0 && integer <= NPY_MAX_UBYTE;
        case NPY_BYTE:
            *(npy_byte *)element = (npy_byte)integer;
            return integer >= NPY_MIN_BYTE && integer <= NPY_MAX_BYTE;
        case NPY_DOUBLE:
        case NPY_FLOAT:
            break;
        default:
            return false;
        }
        if (integer > exact || integer < -exact) {
            return false;
        }
        value = (double)integer;
    } else {
        return false;
    }
    if (type == NPY_DOUBLE) {
        *(npy_double *)element = value;
        return true;
    }
    const double magnitude = fabs(value);
    if (type == NPY_FLOAT &&
        (value == 0 || (magnitude >= (double)FLT_MIN && magnitude <= (double)FLT_MAX))) {
        *(npy_float *)element = (npy_float)value;
        return true;
    }
    return false;
}

static bool read_scalar(PyObject *scalar, const struct call_row *row, union element *element)
{
    if (Py_TYPE(scalar) == row->input->typeobj) {
        PyArray_ScalarAsCtype(scalar, element);
        return true;
    }
    return convert_number(scalar, row->input->type_num, element);
}

/* The output of `f(..., out)` or `f(..., out=out)`; NULL with *found where there is none. */
static PyObject *find_out(PyObject *const *args, Py_ssize_t positional, PyObject *keywords,
                          int inputs, bool *usual)
{
    const Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    *usual = positional >= inputs && positional + named <= inputs + 1;
    if (!*usual || positional + named == inputs) {
        return NULL;
    }
    PyObject *out = args[inputs];
    if (named == 1) {
        *usual = PyTuple_GET_ITEM(keywords, 0) == out_keyword;
        if (PyTuple_CheckExact(out) && PyTuple_GET_SIZE(out) == 1) {
            out = PyTuple_GET_ITEM(out, 0);
        }
    }
    *usual = *usual && PyArray_CheckExact(out);
    return out;
}

static bool read_inputs(struct call *call, PyObject *const *args)
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

static bool read_operands(struct call *call, PyObject *const *args, size_t count,
                          PyObject *keywords)
{
    const int inputs = call->table->inputs;
    bool usual;
    PyObject *out = find_out(args, PyVectorcall_NARGS(count), keywords, inputs, &usual);
    if (!usual || !read_inputs(call, args)) {
        return false;
    }
    call->array[inputs] = (PyArrayObject *)out;
    return out == NULL || (is_plain(call->array[inputs], call->row->output) &&
                           private_is_writable(call->array[inputs]));
}

/* ---- floating-point errors ---- */

enum { ERRORS = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID };

/* Those of kernels. On x86-64 the C library asks the x87 unit, too, which none of them uses: a tenth of
 * a short call. */
static int errors_of_kernels(void)
{
#if defined(__x86_64__)
    return (int)__builtin_ia32_stmxcsr() & ERRORS;
#else
    return fetestexcept(ERRORS);
#endif
}

int call_errors(void)
{
    return fetestexcept(ERRORS);
}

void call_clear_errors(void)
{
    if (fetestexcept(ERRORS) != 0) {
        feclearexcept(ERRORS);
    }
}

int call_give_errors(const char *name, int raised)
{
    return raised == 0 ? 0
                       : PyUFunc_GiveFloatingpointErrors(
                             name, (raised & FE_DIVBYZERO ? NPY_FPE_DIVIDEBYZERO : 0) |
                                       (raised & FE_OVERFLOW ? NPY_FPE_OVERFLOW : 0) |
                                       (raised & FE_UNDERFLOW ? NPY_FPE_UNDERFLOW : 0) |
                                       (raised & FE_INVALID ? NPY_FPE_INVALID : 0));
}

static int report_errors(const struct call *call, int raised)
{
    if (PyErr_Occurred()) {
        return -1;
    }
    if (raised != 0) {
        feclearexcept(raised);
    }
    return call_give_errors(call->table->name, raised);
}

static PyObject *finish(const struct call *call, PyArrayObject *out, int raised)
{
    if (report_errors(call, raised) < 0) {
        Py_DECREF(out);
        return NULL;
    }
    return (PyObject *)out;
}

PyObject *call_finish(const struct call *call, PyArrayObject *out)
{
    return finish(call, out, call_errors());
}

/* ---- operands that one loop can walk through ---- */

/* The array that gives the shape, the steps, and in which order the elements lie; false where more than
 * one step for each operand is needed. */
static bool fit_one_loop(const struct call *call, PyArrayObject **shape, npy_intp step[],
                         int *order)
{
    PyArrayObject *model = NULL;
    *order = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS;
    for (int i = 0; i <= call->table->inputs; i++) {
        PyArrayObject *array = call->array[i];
        if (array == NULL || (PyArray_NDIM(array) == 0 && i < call->table->inputs)) {
            step[i] = 0;
            continue;
        }
        const int ndim = PyArray_NDIM(array);
        if (model == NULL) {
            model = array;
        } else if (ndim != PyArray_NDIM(model) ||
                   !PyArray_CompareLists(PyArray_DIMS(array), PyArray_DIMS(model), ndim)) {
            return false;
        }
        if (ndim == 1) {
            step[i] = PyArray_STRIDE(array, 0);
        } else {
            step[i] = PyArray_ITEMSIZE(array);
            *order &= PyArray_FLAGS(array);
        }
    }
    *shape = model;
    return *order != 0;
}

PyArrayObject *call_new_output(const struct call *call, int ndim, const npy_intp shape[],
                               bool is_fortran)
{
    PyArray_Descr *dtype = call->row->output;
    Py_INCREF(dtype);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, dtype, ndim, shape, NULL, NULL,
                                                 is_fortran, NULL);
}

/* Whether NumPy, too, hands a loop of its own the operands as they lie: it turns an output that runs
 * backwards, and copies inputs that overlap it. */
static bool loop_of_numpy_may_run(const struct call *call, npy_intp out_step)
{
    const PyArrayObject *out = call->array[call->table->inputs];
    return out_step >= PyArray_ITEMSIZE(out) && call_output_is_independent(call, true);
}

static bool run_one_loop(struct call *call, PyArrayObject *shape, npy_intp step[], int order,
                         PyObject **result)
{
    struct loop *loop = call->row->loop;
    const int inputs = call->table->inputs;
    const npy_intp n = PyArray_SIZE(shape);
    char *data[CALL_MOST_OPERANDS];
    if (n == 0) {
        return false;
    }
    for (int i = 0; i < inputs; i++) {
        data[i] = call->array[i] != NULL ? PyArray_DATA(call->array[i]) : call->scalar[i].bytes;
    }
    PyArrayObject *out = call->array[inputs];
    if (out != NULL) {
        data[inputs] = PyArray_DATA(out);
        if (!elements_commute(inputs, inputs + 1, data, step, loop->work.item_size, n) ||
            (loop->kernel == NULL && !loop_of_numpy_may_run(call, step[inputs]))) {
            return false;
        }
        Py_INCREF(out);
    } else {
        out = call_new_output(call, PyArray_NDIM(shape), PyArray_DIMS(shape),
                              order == NPY_ARRAY_F_CONTIGUOUS);
        if (out == NULL) {
            *result = NULL;
            return true;
        }
        data[inputs] = PyArray_DATA(out);
        step[inputs] = PyArray_ITEMSIZE(out);
    }
    call_counts.one_loop++;
    elementwise_kernel *const kernel = loop_tiny_kernel(loop, step, n);
    if (kernel != NULL) {
        /* It does more than NumPy's threshold in the time that it takes to give up the GIL. */
        if (errors_of_kernels() != 0) {
            feclearexcept(ERRORS);
        }
        kernel(data, step, n);
        *result = finish(call, out, errors_of_kernels());
        return true;
    }
    call_clear_errors();
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    loop_run_commuting(loop, data, step, n);
    NPY_END_THREADS;
    *result = call_finish(call, out);
    return true;
}

static bool run(struct call *call, PyObject **result)
{
    PyArrayObject *shape;
    npy_intp step[CALL_MOST_OPERANDS];
    int order;
    const bool fits = fit_one_loop(call, &shape, step, &order);
    /* Where NumPy casts, its iterator makes the output: its own strides tell axes of one apart. */
    const bool by_iterator = call->row->converts && call->array[call->table->inputs] == NULL &&
                             (order & NPY_ARRAY_C_CONTIGUOUS) == 0;
    if (fits && !by_iterator) {
        return run_one_loop(call, shape, step, order, result);
    }
    return call_iterated(call, result);
}

bool call_directly(const struct call_table *table, PyObject *const *args, size_t count,
                   PyObject *keywords, PyObject **result)
{
    struct call call;
    call.table = table;
    call.row = NULL;
    if (!read_operands(&call, args, count, keywords)) {
        return false;
    }
    if (table->is_product) {
        return call_product(&call, result);
    }
    /* An exception would find an output in common written, where NumPy has not yet. */
    if (call.row->converts && call.array[table->inputs] != NULL &&
        !call_output_is_independent(&call, false)) {
        return false;
    }
    return run(&call, result);
}
