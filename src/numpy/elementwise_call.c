/* Calls whose operands need axes of their own: NumPy's iterator broadcasts, sorts and joins the axes
 * and makes the output, as it does for NumPy. Kernels then walk through the operands freely; a loop
 * of NumPy's gets what NumPy would hand it, buffered, each thread a range of it. */
#include "operands.h"

#include "errors.h"
#include "threads/clock.h"
#include "threads/region.h"
#include "threads/shares.h"

#include <stdlib.h>
#include <string.h>

void call_sort_axes(int axes, int order[], call_turn *turn, const void *context)
{
    for (int i = 0; i < axes; i++) {
        const int axis = axes - 1 - i;
        int place = i;
        for (int k = i - 1; k >= 0; k--) {
            const int turned = turn(context, axis, order[k]);
            if (turned < 0) {
                break;
            }
            place = turned > 0 ? k : place;
        }
        memmove(order + place + 1, order + place, (size_t)(i - place) * sizeof *order);
        order[place] = axis;
    }
}

/* The bytes that an array's elements lie in. */
static void extent(PyArrayObject *array, const char **first, const char **end)
{
    *first = *end = PyArray_DATA(array);
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        const npy_intp reach = (PyArray_DIM(array, i) - 1) * PyArray_STRIDE(array, i);
        *(reach < 0 ? first : end) += reach;
    }
    *end += PyArray_ITEMSIZE(array);
}

static bool coincide(PyArrayObject *a, PyArrayObject *b)
{
    const int ndim = PyArray_NDIM(a);
    return PyArray_DATA(a) == PyArray_DATA(b) && ndim == PyArray_NDIM(b) &&
           PyArray_CompareLists(PyArray_DIMS(a), PyArray_DIMS(b), ndim) &&
           PyArray_CompareLists(PyArray_STRIDES(a), PyArray_STRIDES(b), ndim);
}

bool call_output_is_independent(const struct call *call, bool may_coincide)
{
    PyArrayObject *out = call->array[call->table->inputs];
    const char *first, *end, *other_first, *other_end;
    extent(out, &first, &end);
    for (int i = 0; i < call->table->inputs; i++) {
        if (call->array[i] == NULL) {
            continue;
        }
        extent(call->array[i], &other_first, &other_end);
        if (first < other_end && other_first < end &&
            !(may_coincide && coincide(call->array[i], out))) {
            return false;
        }
    }
    return true;
}

/* Whether no two elements of operand `out` share a byte, its axes being sorted by the iterator or
 * not: each axis must step over all that lies within the smaller ones. */
static bool output_is_injective(const struct nested *nested, int out, npy_intp item_size)
{
    int by_step[NESTED_MOST_AXES]; /* sorted by insertion */
    for (int k = 0; k < nested->axes; k++) {
        int at = k;
        while (at > 0 && Py_ABS(nested->axis[by_step[at - 1]].step[out]) >
                             Py_ABS(nested->axis[k].step[out])) {
            by_step[at] = by_step[at - 1];
            at--;
        }
        by_step[at] = k;
    }
    npy_intp extent_so_far = item_size;
    for (int k = 0; k < nested->axes; k++) {
        const npy_intp n = nested->axis[by_step[k]].n;
        const npy_intp step = Py_ABS(nested->axis[by_step[k]].step[out]);
        if (n > 1) {
            if (step < extent_so_far) {
                return false;
            }
            extent_so_far += step * (n - 1);
        }
    }
    return true;
}

/* NumPy's iterator over the operands; makes the output, if there is none, as NumPy would. NULL: NumPy's
 * own path says what is wrong. */
