#include "elementwise_ranges.h"

#include "errors.h"
#include "kernels/copy/find_bool.h"

#include <string.h>

enum {
    /* A thread is given so many elements at a time, a multiple of the iterator's buffers. */
    RANGE_ELEMENTS = NPY_BUFSIZE,
    /* Of a second range that is much shorter than the first nothing would be gained. */
    LEAST_SHARED = RANGE_ELEMENTS + RANGE_ELEMENTS / 2,
};

int ranges_threads(const struct elementwise *engine, npy_intp n)
{
    return n >= LEAST_SHARED ? elementwise_threads(engine, n) : 1;
}

/* An iterator for each thread. */
struct ranges {
    const struct ranged_call *call;
    struct failure failure;
    int threads;
    NpyIter *iterator[];
};

/* The elements whose mask is true, each run of them by itself, as NumPy does it. */
static void run_masked_chunk(const struct ranges *ranges, char *const data[], const npy_intp step[],
                             npy_intp first, npy_intp n)
{
    const struct elementwise *engine = ranges->call->engine;
    const int mask = engine->operands;
    for (npy_intp begin, end = 0;
         (begin = find_bool_from(true, data[mask], step[mask], end, n)) < n;) {
        char *run[MOST_OPERANDS];
        end = find_bool_from(false, data[mask], step[mask], begin, n);
        for (int op = 0; op < engine->operands; op++) {
            run[op] = data[op] + begin * step[op];
        }
        elementwise_run_chunk(engine, (void *)&ranges->failure, run, step, first, end - begin);
    }
}

static void run_range(const struct ranges *ranges, NpyIter *iterator, npy_intp first, npy_intp end)
{
    const struct elementwise *engine = ranges->call->engine;
    /* Neither fails: the buffers exist since the iterators were made ready. */
    char *unused;
    NpyIter_ResetToIterIndexRange(iterator, first, end, &unused);
    NpyIter_IterNextFunc *next = NpyIter_GetIterNext(iterator, &unused);
    char **data = NpyIter_GetDataPtrArray(iterator);
    const npy_intp *step = NpyIter_GetInnerStrideArray(iterator);
    const npy_intp *n = NpyIter_GetInnerLoopSizePtr(iterator);
    do {
        if (ranges->call->operands.mask != NULL) {
            run_masked_chunk(ranges, data, step, first, *n);
        } else {
            elementwise_run_chunk(engine, (void *)&ranges->failure, data, step, first, *n);
        }
    } while (next(iterator));
}

static void run_ranges(void *context, struct chunks *chunks)
{
    const struct ranges *ranges = context;
    ptrdiff_t first, end;
    while (chunks_take(chunks, &first, &end)) {
        run_range(ranges, ranges->iterator[chunks->thread], first, end);
    }
}

/* Allocates an iterator's buffers. That fills them, and whatever comes next writes them back, be it into an
 * element that another thread has computed since: so that happens now, and is undone. */
static bool allocate_buffers(const struct iterator_operands *operands, NpyIter *iterator)
{
    char **first = NpyIter_GetInitialDataPtrArray(iterator);
    PyArrayObject **array = NpyIter_GetOperandArray(iterator);
    char kept[MOST_OPERANDS][sizeof(npy_clongdouble)];
    for (int op = operands->inputs; op < operands->operands; op++) {
        memcpy(kept[op], first[op], (size_t)PyArray_ITEMSIZE(array[op]));
    }
    if (NpyIter_ResetToIterIndexRange(iterator, 0, 1, NULL) != NPY_SUCCEED) {
        return false;
    }
    NpyIter_GetIterNext(iterator, NULL)(iterator);
    for (int op = operands->inputs; op < operands->operands; op++) {
        memcpy(first[op], kept[op], (size_t)PyArray_ITEMSIZE(array[op]));
    }
    return true;
}

static void release(struct ranges *ranges)
{
    for (int i = 0; i < ranges->threads; i++) {
        NpyIter_Deallocate(ranges->iterator[i]);
    }
    PyMem_Free(ranges);
}

/* An iterator for the next thread; NULL without memory, or if only NumPy knows what is wrong. */
static NpyIter *next_iterator(const struct ranges *ranges)
{
    const npy_uint32 flags =
        NPY_ITER_BUFFERED | NPY_ITER_GROWINNER | NPY_ITER_DELAY_BUFALLOC | NPY_ITER_RANGED;
    const struct iterator_operands *operands = &ranges->call->operands;
    /* NumPy's copies of iterators with masked casts crash. With a mask, all outputs are given. */
    return ranges->threads == 0 || operands->mask != NULL
               ? operand_iterator_new(operands, flags, NPY_ITER_ALIGNED | NPY_ITER_NBO,
                                      NPY_UNSAFE_CASTING)
               : NpyIter_Copy(ranges->iterator[0]);
}

/* Iterators with buffers, as many as there is memory for; NULL: for none. */
static struct ranges *make_ranges(const struct ranged_call *call)
{
    const npy_intp most = (call->n + RANGE_ELEMENTS - 1) / RANGE_ELEMENTS;
    const int threads = (int)Py_MIN(call->threads, most);
    struct ranges *ranges =
        PyMem_Calloc(1, sizeof *ranges + (size_t)threads * sizeof ranges->iterator[0]);
    if (ranges == NULL) {
        return NULL;
    }
    ranges->call = call;
    while (ranges->threads < threads) {
        NpyIter *iterator = next_iterator(ranges);
        if (iterator == NULL) {
            break;
        }
        if (!allocate_buffers(&call->operands, iterator)) {
            NpyIter_Deallocate(iterator);
            break;
        }
        ranges->iterator[ranges->threads++] = iterator;
    }
    PyErr_Clear();
    if (ranges->threads == 0) {
        release(ranges);
        return NULL;
    }
    return ranges;
}

/* The outputs as the ufunc returns them; NULL with an exception. */
static PyObject *take_outputs(const struct ranged_call *call, NpyIter *iterator)
{
    PyArrayObject **array = NpyIter_GetOperandArray(iterator) + call->operands.inputs;
    const int outputs = call->operands.operands - call->operands.inputs;
    if (outputs == 1) {
        return Py_NewRef((PyObject *)array[0]);
    }
    PyObject *all = PyTuple_New(outputs);
    for (int i = 0; i < outputs && all != NULL; i++) {
        PyTuple_SET_ITEM(all, i, Py_NewRef((PyObject *)array[i]));
    }
    return all;
}

bool ranges_run(const struct ranged_call *call, PyObject **result)
{
    struct ranges *ranges = make_ranges(call);
    if (ranges == NULL) {
        return false;
    }
    PyObject *outputs = take_outputs(call, ranges->iterator[0]);
    if (outputs == NULL) {
        release(ranges);
        *result = NULL;
        return true;
    }
    const struct shared_work work = {
        .loop = call->engine,
        .hook_data = &ranges->failure,
        .run = run_ranges,
        .context = ranges,
        .units = call->n,
        .elements_of_unit = 1,
        .timed = RANGE_ELEMENTS,
        .block = RANGE_ELEMENTS,
        .threads = ranges->threads,
    };
    errors_clear();
    Py_BEGIN_ALLOW_THREADS elementwise_share_out(&work);
    Py_END_ALLOW_THREADS release(ranges);
    *result = errors_finish(call->name, outputs, errors_raised());
    return true;
}
