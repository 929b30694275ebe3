/* Element-wise calls through NumPy's iterator: it broadcasts, sorts and joins the axes and makes the
 * output, as it does for NumPy. Kernels then walk through the operands freely; a loop of NumPy's gets
 * what NumPy would hand it, buffered, each thread ranges of it. */
#include "elementwise_iterator.h"

#include "elementwise_ranges.h"
#include "errors.h"
#include "nested_call.h"

/* As ranges_run() takes them; 0-d arrays for scalars are new references, in `made`. False with an exception. */
static bool list_operands(const struct ufunc_call *call, struct iterator_operands *operands,
                          PyArrayObject *made[])
{
    const int inputs = call->table->inputs;
    bool complete = true;
    operands->inputs = inputs;
    operands->operands = inputs + 1;
    operands->mask = call->mask;
    operands->order = call->is_resolved ? call->order : NPY_KEEPORDER;
    for (int i = 0; i < inputs; i++) {
        operands->array[i] = call->array[i];
        operands->dtype[i] =
            operands_is_converted(call, i) ? PyArray_DESCR(call->array[i]) : call->row->input;
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
    operands->dtype[inputs] = operands_is_converted(call, inputs)
                                  ? PyArray_DESCR(call->array[inputs])
                                  : call->row->output;
    return complete;
}

static void release_made(const struct ufunc_call *call, PyArrayObject *made[])
{
    for (int i = 0; i < call->table->inputs; i++) {
        Py_XDECREF(made[i]);
    }
}

/* NULL: NumPy's own path says what is wrong. */
static NpyIter *make_iterator(const struct ufunc_call *call, npy_uint32 flags,
                              npy_uint32 operand_flags)
{
    struct iterator_operands operands;
    PyArrayObject *made[CALL_MOST_INPUTS];
    NpyIter *iterator = list_operands(call, &operands, made)
                            ? operand_iterator_new(&operands, flags, operand_flags, NPY_NO_CASTING)
                            : NULL;
    release_made(call, made);
    PyErr_Clear();
    return iterator;
}

/* ---- axes ---- */

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

/* Without copies of operands: nothing is left of the iterator but axes. */
bool iterator_run_axes(const struct ufunc_call *call, PyObject **result)
{
    const int inputs = call->table->inputs;
    struct failure failure = {.threads_run = false};
    struct nested nested;
    NpyIter *iterator = make_iterator(call, 0, 0);
    if (iterator == NULL) {
        return false;
    }
    nested.hook_data = &failure;
    PyArrayObject *out = NpyIter_GetOperandArray(iterator)[inputs];
    const bool found = NpyIter_GetIterSize(iterator) > 0 && PyArray_NDIM(out) > 0 &&
                       read_axes(iterator, inputs + 1 + (call->mask != NULL), &nested);
    Py_INCREF(out);
    PyErr_Clear();
    NpyIter_Deallocate(iterator);
    if (found && nested_call_run(call, &nested, out, result)) {
        return true;
    }
    Py_DECREF(out);
    return false;
}

/* ---- devices ---- */

static void fill_axes(const struct ufunc_call *call, const struct nested *nested,
                      struct elementwise_offload *offload)
{
    struct elementwise_work *work = &offload->task.work;
    work->axes = nested->axes;
    for (int i = 0; i < ELEMENTWISE_INPUTS; i++) {
        elementwise_offload_input(call, i, nested->data[i], offload);
    }
    work->at[ELEMENTWISE_INPUTS] = device_address_of(nested->data[ELEMENTWISE_INPUTS]);
    for (int i = 0; i < nested->axes; i++) {
        work->axis[i].n = nested->axis[i].n;
        for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
            work->axis[i].step[op] = nested->axis[i].step[op];
        }
    }
}

bool iterator_run_on_device(const struct ufunc_call *call, struct elementwise_offload *offload,
                            PyObject **result)
{
    struct nested nested;
    int raised;
    NpyIter *iterator = make_iterator(call, 0, 0);
    if (iterator == NULL) {
        return false;
    }
    PyArrayObject *out = NpyIter_GetOperandArray(iterator)[ELEMENTWISE_INPUTS];
    bool done = PyArray_NDIM(out) > 0 && read_axes(iterator, ELEMENTWISE_OPERANDS, &nested) &&
                nested.axes <= ELEMENTWISE_MOST_AXES;
    PyErr_Clear();
    if (done) {
        fill_axes(call, &nested, offload);
        done = elementwise_offload_run(call, out, offload, &raised);
    }
    Py_INCREF(out);
    NpyIter_Deallocate(iterator);
    if (done) {
        *result = errors_finish(call->table->name, (PyObject *)out, raised);
    } else {
        Py_DECREF(out);
    }
    return done;
}

/* ---- NumPy's loops ---- */

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
    NpyIter *iterator = make_iterator(
        call, NPY_ITER_BUFFERED | NPY_ITER_GROWINNER | NPY_ITER_DELAY_BUFALLOC, NPY_ITER_ALIGNED);
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
