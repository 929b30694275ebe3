/* add.reduce and multiply.reduce of whole arrays, planned as NumPy's iterator would: the same shape,
 * strides, dtype and errors. What is unusual goes to NumPy, whose loop then comes back to us; what gains
 * nothing from our loops, of these or other ufuncs, goes to NumPy's ufunc. */
#include "reduction_call.h"

#include "engine/elementwise.h"
#include "engine/reduction.h"
#include "kernels/kernels.h"
#include "methods.h"
#include "numpy_private.h"
#include "operands.h"
#include "options.h"
#include "plugin.h"

#include <string.h>

enum {
    TYPES = NPY_HALF + 1,
    GIL_IS_RELEASED_ABOVE = 500, /* elements, as in NumPy */
    /* So few rows of floats whose elements lie apart are not worth being brought together first, if
     * they are long. */
    FEW_ROWS = 4,
    LONG_ROW = 1000,
    /* Two groups of reduced axes are taken row by row if rows are at least so long. */
    SHORT_ROW_BYTES = 1024,
    SHORT_LOOP = 1024,   /* elements; a longer one gains from kernels and threads */
    LONG_COLUMN = 40000, /* from here on threads pay even if elements lie apart */
};

/* Kernels by type number. */
struct kernels_of_op {
    const char *op;
    const struct reduction *of_type[TYPES];
};
static struct kernels_of_op additions = {.op = "add"}, multiplications = {.op = "multiply"};

static PyObject *no_value, *name_axis, *name_dtype, *name_out, *name_keepdims, *name_initial,
    *name_where;

static _Atomic uint64_t arrays;

uint64_t reduce_arrays(void)
{
    return atomic_load(&arrays);
}

int reduce_initialize(void)
{
    struct kernels_of_op *const ops[] = {&additions, &multiplications};
    for (int i = 0; i < 2; i++) {
        for (int type = 0; type < TYPES; type++) {
            ops[i]->of_type[type] = reduction_of_type(ops[i]->op, type);
        }
    }
    no_value = private_no_value();
    name_axis = PyUnicode_InternFromString("axis");
    name_dtype = PyUnicode_InternFromString("dtype");
    name_out = PyUnicode_InternFromString("out");
    name_keepdims = PyUnicode_InternFromString("keepdims");
    name_initial = PyUnicode_InternFromString("initial");
    name_where = PyUnicode_InternFromString("where");
    return name_axis != NULL && name_dtype != NULL && name_out != NULL && name_keepdims != NULL &&
                   name_initial != NULL && name_where != NULL
               ? 0
               : -1;
}

/* ---- what is asked for ---- */

struct request {
    PyArrayObject *array;
    PyObject *axis; /* these may be NULL */
    PyObject *dtype, *out, *keepdims, *initial, *where;
};

static bool read_arguments(struct request *request, PyObject *const *args, Py_ssize_t count,
                           PyObject *keywords)
{
    PyObject **const places[] = {&request->axis,     &request->dtype,   &request->out,
                                 &request->keepdims, &request->initial, &request->where};
    const PyObject *const names[] = {name_axis,     name_dtype,   name_out,
                                     name_keepdims, name_initial, name_where};
    enum { OPTIONS = sizeof places / sizeof places[0] };
    if (count < 1 || count > 1 + OPTIONS || !PyArray_CheckExact(args[0])) {
        return false;
    }
    request->array = (PyArrayObject *)args[0];
    for (Py_ssize_t i = 1; i < count; i++) {
        *places[i - 1] = args[i];
    }
    const Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        int k = 0;
        while (k < OPTIONS && names[k] != PyTuple_GET_ITEM(keywords, i)) {
            k++;
        }
        if (k == OPTIONS || *places[k] != NULL) {
            return false;
        }
        *places[k] = args[count + i];
    }
    return (request->initial == NULL || request->initial == no_value) &&
           (request->where == NULL || request->where == Py_True) &&
           (request->keepdims == NULL || PyBool_Check(request->keepdims));
}

static bool is_plain(PyArrayObject *array)
{
    return PyArray_ISALIGNED(array) && PyArray_ISNOTSWAPPED(array) &&
           PyDataType_METADATA(PyArray_DESCR(array)) == NULL;
}