static NpyIter *iterate(const struct call *call, npy_uint32 flags, npy_uint32 operand_flags)
{
    const int inputs = call->table->inputs;
    PyArrayObject *operands[CALL_MOST_OPERANDS];
    PyArray_Descr *dtypes[CALL_MOST_OPERANDS];
    npy_uint32 of_operand[CALL_MOST_OPERANDS];
    bool complete = true;
    for (int i = 0; i < inputs; i++) {
        operands[i] = (PyArrayObject *)Py_XNewRef((PyObject *)call->array[i]);
        dtypes[i] = call->row->input;
        of_operand[i] = operand_flags | NPY_ITER_READONLY;
        if (operands[i] == NULL) {
            Py_INCREF(dtypes[i]);
            operands[i] = (PyArrayObject *)PyArray_NewFromDescr(
                &PyArray_Type, dtypes[i], 0, NULL, NULL, (void *)call->scalar[i].bytes, 0, NULL);
            complete = complete && operands[i] != NULL;
        }
    }
    operands[inputs] = call->array[inputs];
    dtypes[inputs] = call->row->output;
    /* An output that may be an input as well must not be written before it is read. */
    of_operand[inputs] = operand_flags | NPY_ITER_ALLOCATE | NPY_ITER_NO_SUBTYPE |
                         NPY_ITER_NO_BROADCAST |
                         (operands[inputs] != NULL ? NPY_ITER_READWRITE : NPY_ITER_WRITEONLY);
    NpyIter *iterator = NULL;
    if (complete) {
        iterator = NpyIter_MultiNew(inputs + 1, operands, flags | NPY_ITER_EXTERNAL_LOOP,
                                    NPY_KEEPORDER, NPY_NO_CASTING, of_operand, dtypes);
    }
    for (int i = 0; i < inputs; i++) {
        Py_XDECREF(operands[i]);
    }
    if (iterator == NULL) {
        PyErr_Clear();
    }
    return iterator;
}

/* ---- kernels: any steps, any order ---- */

static bool read_axes(NpyIter *iterator, int operands, struct nested *nested)
{
    npy_intp shape[NPY_MAXDIMS];
    nested->axes = NpyIter_GetNDim(iterator);
    if (nested->axes > NESTED_MOST_AXES || NpyIter_GetShape(iterator, shape) != NPY_SUCCEED) {
        return false;
    }
    char **data = NpyIter_GetDataPtrArray(iterator);
    for (int op = 0; op < operands; op++) {
        nested->data[op] = data[op];
    }
    for (int i = 0; i < nested->axes; i++) {
        const npy_intp *steps = NpyIter_GetAxisStrideArray(iterator, i);
        if (steps == NULL) {
            return false;
        }
        nested->axis[i].n = shape[i];
        for (int op = 0; op < operands; op++) {
            nested->axis[i].step[op] = steps[op];
        }
    }
    return true;
}

static bool run_nested(const struct call *call, PyObject **result)
{
    struct loop *loop = call->row->loop;
    const int inputs = call->table->inputs, operands = inputs + 1;
    if (operands > NESTED_MOST_OPERANDS) {
        return false;
    }
    NpyIter *iterator = iterate(call, 0, 0);
    if (iterator == NULL) {
        return false;
    }
    struct nested nested;
    const npy_intp n = NpyIter_GetIterSize(iterator);
    PyArrayObject *out = NpyIter_GetOperandArray(iterator)[inputs];
    if (n == 0 || PyArray_NDIM(out) == 0 || !read_axes(iterator, operands, &nested) ||
        !output_is_injective(&nested, inputs, PyArray_ITEMSIZE(out))) {
        PyErr_Clear();
        NpyIter_Deallocate(iterator);
        return false;
    }
    bool in_place = false;
    for (int i = 0; i < inputs; i++) {
        in_place = in_place || nested.data[i] == nested.data[inputs];
    }
    Py_INCREF(out);
    call_counts.nested++;
    call_clear_errors();
    NPY_BEGIN_THREADS_DEF;
    if (!elementwise_is_tiny(&loop->work, n)) {
        NPY_BEGIN_THREADS;
    }
    loop_run_nested(loop, &nested, !in_place && elementwise_streams(&loop->work, n));
    NPY_END_THREADS;
    NpyIter_Deallocate(iterator);
    *result = call_finish(call, out);
    return true;
}

