/* Element-wise calls through NumPy's iterator: a loop of NumPy's gets what NumPy would hand it, buffered, each thread
 * ranges of it. */
#include "elementwise_iterator.h"

#include "elementwise_ranges.h"
#include "errors.h"

/* As ranges_run() takes them; 0-d arrays for scalars are new references, in `made`. False with an exception. */
static bool list_operands(const struct ufunc_call *call, struct iterator_operands *operands,
                          PyArrayObject *made[])
{
    const int inputs = call->table->inputs;
    bool complete = true;
    operands->inputs = inputs;
    operands->operands = inputs + 1;
    operands->mask = NULL;
    operands->order = NPY_KEEPORDER;
    for (int i = 0; i < inputs; i++) {
        operands->array[i] = call->array[i];
        operands->dtype[i] = call_row_input(call->row, i);
        made[i] = NULL;
        if (call->array[i] == NULL) {
            Py_INCREF(operands->dtype[i]);
            made[i] =
                (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, operands->dtype[i], 0, NULL,
                                                      NULL, (void *)call->scalar[i].bytes, 0, NULL);
            operands->array[i] = made[i];
            complete = complete && made[i] != NULL;
        }
    }
    operands->array[inputs] = call->array[inputs];
    operands->dtype[inputs] = call->row->output;
    return complete;
}

static void release_made(const struct ufunc_call *call, PyArrayObject *made[])
{
    for (int i = 0; i < call->table->inputs; i++) {
        Py_XDECREF(made[i]);
    }
}

/* NULL: NumPy's own path says what is wrong. */
static NpyIter *make_iterator(const struct ufunc_call *call)
{
    const npy_uint32 flags = NPY_ITER_BUFFERED | NPY_ITER_GROWINNER | NPY_ITER_DELAY_BUFALLOC;
    struct iterator_operands operands;
    PyArrayObject *made[CALL_MOST_INPUTS];
    NpyIter *iterator =
        list_operands(call, &operands, made)
            ? operand_iterator_new(&operands, flags, NPY_ITER_ALIGNED, NPY_NO_CASTING)
            : NULL;
    release_made(call, made);
    PyErr_Clear();
    return iterator;
}

bool iterator_run_ranges(const struct ufunc_call *call, npy_intp n, int threads, PyObject **result)
{
    struct ranged_call ranged = {
        .name = call->table->name, .engine = &call->row->loop->engine, .n = n, .threads = threads};
    PyArrayObject *made[CALL_MOST_INPUTS];
    const bool done = list_operands(call, &ranged.operands, made) && ranges_run(&ranged, result);
    release_made(call, made);
    if (!done) {
        PyErr_Clear();
    }
    return done;
}

/* On one thread, as NumPy would, but past what it does before it iterates: that takes as long as some
 * hundred elements. */
bool iterator_run_whole(const struct ufunc_call *call, npy_intp n, PyObject **result)
{
    NpyIter *iterator = make_iterator(call);
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
    *result = errors_finish(call->table->name, (PyObject *)out, errors_raised());
    return true;
}