/* Whether an element stands for several: NumPy's iterator then computes their sums side by side. */
static bool is_broadcast(PyArrayObject *array)
{
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        if (PyArray_DIM(array, i) > 1 && PyArray_STRIDE(array, i) == 0) {
            return true;
        }
    }
    return false;
}

/* The type of a sum: NumPy widens integers to the size of long. */
static int type_of_result(int type)
{
    if (!PyTypeNum_ISBOOL(type) && !PyTypeNum_ISINTEGER(type)) {
        return type;
    }
    const bool is_short = type != NPY_LONGLONG && type != NPY_ULONGLONG;
    return !is_short ? type : PyTypeNum_ISUNSIGNED(type) ? NPY_ULONG : NPY_LONG;
}

static bool dtype_is(PyObject *dtype, int type)
{
    return dtype == NULL || dtype == Py_None ||
           (PyArray_DescrCheck(dtype) && ((PyArray_Descr *)dtype)->type_num == type &&
            PyArray_ISNBO(((PyArray_Descr *)dtype)->byteorder) &&
            PyDataType_METADATA((PyArray_Descr *)dtype) == NULL);
}

/* ---- axes ---- */

struct axes {
    int ndim;
    bool keepdims;
    bool reduced[NPY_MAXDIMS];
    int order[NPY_MAXDIMS]; /* the fastest first */
    npy_intp out_step[NPY_MAXDIMS];
};

static bool mark_axis(struct axes *axes, PyObject *number)
{
    if (!PyLong_CheckExact(number)) {
        return false;
    }
    int overflows;
    long axis = PyLong_AsLongAndOverflow(number, &overflows);
    axis = axis < 0 ? axis + axes->ndim : axis;
    if (overflows != 0 || axis < 0 || axis >= axes->ndim || axes->reduced[axis]) {
        return false;
    }
    axes->reduced[axis] = true;
    return true;
}

static bool mark_axes(struct axes *axes, PyObject *axis)
{
    memset(axes->reduced, axis == Py_None, (size_t)axes->ndim);
    if (axis == NULL) {
        axes->reduced[0] = true;
        return true;
    }
    if (axis == Py_None) {
        return true;
    }
    if (!PyTuple_CheckExact(axis)) {
        return mark_axis(axes, axis);
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(axis); i++) {
        if (!mark_axis(axes, PyTuple_GET_ITEM(axis, i))) {
            return false;
        }
    }
    return PyTuple_GET_SIZE(axis) > 0;
}

static npy_intp size_of_step(PyArrayObject *array, int axis)
{
    const npy_intp step = PyArray_DIM(array, axis) != 1 ? PyArray_STRIDE(array, axis) : 0;
    return step < 0 ? -step : step;
}

static int turn_of(const void *context, int axis, int later)
{
    PyArrayObject *array = (PyArrayObject *)context;
    const npy_intp outer = size_of_step(array, axis), inner = size_of_step(array, later);
    return outer == 0 || inner == 0 ? 0 : inner <= outer ? -1 : 1;
}

/* The steps of a new result, in the order of the array's axes. */
static void lay_out(struct axes *axes, PyArrayObject *array, npy_intp item_size)
{
    npy_intp step = item_size;
    for (int i = 0; i < axes->ndim; i++) {
        const int axis = axes->order[i];
        axes->out_step[axis] = step;
        step *= axes->reduced[axis] ? 1 : PyArray_DIM(array, axis);
    }
}

/* ---- the plan ---- */

/* Axes that are as good as one. */
struct group {
    npy_intp n, step, out_step;
};

/* Appends an axis that is faster than those before. */
static bool append(struct group groups[2], int *count, struct group axis)
{
    if (axis.n == 1) {
        return true;
    }
    struct group *last = *count > 0 ? &groups[*count - 1] : NULL;
    if (last != NULL && last->step == axis.step * axis.n &&
        last->out_step == axis.out_step * axis.n) {
        last->n *= axis.n;
        last->step = axis.step;
        last->out_step = axis.out_step;
        return true;
    }
    if (*count == 2) {
        return false;
    }
    groups[(*count)++] = axis;
    return true;
}