/* ---- NumPy's loops: the steps and buffers that NumPy's own path has ---- */

/* Elements of the call; 0 where the shapes do not go together. */
static npy_intp broadcast_size(const struct call *call)
{
    npy_intp size = 1;
    for (int axis = 1; axis <= NPY_MAXDIMS; axis++) {
        npy_intp longest = 1;
        bool exists = false;
        for (int i = 0; i <= call->table->inputs; i++) {
            if (call->array[i] != NULL && axis <= PyArray_NDIM(call->array[i])) {
                const npy_intp n = PyArray_DIM(call->array[i], PyArray_NDIM(call->array[i]) - axis);
                if (n != 1 && longest != 1 && n != longest) {
                    return 0;
                }
                longest = n != 1 ? n : longest;
                exists = true;
            }
        }
        if (!exists) {
            break;
        }
        size *= longest;
    }
    return size;
}

enum {
    RANGE_ELEMENTS = NPY_BUFSIZE,
    MOST_RANGED_THREADS = 256,
    BUFFERS = NPY_ITER_BUFFERED | NPY_ITER_GROWINNER | NPY_ITER_DELAY_BUFALLOC,
};

struct ranges {
    struct loop *loop;
    struct failure failure;
    NpyIter *iterator[MOST_RANGED_THREADS];
    npy_intp n;
    struct shares shares;
};

static void run_range(struct ranges *ranges, NpyIter *iterator, npy_intp first, npy_intp end)
{
    /* Neither fails: the buffers exist since the iterators were made ready. */
    char *unused;
    NpyIter_ResetToIterIndexRange(iterator, first, end, &unused);
    NpyIter_IterNextFunc *next = NpyIter_GetIterNext(iterator, &unused);
    char **data = NpyIter_GetDataPtrArray(iterator);
    const npy_intp *step = NpyIter_GetInnerStrideArray(iterator);
    const npy_intp *n = NpyIter_GetInnerLoopSizePtr(iterator);
    do {
        loop_run_part(ranges->loop, &ranges->failure, data, step, first, *n);
    } while (next(iterator));
}

static void run_share(void *context, int index)
{
    struct ranges *ranges = context;
    npy_intp first, end;
    while (shares_take(&ranges->shares, index, &first, &end)) {
        run_range(ranges, ranges->iterator[index], first, end);
    }
}

/* Allocates an iterator's buffers. That fills them, and whatever comes next writes them back, be it
 * into an element that another thread has computed since: so do that now. */
static bool allocate_buffers(NpyIter *iterator)
{
    if (NpyIter_ResetToIterIndexRange(iterator, 0, 1, NULL) != NPY_SUCCEED) {
        return false;
    }
    NpyIter_GetIterNext(iterator, NULL)(iterator);
    return true;
}

/* One iterator for each thread, its buffers allocated. Returns for how many there was memory. */
static int copy_iterators(struct ranges *ranges, int threads)
{
    int ready = 0;
    while (ready < threads) {
        if (ready > 0) {
            ranges->iterator[ready] = NpyIter_Copy(ranges->iterator[0]);
        }
        if (ranges->iterator[ready] == NULL) {
            break;
        }
        if (!allocate_buffers(ranges->iterator[ready])) {
            NpyIter_Deallocate(ranges->iterator[ready]);
            break;
        }
        ready++;
    }
    PyErr_Clear();
    return ready;
}

