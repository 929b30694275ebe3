/* Element-wise calls: planned by their operands' layout, then computed past NumPy's own path. */
#include "elementwise_call.h"

#include "elementwise_axes.h"
#include "elementwise_iterator.h"
#include "elementwise_offload.h"
#include "elementwise_ranges.h"
#include "errors.h"
#include "nested_call.h"

#include "engine/elementwise_cutoffs.h"
#include "engine/overlap.h"
#include "kernels/sizes.h"

_Thread_local struct elementwise_calls elementwise_calls;

/* What has been decided about a call. */
struct call_plan {
    enum way {
        LEFT_TO_NUMPY,
        AT_ONCE,  /* by a kernel, in less time than NumPy takes to give up the GIL */
        ONE_LOOP, /* one step for each operand */
        ONE_AXIS, /* the same with conversions or a mask */
        AXES,     /* a kernel, or conversions, over axes in the order of NumPy's iterator */
        RANGES,   /* NumPy's loop, on threads that get ranges of NumPy's iterator */
        WHOLE,    /* the same on this thread */
    } way;
    PyArrayObject *shape; /* the operand that tells it */
    int order;            /* NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_F_CONTIGUOUS or both */
    npy_intp n;
    char *data[CALL_MOST_OPERANDS];
    npy_intp step[CALL_MOST_OPERANDS];
    elementwise_kernel *kernel; /* NULL: NumPy's loop */
    bool is_tiny;
    int threads; /* for RANGES */
};

static bool output_is_independent(const struct ufunc_call *call)
{
    const int inputs = call->table->inputs;
    return operands_output_is_independent(call->array, inputs, call->mask, call->array[inputs],
                                          true);
}

/* Whether one loop can walk through the operands: all of one shape, and contiguous in one order if they
 * have several axes. */
static bool fit_one_loop(const struct ufunc_call *call, struct call_plan *plan)
{
    const int inputs = call->table->inputs;
    PyArrayObject *model = NULL;
    int order = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS;
    for (int i = 0; i <= inputs; i++) {
        PyArrayObject *array = call->array[i];
        if (array == NULL || (PyArray_NDIM(array) == 0 && i < inputs)) {
            plan->step[i] = 0;
            continue;
        }
        const int ndim = PyArray_NDIM(array);
        if (model == NULL) {
            model = array;
        } else if (ndim != PyArray_NDIM(model) ||
                   (ndim == 1
                        ? PyArray_DIM(array, 0) != PyArray_DIM(model, 0)
                        : !PyArray_CompareLists(PyArray_DIMS(array), PyArray_DIMS(model), ndim))) {
            return false;
        }
        if (ndim == 1) {
            plan->step[i] = PyArray_STRIDE(array, 0);
        } else {
            plan->step[i] = PyArray_ITEMSIZE(array);
            order &= PyArray_FLAGS(array);
        }
    }
    plan->shape = model;
    plan->order = order;
    return order != 0;
}

/* NumPy's iterator has no steps for one element. It takes those that are in place, if no others. */
static void clear_steps(int inputs, bool by_iterator, struct call_plan *plan)
{
    for (int i = 0; i < inputs; i++) {
        by_iterator = by_iterator || plan->data[i] == plan->data[inputs];
    }
    for (int op = 0; op <= inputs && by_iterator; op++) {
        plan->step[op] = 0;
    }
}

static void find_data(const struct ufunc_call *call, struct call_plan *plan)
{
    const int inputs = call->table->inputs;
    PyArrayObject *out = call->array[inputs];
    for (int i = 0; i < inputs; i++) {
        plan->data[i] =
            call->array[i] != NULL ? PyArray_DATA(call->array[i]) : (char *)call->scalar[i].bytes;
    }
    plan->data[inputs] = out != NULL ? PyArray_DATA(out) : NULL; /* a new one is made later */
    if (out == NULL) {
        plan->step[inputs] = (npy_intp)call->row->loop->engine.item_size[inputs];
    }
}

static void plan_one_loop(const struct ufunc_call *call, struct call_plan *plan)
{
    const struct elementwise *engine = &call->row->loop->engine;
    const int inputs = call->table->inputs;
    PyArrayObject *out = call->array[inputs];
    PyArrayObject *shape = plan->shape;
    const npy_intp n = plan->n = array_size(shape);
    plan->way = LEFT_TO_NUMPY;
    if (n == 0) {
        return;
    }
    find_data(call, plan);
    if (out != NULL) {
        if (!elements_commute(inputs, inputs + 1, plan->data, plan->step, engine->item_size, n)) {
            return;
        }
        /* NumPy hands its own loops no output that runs backwards, and copies inputs that overlap it. */
        if (engine->kernel == NULL &&
            (plan->step[inputs] < PyArray_ITEMSIZE(out) || !output_is_independent(call))) {
            return;
        }
        if (engine->kernel == NULL && n == 1) {
            clear_steps(inputs, false, plan);
        }
    }
    plan->is_tiny = elementwise_is_tiny(engine, n);
    plan->kernel = plan->is_tiny ? elementwise_choose(engine, plan->step, false) : NULL;
    plan->way = plan->kernel != NULL ? AT_ONCE : ONE_LOOP;
}