static bool plan(struct reduce *reduce, const struct axes *axes, PyArrayObject *array)
{
    struct group kept[2], reduced[2];
    int kept_count = 0, reduced_count = 0;
    const char *data = PyArray_BYTES(array);
    for (int i = axes->ndim - 1; i >= 0; i--) {
        const int axis = axes->order[i];
        struct group group = {PyArray_DIM(array, axis), PyArray_STRIDE(array, axis),
                              axes->out_step[axis]};
        if (axes->reduced[axis]) {
            group.out_step = 0;
            if (group.step < 0) {
                data += (group.n - 1) * group.step;
                group.step = -group.step;
            }
        }
        if (!(axes->reduced[axis] ? append(reduced, &reduced_count, group)
                                  : append(kept, &kept_count, group))) {
            return false;
        }
    }
    const npy_intp item = (npy_intp)reduce->kernel->item_size;
    const struct group one = {1, 0, 0};
    const struct group outer = kept_count == 2 ? kept[0] : one;
    const struct group inner = kept_count > 0 ? kept[kept_count - 1] : one;
    const struct group slow = reduced_count == 2 ? reduced[0] : one;
    const struct group fast =
        reduced_count > 0 ? reduced[reduced_count - 1] : (struct group){1, item, 0};
    reduce->data = data;
    reduce->outer = outer.n, reduce->outer_step = outer.step;
    reduce->inner = inner.n, reduce->inner_step = inner.step;
    reduce->groups = slow.n, reduce->group_step = slow.step;
    reduce->n = fast.n, reduce->step = fast.step;
    reduce->out_outer_step = outer.out_step, reduce->out_inner_step = inner.out_step;
    if ((reduce->kernel->kind == 'f' || reduce->kernel->kind == 'c') && slow.n == 1 &&
        fast.n < FEW_ROWS && inner.n >= LONG_ROW && inner.step != item) {
        return false;
    }
    const bool only_copies = slow.n * fast.n == 1;
    return !only_copies && (slow.n == 1 || fast.n * item >= SHORT_ROW_BYTES);
}

/* ---- the result ---- */

struct span {
    const char *first, *end;
};

static struct span span_of(PyArrayObject *array)
{
    struct span span = {PyArray_BYTES(array), PyArray_BYTES(array) + PyArray_ITEMSIZE(array)};
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        const npy_intp reach = (PyArray_DIM(array, i) - 1) * PyArray_STRIDE(array, i);
        *(reach < 0 ? &span.first : &span.end) += reach;
    }
    return span;
}

/* Whether `out` is exactly what the result would be, elsewhere in memory; takes over its steps. */
static bool accepts_out(struct axes *axes, PyArrayObject *array, PyObject *object, int type)
{
    PyArrayObject *out = (PyArrayObject *)object;
    if (!PyArray_CheckExact(object) || PyArray_TYPE(out) != type || !is_plain(out) ||
        !private_is_writable(out) || PyArray_CHKFLAGS(out, NPY_ARRAY_WRITEBACKIFCOPY)) {
        return false;
    }
    int at = 0;
    for (int axis = 0; axis < axes->ndim; axis++) {
        if (axes->reduced[axis] && !axes->keepdims) {
            continue;
        }
        const npy_intp n = axes->reduced[axis] ? 1 : PyArray_DIM(array, axis);
        if (at == PyArray_NDIM(out) || PyArray_DIM(out, at) != n ||
            (n > 1 && PyArray_STRIDE(out, at) == 0)) {
            return false;
        }
        axes->out_step[axis] = PyArray_STRIDE(out, at++);
    }
    const struct span ours = span_of(out), theirs = span_of(array);
    return at == PyArray_NDIM(out) && (ours.end <= theirs.first || theirs.end <= ours.first);
}

