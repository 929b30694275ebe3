/* The axes of a call in the order in which NumPy's iterator goes through them, and the output that it would make. The
 * iterator itself takes as long to make as some hundred elements to compute. */
#include "elementwise_axes.h"

#include "errors.h"
#include "nested_call.h"

/* Inputs, the output, and a mask. */
struct axes_of_call {
    const struct ufunc_call *call;
    PyArrayObject *array[PIECES_MOST_OPERANDS]; /* NULL: a scalar, or a new output */
    int operands, ndim;
};

static void list_operands(const struct ufunc_call *call, struct axes_of_call *axes)
{
    const int inputs = call->table->inputs;
    axes->call = call;
    axes->operands = inputs + 1;
    for (int op = 0; op <= inputs; op++) {
        axes->array[op] = call->array[op];
    }
    if (call->mask != NULL) {
        axes->array[axes->operands++] = call->mask;
    }
    axes->ndim = 0;
    for (int op = 0; op < axes->operands; op++) {
        const int ndim = axes->array[op] != NULL ? PyArray_NDIM(axes->array[op]) : 0;
        axes->ndim = Py_MAX(axes->ndim, ndim);
    }
}

/* An array's own number of an axis; negative: the array is repeated along it. */
static int own_axis(const struct axes_of_call *axes, int operand, int axis)
{
    PyArrayObject *array = axes->array[operand];
    return array != NULL ? axis - axes->ndim + PyArray_NDIM(array) : -1;
}

static npy_intp step_of(const struct axes_of_call *axes, int operand, int axis)
{
    const int own = own_axis(axes, operand, axis);
    return own >= 0 ? array_step(axes->array[operand], own) : 0;
}

/* The shape of all operands when broadcast; false where they are empty or do not go together, or where an output is
 * not as large. */
static bool find_shape(const struct axes_of_call *axes, int out, npy_intp shape[])
{
    PyArrayObject *given = axes->array[out];
    for (int axis = 0; axis < axes->ndim; axis++) {
        npy_intp longest = 1;
        for (int op = 0; op < axes->operands; op++) {
            const int own = own_axis(axes, op, axis);
            const npy_intp n = own >= 0 ? PyArray_DIM(axes->array[op], own) : 1;
            if (n == 0 || (n != 1 && longest != 1 && n != longest)) {
                return false;
            }
            longest = n != 1 ? n : longest;
        }
        shape[axis] = longest;
    }
    return axes->ndim > 0 &&
           (given == NULL || (PyArray_NDIM(given) == axes->ndim &&
                              PyArray_CompareLists(PyArray_DIMS(given), shape, axes->ndim)));
}

/* See axes_sort(). */
static int turn_of(const void *context, int axis, int later)
{
    const struct axes_of_call *axes = context;
    int turn = 0;
    for (int op = 0; op < axes->operands; op++) {
        turn = axes_turn_with(turn, step_of(axes, op, axis), step_of(axes, op, later));
    }
    return turn;
}

static bool is_cast_whole(const struct axes_of_call *axes, int operand)
{
    return operand < axes->call->table->inputs && operands_is_cast_whole(axes->call, operand);
}

static bool are_all_fortran(const struct axes_of_call *axes)
{
    bool are = true;
    for (int op = 0; op < axes->operands; op++) {
        are = are && (axes->array[op] == NULL || is_cast_whole(axes, op) ||
                      PyArray_IS_F_CONTIGUOUS(axes->array[op]));
    }
    return are;
}

/* Into `order`, the fastest first. */
static void sort_axes(const struct axes_of_call *axes, NPY_ORDER asked, int order[])
{
    if (asked == NPY_KEEPORDER) {
        axes_sort(axes->ndim, order, turn_of, axes);
        return;
    }
    const bool is_fortran =
        asked == NPY_FORTRANORDER || (asked == NPY_ANYORDER && are_all_fortran(axes));
    for (int i = 0; i < axes->ndim; i++) {
        order[i] = is_fortran ? i : axes->ndim - 1 - i;
    }
}