/* Whether NumPy's iterator may join the axes of both to the same one; each is one line. */
static bool may_join_alike(PyArrayObject *a, npy_intp a_step, PyArrayObject *b, npy_intp b_step)
{
    bool may = true;
    for (int i = 0; i < PyArray_NDIM(a) && PyArray_NDIM(a) == PyArray_NDIM(b) && may; i++) {
        may = PyArray_DIM(a, i) == 1 || PyArray_DIM(b, i) == 1 ||
              PyArray_STRIDE(a, i) * b_step == PyArray_STRIDE(b, i) * a_step;
    }
    return may;
}

/* Whether axes_run() may find all operands in one line, as some inputs are cast as a whole: suits_few() of
 * resolved_call.c has seen that of the inputs. */
static bool may_be_in_line(const struct ufunc_call *call)
{
    const int inputs = call->table->inputs;
    PyArrayObject *out = call->array[inputs];
    return call->is_resolved && call->mask == NULL &&
           (out == NULL || PyArray_IS_C_CONTIGUOUS(out)) &&
           operands_size(call->array, inputs + 1) <= WHOLE_ELEMENTS;
}

/* Whether operands may be like that for loops that need it; an input that is not as large as another one is repeated. */
static bool may_go_forward(const struct ufunc_call *call)
{
    const int inputs = call->table->inputs;
    PyArrayObject *shape = NULL;
    bool may = true;
    for (int i = 0; i < inputs && may; i++) {
        PyArrayObject *array = call->array[i];
        if (array == NULL || PyArray_NDIM(array) == 0) {
            continue;
        }
        shape = shape != NULL ? shape : array;
        may = PyArray_SAMESHAPE(array, shape) &&
              array_goes_forward(array, operands_is_converted(call, i), inputs == 1);
    }
    return may;
}

/* Whether axes_run() may join the axes to one, which NumPy's loops get: it takes a while to find out. Those whose results are
 * exact get any axes. */
static bool may_suit_loop(const struct ufunc_call *call)
{
    const int inputs = call->table->inputs;
    const enum same_bits same = call->row->loop->engine.same_bits;
    if (same == SAME_ANYWHERE || (same == SAME_FORWARD && may_go_forward(call))) {
        return true;
    }
    const npy_intp n = operands_size(call->array, inputs + 1);
    const bool is_short = call->mask == NULL && n <= WHOLE_ELEMENTS;
    PyArrayObject *last = call->mask;
    npy_intp last_step = 0, step;
    bool may = last == NULL || array_is_one_line(last, &last_step);
    for (int op = 0; op <= inputs && may; op++) {
        PyArrayObject *array = call->array[op];
        if (array == NULL || PyArray_NDIM(array) == 0) {
            continue;
        }
        may = array_is_one_line(array, &step) &&
              (operands_is_converted(call, op) || magnitude(step) == PyArray_ITEMSIZE(array) ||
               (op < inputs && (step == 0 || is_short))) &&
              (last == NULL || may_join_alike(array, step, last, last_step));
        last = array;
        last_step = step;
    }
    return may || may_be_in_line(call);
}

/* Whether NumPy's loops get steps that run backwards as they are: its iterator turns them if all operands run backwards.
 * New outputs do not, nor do inputs that are cast as a whole. */
static bool stays_backwards(const struct ufunc_call *call, const struct call_plan *plan)
{
    const struct elementwise *engine = &call->row->loop->engine;
    const int inputs = call->table->inputs;
    bool stays = engine->kernel != NULL || engine->same_bits == SAME_ANYWHERE;
    for (int op = 0; op <= inputs && !stays; op++) {
        stays = plan->step[op] > 0 || (op < inputs && operands_is_cast_whole(call, op));
    }
    return stays;
}

