/* Element-wise calls through NumPy's iterator: it broadcasts, sorts and joins the axes and makes the
 * output, as it does for NumPy. Kernels then walk through the operands freely; a loop of NumPy's gets
 * what NumPy would hand it, buffered, each thread ranges of it. */
#include "elementwise_iterator.h"

#include "elementwise_ranges.h"
#include "errors.h"

/* Whether an operand is an array of another dtype than the loop's. */
static bool converts(const struct ufunc_call *call, int operand)
{
    return call->is_resolved && call->convert[operand] != NULL;
}

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
        operands->dtype[i] = converts(call, i) ? PyArray_DESCR(call->array[i]) : call->row->input;
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
    operands->dtype[inputs] =
        converts(call, inputs) ? PyArray_DESCR(call->array[inputs]) : call->row->output;
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

/* ---- kernels, and loops whose results are exact: any steps, any order; other loops: one row of contiguous or repeated
 * elements ---- */

static bool suits_loop(const struct nested *nested, const struct elementwise *engine)
{
    if (engine->is_exact) {
        return true;
    }
    for (int op = 0; op < engine->operands; op++) {
        const npy_intp step = nested->axis[0].step[op];
        if (step != (npy_intp)engine->item_size[op] && nested->convert[op] == NULL &&
            !(op < engine->inputs && step == 0)) {
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
    nested.convert[inputs + 1] = NULL;
    for (int i = 0; i <= inputs; i++) {
        nested.convert[i] = converts(call, i) ? call->convert[i] : NULL;
        nested.stored_size[i] = (size_t)PyArray_ITEMSIZE(NpyIter_GetOperandArray(iterator)[i]);
    }
    nested.stored_size[inputs + 1] = sizeof(npy_bool);
    const npy_intp n = NpyIter_GetIterSize(iterator);
    PyArrayObject *out = NpyIter_GetOperandArray(iterator)[inputs];
    nested.is_masked = call->mask != NULL;
    if (n == 0 || PyArray_NDIM(out) == 0 ||
        !read_axes(iterator, inputs + 1 + nested.is_masked, &nested) ||
        (engine->kernel == NULL && !suits_loop(&nested, engine))) {
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
    *result = errors_finish(call->table->name, (PyObject *)out, errors_raised());
    return true;
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