/* An axis along which all operands run backwards is turned, but beside a new output. */
static void turn_backwards(const struct axes_of_call *axes, struct nested *nested,
                           struct nested_axis *axis)
{
    bool any_forward = false, any_backwards = false;
    for (int op = 0; op < axes->operands; op++) {
        any_forward =
            any_forward || axis->step[op] > 0 || (axis->step[op] < 0 && is_cast_whole(axes, op));
        any_backwards = any_backwards || axis->step[op] < 0;
    }
    for (int op = 0; op < axes->operands && any_backwards && !any_forward; op++) {
        nested->data[op] += (axis->n - 1) * axis->step[op];
        axis->step[op] = -axis->step[op];
    }
}

/* Joins an axis to a faster one; false if they are not one in memory. */
static bool join(struct nested_axis *fast, const struct nested_axis *slow, int operands)
{
    for (int op = 0; op < operands; op++) {
        if (fast->n != 1 && slow->n != 1 && fast->n * fast->step[op] != slow->step[op]) {
            return false;
        }
    }
    for (int op = 0; op < operands; op++) {
        fast->step[op] = fast->n != 1 ? fast->step[op] : slow->step[op];
    }
    fast->n *= slow->n;
    return true;
}

/* The fastest axis comes first. */
static void fill_axes(const struct axes_of_call *axes, const npy_intp shape[], const int order[],
                      bool may_turn, struct nested *nested)
{
    struct nested_axis *last = NULL;
    nested->axes = 0;
    for (int i = 0; i < axes->ndim; i++) {
        struct nested_axis *axis = &nested->axis[nested->axes];
        axis->n = shape[order[i]];
        for (int op = 0; op < axes->operands; op++) {
            axis->step[op] = step_of(axes, op, order[i]);
        }
        if (may_turn) {
            turn_backwards(axes, nested, axis);
        }
        if (last == NULL || !join(last, axis, axes->operands)) {
            last = axis;
            nested->axes++;
        }
    }
}

/* Axes, data, and the output, a new reference. False where only NumPy knows what to do, or says what is wrong. */
static bool find_axes(const struct ufunc_call *call, struct nested *nested, PyArrayObject **out)
{
    const int inputs = call->table->inputs;
    const NPY_ORDER asked = call->is_resolved ? call->order : NPY_KEEPORDER;
    const bool is_new = call->array[inputs] == NULL;
    struct axes_of_call axes;
    npy_intp shape[NPY_MAXDIMS];
    int order[NPY_MAXDIMS];
    list_operands(call, &axes);
    if (!find_shape(&axes, inputs, shape)) {
        return false;
    }
    sort_axes(&axes, asked, order);
    *out = is_new ? operands_new_output_in_order(call, axes.ndim, shape, order)
                  : (PyArrayObject *)Py_NewRef((PyObject *)call->array[inputs]);
    if (*out == NULL) {
        PyErr_Clear();
        return false;
    }
    axes.array[inputs] = *out;
    for (int op = 0; op < axes.operands; op++) {
        nested->data[op] =
            axes.array[op] != NULL ? PyArray_BYTES(axes.array[op]) : (char *)call->scalar[op].bytes;
    }
    fill_axes(&axes, shape, order, !is_new && asked == NPY_KEEPORDER, nested);
    return true;
}

bool axes_run(const struct ufunc_call *call, PyObject **result)
{
    struct failure failure = {.threads_run = false};
    struct nested nested;
    PyArrayObject *out;
    nested.hook_data = &failure;
    if (!find_axes(call, &nested, &out)) {
        return false;
    }
    if (nested_call_run(call, &nested, out, result)) {
        return true;
    }
    Py_DECREF(out);
    return false;
}

/* ---- devices ---- */

static void fill_work(const struct ufunc_call *call, const struct nested *nested,
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

bool axes_run_on_device(const struct ufunc_call *call, struct elementwise_offload *offload,
                        PyObject **result)
{
    struct nested nested;
    PyArrayObject *out;
    int raised;
    if (!find_axes(call, &nested, &out)) {
        return false;
    }
    if (nested.axes <= ELEMENTWISE_MOST_AXES) {
        fill_work(call, &nested, offload);
        if (elementwise_offload_run(call, out, offload, &raised)) {
            *result = errors_finish(call->table->name, (PyObject *)out, raised);
            return true;
        }
    }
    Py_DECREF(out);
    return false;
}