static void run_ranges(struct ranges *ranges, int threads)
{
    struct elementwise *work = &ranges->loop->work;
    const bool timed = elementwise_is_timed(work);
    elementwise_count_call(work);
    npy_intp done = 0;
    if (timed) {
        done = Py_MIN(ranges->n, RANGE_ELEMENTS);
        const int64_t start = clock_ns();
        run_range(ranges, ranges->iterator[0], 0, done);
        elementwise_learn(work, done, clock_ns() - start);
    }
    shares_initialize(&ranges->shares, done, ranges->n, RANGE_ELEMENTS, RANGE_ELEMENTS, threads);
    work->before_threads(&ranges->failure);
    region_run(work->policy, threads, run_share, ranges);
    work->after_threads(&ranges->failure);
}

static bool run_ranged(const struct call *call, npy_intp n, PyObject **result)
{
    struct loop *loop = call->row->loop;
    const int wanted = Py_MIN(elementwise_threads(&loop->work, n), MOST_RANGED_THREADS);
    if (wanted == 1) {
        return false;
    }
    struct ranges *ranges = aligned_alloc(_Alignof(struct ranges), sizeof *ranges);
    if (ranges == NULL) {
        return false;
    }
    ranges->failure = (struct failure){.threads_run = false};
    ranges->loop = loop;
    ranges->n = n;
    ranges->iterator[0] = iterate(call, BUFFERS | NPY_ITER_RANGED, NPY_ITER_ALIGNED);
    const int threads = copy_iterators(ranges, wanted);
    const bool taken = threads > 0;
    PyArrayObject *out = NULL;
    if (taken) {
        out = NpyIter_GetOperandArray(ranges->iterator[0])[call->table->inputs];
        Py_INCREF(out);
        call_counts.ranged++;
        call_clear_errors();
        Py_BEGIN_ALLOW_THREADS run_ranges(ranges, threads);
        Py_END_ALLOW_THREADS
    }
    for (int i = 0; i < threads; i++) {
        NpyIter_Deallocate(ranges->iterator[i]);
    }
    free(ranges);
    if (taken) {
        *result = call_finish(call, out);
    }
    return taken;
}

/* On one thread, as NumPy would, but past what it does before it iterates: that takes as long as some
 * hundred elements. */
static bool run_whole(const struct call *call, npy_intp n, PyObject **result)
{
    NpyIter *iterator = iterate(call, BUFFERS, NPY_ITER_ALIGNED);
    if (iterator == NULL) {
        return false;
    }
    PyArrayObject *out = NpyIter_GetOperandArray(iterator)[call->table->inputs];
    NpyIter_IterNextFunc *next = NpyIter_GetIterNext(iterator, NULL);
    if (PyArray_NDIM(out) == 0 || next == NULL || NpyIter_Reset(iterator, NULL) != NPY_SUCCEED) {
        PyErr_Clear();
        NpyIter_Deallocate(iterator);
        return false;
    }
    char **data = NpyIter_GetDataPtrArray(iterator);
    const npy_intp *step = NpyIter_GetInnerStrideArray(iterator);
    const npy_intp *count = NpyIter_GetInnerLoopSizePtr(iterator);
    Py_INCREF(out);
    call_counts.whole++;
    call_clear_errors();
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    do {
        loop_run(data, count, step, call->row->loop);
    } while (next(iterator));
    NPY_END_THREADS;
    NpyIter_Deallocate(iterator);
    *result = call_finish(call, out);
    return true;
}

static bool run_loop_of_numpy(const struct call *call, PyObject **result)
{
    PyArrayObject *out = call->array[call->table->inputs];
    if (out != NULL && !PyArray_IS_C_CONTIGUOUS(out) && !PyArray_IS_F_CONTIGUOUS(out)) {
        return false;
    }
    const npy_intp n = broadcast_size(call);
    return n > 0 &&
           ((n > RANGE_ELEMENTS && run_ranged(call, n, result)) || run_whole(call, n, result));
}

bool call_iterated(const struct call *call, PyObject **result)
{
    if (call->array[call->table->inputs] != NULL && !call_output_is_independent(call, true)) {
        return false;
    }
    return call->row->loop->kernel != NULL ? run_nested(call, result)
                                           : run_loop_of_numpy(call, result);
}