/* Whether all axes are one that is found without looking at each of them. */
static bool fit_one_axis(const struct ufunc_call *call, struct call_plan *plan)
{
    const struct elementwise *engine = &call->row->loop->engine;
    const int inputs = call->table->inputs;
    if (!fit_one_loop(call, plan)) {
        return false;
    }
    const bool has_axes = PyArray_NDIM(plan->shape) > 1, is_new = call->array[inputs] == NULL;
    const bool is_ordered = call->is_resolved && call->order != NPY_KEEPORDER && has_axes;
    if (is_ordered || PyArray_NDIM(plan->shape) == 0 ||
        (is_new && (plan->order & NPY_ARRAY_C_CONTIGUOUS) == 0)) {
        return false;
    }
    plan->n = array_size(plan->shape);
    find_data(call, plan);
    if (engine->kernel == NULL && plan->n == 1) {
        const bool by_iterator = has_axes || call->mask != NULL ||
                                 operands_is_converted(call, inputs) ||
                                 plan->step[inputs] < (npy_intp)engine->item_size[inputs];
        clear_steps(inputs, by_iterator, plan);
    }
    bool fits = plan->n > 0 && (call->mask == NULL || (PyArray_SAMESHAPE(call->mask, plan->shape) &&
                                                       PyArray_CHKFLAGS(call->mask, plan->order)));
    const bool suits_any_step = stays_backwards(call, plan);
    for (int op = 0; op <= inputs && fits; op++) {
        fits = plan->step[op] >= 0 || suits_any_step ||
               (op < inputs && operands_is_converted(call, op));
    }
    return fits;
}

static void make_plan(const struct ufunc_call *call, struct call_plan *plan)
{
    const struct call_row *row = call->row;
    PyArrayObject *out = call->array[call->table->inputs];
    plan->way = LEFT_TO_NUMPY;
    if (call->is_resolved || call->mask != NULL) {
        const bool fits = call->table->inputs <= PIECES_MOST_INPUTS &&
                          (row->loop->engine.kernel != NULL || may_suit_loop(call)) &&
                          !(call->mask != NULL && row->loop->engine.zeros_tie) &&
                          (out == NULL || (array_is_injective(out) && output_is_independent(call)));
        plan->way = !fits ? LEFT_TO_NUMPY : fit_one_axis(call, plan) ? ONE_AXIS : AXES;
        return;
    }
    /* If a flag becomes an exception, NumPy has not yet written an output that overlaps an input;
     * a kernel would have. */
    if (row->converts && out != NULL && !output_is_independent(call)) {
        return;
    }
    if (fit_one_loop(call, plan) &&
        /* Where NumPy casts, its iterator allocates the output, with strides of its own for axes
         * of length 1. */
        !(row->converts && out == NULL && (plan->order & NPY_ARRAY_C_CONTIGUOUS) == 0)) {
        plan_one_loop(call, plan);
        return;
    }
    /* Some of NumPy's loops give the last elements of a row other bits, where rows lie apart. */
    const bool has_kernel = row->loop->engine.kernel != NULL;
    const bool suits =
        has_kernel ? call->table->inputs <= PIECES_MOST_INPUTS
                   : out == NULL || PyArray_IS_C_CONTIGUOUS(out) || PyArray_IS_F_CONTIGUOUS(out);
    if (!suits || (out != NULL && !(array_is_injective(out) && output_is_independent(call)))) {
        return;
    }
    if (has_kernel) {
        plan->way = AXES;
    } else {
        plan->n = operands_size(call->array, call->table->inputs + 1);
        plan->threads = ranges_threads(&row->loop->engine, plan->n);
        plan->way = plan->n == 0 ? LEFT_TO_NUMPY : plan->threads > 1 ? RANGES : WHOLE;
    }
}

/* The output, a new reference; NULL with an exception. */
static PyArrayObject *output_of(const struct ufunc_call *call, struct call_plan *plan)
{
    const int inputs = call->table->inputs;
    PyArrayObject *out = call->array[inputs];
    if (out != NULL) {
        return (PyArrayObject *)Py_NewRef((PyObject *)out);
    }
    out = operands_new_output(call, PyArray_NDIM(plan->shape), PyArray_DIMS(plan->shape),
                              plan->order == NPY_ARRAY_F_CONTIGUOUS);
    if (out != NULL) {
        plan->data[inputs] = PyArray_DATA(out);
    }
    return out;
}

static PyObject *run_at_once(const struct ufunc_call *call, const struct call_plan *plan,
                             PyArrayObject *out)
{
    if (errors_raised_by_kernel() != 0) {
        feclearexcept(ERRORS_OF_NUMPY);
    }
    plan->kernel(plan->data, plan->step, plan->n);
    const int raised = errors_raised_by_kernel();
    return raised == 0 ? (PyObject *)out
                       : errors_finish(call->table->name, (PyObject *)out, raised);
}

static PyObject *run_one_loop(const struct ufunc_call *call, const struct call_plan *plan,
                              PyArrayObject *out)
{
    struct elementwise *engine = &call->row->loop->engine;
    errors_clear();
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(plan->n);
    if (plan->is_tiny) {
        engine->function((char **)plan->data, &plan->n, plan->step, engine->function_data);
    } else {
        struct failure failure = {.threads_run = false};
        struct elementwise_plan work = {
            .loop = engine,
            .output_is_new = call->array[call->table->inputs] == NULL,
            .hook_data = &failure,
            .data = plan->data,
            .step = plan->step,
            .n = plan->n,
        };
        elementwise_plan_kernel(&work);
        elementwise_run(&work);
    }
    NPY_END_THREADS;
    return errors_finish(call->table->name, (PyObject *)out, errors_raised());
}