static PyObject *new_result(const struct axes *axes, PyArrayObject *array, int type)
{
    npy_intp dims[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    int ndim = 0;
    for (int axis = 0; axis < axes->ndim; axis++) {
        if (!axes->reduced[axis] || axes->keepdims) {
            dims[ndim] = axes->reduced[axis] ? 1 : PyArray_DIM(array, axis);
            steps[ndim++] = axes->out_step[axis];
        }
    }
    return PyArray_New(&PyArray_Type, ndim, dims, type, steps, NULL, 0, 0, NULL);
}

/* Whether there was memory for it. */
static bool compute(const struct reduce *reduce, npy_intp size, int *raised)
{
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(size);
    call_clear_errors();
    const bool computed = reduce_run(reduce);
    *raised = call_errors();
    NPY_END_THREADS;
    return computed;
}

/* Where the result goes: `out`, or a new array, or, if that had no axes, an item that becomes a scalar. */
struct result {
    PyObject *array;
    char item[2 * sizeof(double)];
};

static int result_ndim(const struct axes *axes)
{
    int ndim = 0;
    for (int axis = 0; axis < axes->ndim; axis++) {
        ndim += !axes->reduced[axis] || axes->keepdims;
    }
    return ndim;
}

/* Plans, and computes. Returns whether it did; if not, there may be an exception. */
static bool reduce_into(struct result *result, struct reduce *reduce, struct axes *axes,
                        const struct request *request, int type)
{
    PyObject *out = request->out;
    if (out != NULL && PyTuple_CheckExact(out) && PyTuple_GET_SIZE(out) == 1) {
        out = PyTuple_GET_ITEM(out, 0);
    }
    const bool has_out = out != NULL && out != Py_None;
    if ((has_out && !accepts_out(axes, request->array, out, type)) ||
        !plan(reduce, axes, request->array)) {
        return false;
    }
    if (has_out) {
        result->array = Py_NewRef(out);
    } else if (result_ndim(axes) > 0) {
        result->array = new_result(axes, request->array, type);
        if (result->array == NULL) {
            return false;
        }
    }
    reduce->out =
        result->array != NULL ? PyArray_BYTES((PyArrayObject *)result->array) : result->item;
    int raised;
    return compute(reduce, PyArray_SIZE(request->array), &raised) &&
           call_give_errors("reduce", raised) == 0;
}

/* The result; or NULL, without an exception if NumPy is to do it. */
static PyObject *reduce_array(const struct kernels_of_op *kernels, const struct request *request)
{
    PyArrayObject *array = request->array;
    const int type = PyArray_TYPE(array);
    struct reduce reduce = {.kernel = type >= 0 && type < TYPES ? kernels->of_type[type] : NULL};
    struct axes axes;
    axes.ndim = PyArray_NDIM(array);
    axes.keepdims = request->keepdims == Py_True;
    const int result_type = type_of_result(type);
    if (reduce.kernel == NULL || axes.ndim == 0 || PyArray_SIZE(array) == 0 || !is_plain(array) ||
        is_broadcast(array) || !dtype_is(request->dtype, result_type) ||
        !mark_axes(&axes, request->axis)) {
        return NULL;
    }
    PyArray_Descr *dtype = PyArray_DescrFromType(result_type);
    reduce.out_size = (size_t)PyDataType_ELSIZE(dtype);
    call_sort_axes(axes.ndim, axes.order, turn_of, array);
    lay_out(&axes, array, (npy_intp)reduce.out_size);
    struct result result = {.array = NULL};
    if (!reduce_into(&result, &reduce, &axes, request, result_type)) {
        Py_CLEAR(result.array);
    } else if (result.array == NULL) {
        result.array = PyArray_Scalar(result.item, dtype, NULL);
    }
    Py_DECREF(dtype);
    return result.array;
}

/* ---- what is left to NumPy ---- */

/* The most elements that one call of an inner loop gets when NumPy reduces: its iterator goes along the
 * fastest axes, as far as all are reduced, or none is. */
static npy_intp longest_loop(const struct axes *axes, PyArrayObject *array)
{
    npy_intp n = 1;
    for (int i = 0; i < axes->ndim; i++) {
        const int axis = axes->order[i];
        if (axes->reduced[axis] != axes->reduced[axes->order[0]]) {
            break;
        }
        n *= PyArray_DIM(array, axis);
    }
    return n;
}

/* Whether loops of ours gain nothing: short ones of NumPy's are done before ours have looked at them,
 * and what goes on from one element to the next is for one thread, unless a kernel knows better. */
static bool suits_numpy(const struct kernels_of_op *kernels, const struct request *request,
                        bool accumulates)
{
    PyArrayObject *array = request->array;
    struct axes axes;
    axes.ndim = PyArray_NDIM(array);
    if (axes.ndim == 0 || PyArray_TYPE(array) < 0 || PyArray_TYPE(array) > NPY_HALF ||
        (request->dtype != NULL && request->dtype != Py_None) ||
        (request->out != NULL && request->out != Py_None && !PyArray_CheckExact(request->out)) ||
        !mark_axes(&axes, request->axis)) {
        return false;
    }
    call_sort_axes(axes.ndim, axes.order, turn_of, array);
    const struct reduction *kernel =
        kernels != NULL ? kernels->of_type[type_of_result(PyArray_TYPE(array))] : NULL;
    const npy_intp forced = elementwise_threshold();
    const npy_intp short_loop = forced != 0 ? Py_MIN(forced, SHORT_LOOP) : SHORT_LOOP;
    if (accumulates) {
        const bool along = axes.reduced[axes.order[0]];
        for (int axis = 0; axis < axes.ndim; axis++) {
            if (axes.reduced[axis] &&
                PyArray_DIM(array, axis) >= (along ? short_loop : LONG_COLUMN)) {
                return kernel == NULL || kernel->accumulate == NULL;
            }
        }
        return true;
    }
    return longest_loop(&axes, array) < short_loop ||
           (kernel == NULL && axes.reduced[axes.order[0]]);
}

static PyObject *reduce_or_leave(const struct kernels_of_op *kernels, PyObject *self,
                                 PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    struct request request = {.array = NULL};
    if (!read_arguments(&request, args, count, keywords)) {
        return methods_numpy_reduce(self, args, count, keywords);
    }
    PyObject *result = kernels != NULL ? reduce_array(kernels, &request) : NULL;
    if (result != NULL || PyErr_Occurred()) {
        atomic_fetch_add_explicit(&arrays, 1, memory_order_relaxed);
        return result;
    }
    return methods_numpy_reduce(suits_numpy(kernels, &request, false) ? clone_original(self) : self,
                                args, count, keywords);
}

static PyObject *reduce_by(const struct kernels_of_op *kernels, PyObject *self,
                           PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    const bool entered = options_enter();
    PyObject *result = reduce_or_leave(kernels, self, args, count, keywords);
    options_leave(entered);
    return result;
}

PyObject *reduce_by_add(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    return reduce_by(&additions, self, args, count, keywords);
}

PyObject *reduce_by_multiply(PyObject *self, PyObject *const *args, Py_ssize_t count,
                             PyObject *keywords)
{
    return reduce_by(&multiplications, self, args, count, keywords);
}

PyObject *reduce_by_other(PyObject *self, PyObject *const *args, Py_ssize_t count,
                          PyObject *keywords)
{
    return reduce_by(NULL, self, args, count, keywords);
}

static PyObject *accumulate_by(const struct kernels_of_op *kernels, PyObject *self,
                               PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    struct request request = {.array = NULL};
    const bool numpys =
        read_arguments(&request, args, count, keywords) && suits_numpy(kernels, &request, true);
    const bool entered = options_enter();
    PyObject *result =
        methods_numpy_accumulate(numpys ? clone_original(self) : self, args, count, keywords);
    options_leave(entered);
    return result;
}

PyObject *accumulate_by_add(PyObject *self, PyObject *const *args, Py_ssize_t count,
                            PyObject *keywords)
{
    return accumulate_by(&additions, self, args, count, keywords);
}

PyObject *accumulate_by_multiply(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                 PyObject *keywords)
{
    return accumulate_by(&multiplications, self, args, count, keywords);
}

PyObject *accumulate_by_other(PyObject *self, PyObject *const *args, Py_ssize_t count,
                              PyObject *keywords)
{
    return accumulate_by(NULL, self, args, count, keywords);
}
