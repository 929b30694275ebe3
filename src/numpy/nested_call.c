/* Kernels, and loops of NumPy's whose results are exact, get any steps, in any order; other loops one row of contiguous
 * or repeated elements, as which few may be gathered. */
#include "nested_call.h"

#include "errors.h"

#include "engine/elementwise_cutoffs.h"
#include "engine/tiling.h"

/* Whether NumPy's loop would get operands of several axes in one line, as some inputs are cast as a whole: these vary everywhere, or
 * nowhere, and others lie as the output does, which the iterator goes along. */
static bool are_in_line(const struct nested *nested, const struct elementwise *engine)
{
    const int out = engine->inputs;
    const npy_intp out_size = (npy_intp)engine->item_size[out];
    bool are = nested->axes <= TILE_AXES && tiling_is_whole(engine, nested);
    for (int i = 1; i < nested->axes && are; i++) { /* the fastest of the iterator comes first */
        are = nested->axis[i].step[out] > nested->axis[i - 1].step[out];
    }
    for (int in = 0; in < out && are; in++) {
        const npy_intp size = (npy_intp)engine->item_size[in];
        int repeated = 0, alike = 0;
        for (int i = 0; i < nested->axes; i++) {
            const npy_intp *step = nested->axis[i].step;
            repeated += step[in] == 0;
            alike += step[in] * out_size == step[out] * size;
        }
        are = repeated == nested->axes ||
              (nested->convert[in] != NULL ? repeated == 0 : alike == nested->axes);
    }
    return are;
}

/* Some of NumPy's loops compute elements one by one that are 2 MiB apart, or more. */
enum { FAR_BYTES = 1 << 20 };

/* Whether an inner loop may get the operands as they lie, along an axis of the output's. NumPy casts repeated elements once
 * or as often as they are met; of two inputs, one that is repeated may be computed otherwise. */
static bool goes_forward(const struct nested *nested, const struct elementwise *engine)
{
    const int out = engine->inputs;
    bool goes = true, has_rows = false, repeats[PIECES_MOST_INPUTS] = {false},
         varies[PIECES_MOST_INPUTS] = {false};
    for (int i = 0; i < nested->axes && goes; i++) {
        const ptrdiff_t *step = nested->axis[i].step;
        if (nested->axis[i].n == 1) {
            continue;
        }
        goes = step[out] > 0;
        /* Across short rows, NumPy finds what is true of a mask sooner. */
        const bool suits_mask = !nested->is_masked || step[engine->operands] == 1 ||
                                nested->axis[i].n >= LEAST_MASKED_ROW;
        has_rows = has_rows || (suits_mask && step[out] == (ptrdiff_t)nested->stored_size[out]);
        for (int in = 0; in < out && goes; in++) {
            goes = nested->convert[in] != NULL || (step[in] >= 0 && step[in] < FAR_BYTES);
            repeats[in] = repeats[in] || step[in] == 0;
            varies[in] = varies[in] || step[in] != 0;
        }
    }
    for (int in = 0; in < out && out > 1 && goes; in++) {
        goes = !(repeats[in] && varies[in]);
    }
    return goes && has_rows;
}

/* Of few elements along one axis, any loop gets inputs as they lie, if they are not converted, and of one element all
 * operands: NumPy hands it the same. */
static bool suits_loop(const struct nested *nested, const struct elementwise *engine, npy_intp n,
                       bool is_tiny)
{
    if (engine->kernel != NULL || engine->same_bits == SAME_ANYWHERE || n == 1 ||
        (engine->same_bits == SAME_FORWARD && goes_forward(nested, engine))) {
        return true;
    }
    if (nested->axes > 1) {
        return are_in_line(nested, engine);
    }
    const bool is_short = is_tiny && !nested->is_masked && nested->axis[0].n <= WHOLE_ELEMENTS;
    for (int op = 0; op < engine->operands; op++) {
        const npy_intp step = nested->axis[0].step[op];
        if (step != (npy_intp)engine->item_size[op] && nested->convert[op] == NULL &&
            !(op < engine->inputs && (step == 0 || is_short))) {
            return false;
        }
    }
    return true;
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
    const npy_intp n = nested_elements(nested);
    const bool is_tiny = elementwise_is_tiny(engine, n);
    if (!suits_loop(nested, engine, n, is_tiny)) {
        return false;
    }
    errors_clear();
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