/* With operands of its own, which take room for many axes. */
static __attribute__((noinline)) bool run_one_axis(const struct ufunc_call *call,
                                                   struct call_plan *plan, PyObject **result)
{
    const int operands = call->table->inputs + 1;
    struct failure failure = {.threads_run = false};
    struct nested nested;
    PyArrayObject *out = output_of(call, plan);
    if (out == NULL) {
        *result = NULL;
        return true;
    }
    nested.hook_data = &failure;
    nested.axes = 1;
    nested.axis[0].n = plan->n;
    for (int op = 0; op < operands; op++) {
        nested.data[op] = plan->data[op];
        nested.axis[0].step[op] = plan->step[op];
    }
    if (call->mask != NULL) {
        nested.data[operands] = PyArray_DATA(call->mask);
        nested.axis[0].step[operands] = sizeof(npy_bool);
    }
    if (nested_call_run(call, &nested, out, result)) {
        return true;
    }
    Py_DECREF(out);
    return false;
}

/* Also computes a call that began on a device and that the processor has to do. */
static bool offload_one_loop(const struct ufunc_call *call, struct call_plan *plan,
                             struct elementwise_offload *offload, PyObject **result)
{
    struct elementwise_work *work = &offload->task.work;
    PyArrayObject *out = output_of(call, plan);
    int raised;
    *result = NULL;
    if (out == NULL) {
        return true;
    }
    work->axes = 1;
    work->axis[0].n = plan->n;
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        work->axis[0].step[op] = plan->step[op];
    }
    for (int i = 0; i < ELEMENTWISE_INPUTS; i++) {
        elementwise_offload_input(call, i, plan->data[i], offload);
    }
    work->at[ELEMENTWISE_INPUTS] = device_address_of(plan->data[ELEMENTWISE_INPUTS]);
    *result = elementwise_offload_run(call, out, offload, &raised)
                  ? errors_finish(call->table->name, (PyObject *)out, raised)
              : plan->way == AT_ONCE ? run_at_once(call, plan, out)
                                     : run_one_loop(call, plan, out);
    return true;
}

/* With a plan of its own: that of other calls stays in registers. */
static __attribute__((noinline)) bool offload(const struct ufunc_call *call, PyObject **result)
{
    struct call_plan plan;
    make_plan(call, &plan);
    struct elementwise_offload to_device;
    PyArrayObject *out = call->array[ELEMENTWISE_INPUTS];
    const bool is_one_loop = plan.way == AT_ONCE || plan.way == ONE_LOOP;
    const bool fits =
        is_one_loop || out == NULL || (array_is_injective(out) && output_is_independent(call));
    const npy_intp n = is_one_loop ? plan.n : operands_size(call->array, ELEMENTWISE_OPERANDS);
    if (!elementwise_offload_begin(call, n, !fits, &to_device)) {
        return false;
    }
    return is_one_loop ? offload_one_loop(call, &plan, &to_device, result)
                       : axes_run_on_device(call, &to_device, result);
}

bool elementwise_call(const struct ufunc_call *call, PyObject **result)
{
    if (elementwise_offload_is_possible() && call->table->device_op >= 0 && offload(call, result)) {
        return true;
    }
    struct call_plan plan;
    make_plan(call, &plan);
    if (call->row->loop->engine.allows_threads != NULL && PyErr_Occurred()) {
        *result = NULL; /* a signal handler raised while it was asked */
        return true;
    }
    PyArrayObject *out;
    bool done;
    switch (plan.way) {
    case LEFT_TO_NUMPY:
        return false;
    case AT_ONCE:
    case ONE_LOOP:
        elementwise_calls.one_loop++;
        out = output_of(call, &plan);
        *result = out == NULL           ? NULL
                  : plan.way == AT_ONCE ? run_at_once(call, &plan, out)
                                        : run_one_loop(call, &plan, out);
        return true;
    case ONE_AXIS:
        done = run_one_axis(call, &plan, result);
        elementwise_calls.nested += done;
        return done;
    case AXES:
        done = axes_run(call, result);
        elementwise_calls.nested += done;
        return done;
    case RANGES:
        if (iterator_run_ranges(call, plan.n, plan.threads, result)) {
            elementwise_calls.ranged++;
            return true;
        }
        break;
    case WHOLE:
        break;
    }
    done = iterator_run_whole(call, plan.n, result);
    elementwise_calls.whole += done;
    return done;
}
