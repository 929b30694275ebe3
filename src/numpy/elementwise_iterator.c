/* Element-wise calls through NumPy's iterator: it broadcasts, sorts and joins the axes and makes the
 * output, as it does for NumPy. Kernels then walk through the operands freely; a loop of NumPy's gets
 * what NumPy would hand it, buffered, each thread ranges of it. */
#include "elementwise_iterator.h"

#include "errors.h"

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
static NpyIter *make_iterator(const struct ufunc_call *call, npy_uint32 flags,
                              npy_uint32 operand_flags)
{
    const int inputs = call->table->inputs;
    PyArrayObject *operands[CALL_MOST_OPERANDS + 1];
    PyArray_Descr *dtypes[CALL_MOST_OPERANDS + 1];
    npy_uint32 of_operand[CALL_MOST_OPERANDS + 1];
    bool complete = true;
    for (int i = 0; i < inputs; i++) {
        operands[i] = (PyArrayObject *)Py_XNewRef((PyObject *)call->array[i]);
        dtypes[i] = call->is_mixed && call->convert[i] != NULL ? PyArray_DESCR(call->array[i])
                                                               : call->row->input;
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
    operands[inputs + 1] = call->mask;
    dtypes[inputs + 1] = NULL;
    of_operand[inputs + 1] = operand_flags | NPY_ITER_READONLY;
    const int count = inputs + 1 + (call->mask != NULL);
    NpyIter *iterator = NULL;
    if (complete) {
        iterator = NpyIter_MultiNew(count, operands, flags | NPY_ITER_EXTERNAL_LOOP, NPY_KEEPORDER,
                                    NPY_NO_CASTING, of_operand, dtypes);
    }
    for (int i = 0; i < inputs; i++) {
        Py_XDECREF(operands[i]);
    }
    if (iterator == NULL) {
        PyErr_Clear();
    }
    return iterator;
}

/* ---- kernels: any steps, any order; other loops: contiguous or repeated elements ---- */

static bool is_contiguous(const struct nested *nested, const struct elementwise *engine)
{
    for (int op = 0; op < engine->operands; op++) {
        const npy_intp step = nested->axis[0].step[op];
        if (step != (npy_intp)engine->item_size[op] &&
            !(op < engine->inputs && (step == 0 || nested->convert[op] != NULL))) {
            return false;
        }
    }
    return nested->axes == 1;
}

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

bool iterator_run_axes(const struct ufunc_call *call, PyObject **result)
{
    struct elementwise *engine = &call->row->loop->engine;
    const int inputs = call->table->inputs;
    NpyIter *iterator = make_iterator(call, 0, 0);
    if (iterator == NULL) {
        return false;
    }
    struct failure failure = {.threads_run = false};
    struct nested nested;
    nested.hook_data = &failure;
    for (int i = 0; i < inputs; i++) {
        nested.convert[i] = call->is_mixed ? call->convert[i] : NULL;
    }
    const npy_intp n = NpyIter_GetIterSize(iterator);
    PyArrayObject *out = NpyIter_GetOperandArray(iterator)[inputs];
    nested.is_masked = call->mask != NULL;
    if (n == 0 || PyArray_NDIM(out) == 0 ||
        !read_axes(iterator, inputs + 1 + nested.is_masked, &nested) ||
        (engine->kernel == NULL && !is_contiguous(&nested, engine)) ||
        !output_is_injective(&nested, inputs, PyArray_ITEMSIZE(out))) {
        PyErr_Clear();
        NpyIter_Deallocate(iterator);
        return false;
    }
    Py_INCREF(out);
    errors_clear();
    const bool is_tiny = elementwise_is_tiny(engine, n);
    nested.streams = !is_tiny && !nested.is_masked && elementwise_streams(engine, nested.data, n);
    nested.output_is_new = call->array[inputs] == NULL;
    NPY_BEGIN_THREADS_DEF;
    if (!is_tiny) {
        NPY_BEGIN_THREADS;
    }
    nested_run(engine, &nested, is_tiny);
    NPY_END_THREADS;
    NpyIter_Deallocate(iterator);
    *result = errors_finish(call->table->name, out, errors_raised());
    return true;
}

/* ---- NumPy's loops: the steps and buffers that NumPy's own path has ---- */

enum { BUFFERS = NPY_ITER_BUFFERED | NPY_ITER_GROWINNER | NPY_ITER_DELAY_BUFALLOC };

/* An iterator for each thread. */
struct ranges {
    const struct elementwise *engine;
    struct failure failure;
    int threads;
    NpyIter *iterator[];
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
        elementwise_run_chunk(ranges->engine, &ranges->failure, data, step, first, *n);
    } while (next(iterator));
}

