/* Kernels, and loops of NumPy's whose results are exact, get any steps, in any order; other loops one row of contiguous
 * or repeated elements. */
#include "nested_call.h"

#include "errors.h"

static bool suits_loop(const struct nested *nested, const struct elementwise *engine)
{
    if (engine->kernel != NULL || engine->is_exact) {
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

/* What is known without the axes. */
static void read_operands(const struct ufunc_call *call, struct nested *nested)
{
    const int inputs = call->table->inputs;
    nested->is_masked = call->mask != NULL;
    nested->output_is_new = call->array[inputs] == NULL;
    for (int op = 0; op <= inputs; op++) {
        const bool converts = operands_is_converted(call, op);
        nested->convert[op] = converts ? call->convert[op] : NULL;
        nested->stored_size[op] = converts ? (size_t)PyArray_ITEMSIZE(call->array[op])
                                           : call->row->loop->engine.item_size[op];
    }
    nested->convert[inputs + 1] = NULL;
    nested->stored_size[inputs + 1] = sizeof(npy_bool);
}

bool nested_call_run(const struct ufunc_call *call, struct nested *nested, PyArrayObject *out,
                     PyObject **result)
{
    struct elementwise *engine = &call->row->loop->engine;
    read_operands(call, nested);
    if (!suits_loop(nested, engine)) {
        return false;
    }
    const npy_intp n = nested_elements(nested);
    errors_clear();
    const bool is_tiny = elementwise_is_tiny(engine, n);
    nested->streams =
        !is_tiny && !nested->is_masked && elementwise_streams(engine, nested->data, n);
    NPY_BEGIN_THREADS_DEF;
    if (!is_tiny) {
        NPY_BEGIN_THREADS;
    }
    nested_run(engine, nested, is_tiny);
    NPY_END_THREADS;
    *result = errors_finish(call->table->name, (PyObject *)out, errors_raised());
    return true;
}