static void run_ranges(void *context, struct chunks *chunks)
{
    struct ranges *ranges = context;
    ptrdiff_t first, end;
    while (chunks_take(chunks, &first, &end)) {
        run_range(ranges, ranges->iterator[chunks->thread], first, end);
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

static void release_ranges(struct ranges *ranges)
{
    for (int i = 0; i < ranges->threads; i++) {
        NpyIter_Deallocate(ranges->iterator[i]);
    }
    PyMem_Free(ranges);
}

/* Iterators with buffers, as many as there is memory for; NULL: for none. */
static struct ranges *make_ranges(const struct ufunc_call *call, int threads)
{
    struct ranges *ranges =
        PyMem_Calloc(1, sizeof *ranges + (size_t)threads * sizeof ranges->iterator[0]);
    if (ranges == NULL) {
        return NULL;
    }
    ranges->engine = &call->row->loop->engine;
    while (ranges->threads < threads) {
        NpyIter *iterator = ranges->threads == 0
                                ? make_iterator(call, BUFFERS | NPY_ITER_RANGED, NPY_ITER_ALIGNED)
                                : NpyIter_Copy(ranges->iterator[0]);
        if (iterator == NULL) {
            break;
        }
        if (!allocate_buffers(iterator)) {
            NpyIter_Deallocate(iterator);
            break;
        }
        ranges->iterator[ranges->threads++] = iterator;
    }
    PyErr_Clear();
    if (ranges->threads == 0) {
        release_ranges(ranges);
        return NULL;
    }
    return ranges;
}

bool iterator_run_ranges(const struct ufunc_call *call, npy_intp n, int threads, PyObject **result)
{
    const npy_intp most = (n + ITERATOR_RANGE_ELEMENTS - 1) / ITERATOR_RANGE_ELEMENTS;
    struct ranges *ranges = make_ranges(call, (int)Py_MIN(threads, most));
    if (ranges == NULL) {
        return false;
    }
    PyArrayObject *out = NpyIter_GetOperandArray(ranges->iterator[0])[call->table->inputs];
    Py_INCREF(out);
    const struct shared_work work = {
        .loop = &call->row->loop->engine,
        .hook_data = &ranges->failure,
        .run = run_ranges,
        .context = ranges,
        .units = n,
        .elements_of_unit = 1,
        .timed = ITERATOR_RANGE_ELEMENTS,
        .block = ITERATOR_RANGE_ELEMENTS,
        .threads = ranges->threads,
    };
    errors_clear();
    Py_BEGIN_ALLOW_THREADS elementwise_share_out(&work);
    Py_END_ALLOW_THREADS release_ranges(ranges);
    *result = errors_finish(call->table->name, out, errors_raised());
    return true;
}

/* On one thread, as NumPy would, but past what it does before it iterates: that takes as long as some
 * hundred elements. */
bool iterator_run_whole(const struct ufunc_call *call, npy_intp n, PyObject **result)
{
    NpyIter *iterator = make_iterator(call, BUFFERS, NPY_ITER_ALIGNED);
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
    errors_clear();
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(n);
    do {
        loop_run(data, count, step, call->row->loop);
    } while (next(iterator));
    NPY_END_THREADS;
    NpyIter_Deallocate(iterator);
    *result = errors_finish(call->table->name, out, errors_raised());
    return true;
}
