/* NumPy copies the first element of each segment to the result, and calls the inner loop for the others:
 * along the axis, whatever the layout, with a whole copy of what is to be cast. */
#include "reduceat_call.h"

#include "errors.h"
#include "operands.h"
#include "policy_in_use.h"
#include "reduction_plan.h"

#include "engine/reduction_cutoffs.h"
#include "engine/segments.h"
#include "threads/limit.h"

#include <string.h>

/* One call, until its result exists. */
struct reduceat_plan {
    struct reduction_arguments arguments;
    struct reduction_plan reduction; /* kernel, conversion, type, steps of the output */
    int axis;
    bool has_kernel; /* of ours; NumPy's own loops gain by threads alone */
    PyArrayObject *indices;
    struct segments segments;
};

/* ---- arguments ---- */

/* Those of accumulate but for the indices. */
static bool read_arguments(struct reduceat_plan *plan, PyObject *const *args, Py_ssize_t count,
                           PyObject *keywords)
{
    enum { MOST = 5 }; /* array, indices, axis, dtype, out */
    const Py_ssize_t named = keywords != NULL ? PyTuple_GET_SIZE(keywords) : 0;
    PyObject *others[MOST];
    if (count < 2 || count + named > MOST) {
        return false;
    }
    others[0] = args[0];
    memcpy(others + 1, args + 2, (size_t)(count + named - 2) * sizeof *others);
    if (!reduction_arguments_read(&plan->arguments, ARGUMENTS_OF_ACCUMULATE, others, count - 1,
                                  keywords)) {
        return false;
    }
    plan->axis = reduction_arguments_axis(&plan->arguments);
    return plan->axis >= 0;
}

static bool are_numbers(PyObject *list)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        if (!PyLong_CheckExact(PyList_GET_ITEM(list, i))) {
            return false;
        }
    }
    return true;
}

/* As NumPy converts them; a new reference, or NULL without an exception. */
static PyArrayObject *read_indices(PyObject *object)
{
    const bool is_array = PyArray_CheckExact(object) && PyArray_ISINTEGER((PyArrayObject *)object);
    if (!is_array && !(PyList_CheckExact(object) && are_numbers(object))) {
        return NULL;
    }
    PyObject *indices =
        PyArray_FromAny(object, PyArray_DescrFromType(NPY_INTP), 1, 1, NPY_ARRAY_CARRAY_RO, NULL);
    if (indices == NULL) {
        PyErr_Clear();
    }
    return (PyArrayObject *)indices;
}

/* ---- the output ---- */

/* NumPy's iterator does not step along the axis of the segments: where it is among the others, their order
 * does not tell. */
static int compare_lines(const void *context, int axis, int later)
{
    const struct reduceat_plan *plan = context;
    PyArrayObject *array = plan->arguments.array;
    const npy_intp step = array_step(array, axis), other = array_step(array, later);
    if (axis == plan->axis || later == plan->axis || step == 0 || other == 0) {
        return 0;
    }
    return Py_ABS(other) <= Py_ABS(step) ? -1 : 1;
}

static npy_intp results_along(const struct reduceat_plan *plan, int axis)
{
    return axis == plan->axis ? PyArray_DIM(plan->indices, 0)
                              : PyArray_DIM(plan->arguments.array, axis);
}

static bool accept_given(struct reduceat_plan *plan)
{
    PyArrayObject *out = (PyArrayObject *)plan->arguments.out, *array = plan->arguments.array;
    if (!reduction_may_write_to(plan->arguments.out, plan->reduction.type) ||
        PyArray_NDIM(out) != plan->arguments.ndim) {
        return false;
    }
    for (int axis = 0; axis < plan->arguments.ndim; axis++) {
        const npy_intp n = results_along(plan, axis);
        if (PyArray_DIM(out, axis) != n || (n > 1 && PyArray_STRIDE(out, axis) == 0)) {
            return false;
        }
        plan->reduction.out_step[axis] = PyArray_STRIDE(out, axis);
    }
    const struct extent written = array_extent(out);
    return !extents_meet(written, array_extent(array)) &&
           !extents_meet(written, array_extent(plan->indices));
}

static void lay_out_new(struct reduceat_plan *plan, const int order[])
{
    npy_intp step = (npy_intp)plan->reduction.reduction.out_size;
    for (int i = 0; i < plan->arguments.ndim; i++) {
        plan->reduction.out_step[order[i]] = step;
        step *= results_along(plan, order[i]);
    }
}

static PyObject *new_output(const struct reduceat_plan *plan)
{
    npy_intp dims[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    for (int axis = 0; axis < plan->arguments.ndim; axis++) {
        dims[axis] = results_along(plan, axis);
        steps[axis] = plan->reduction.out_step[axis];
    }
    return PyArray_New(&PyArray_Type, plan->arguments.ndim, dims, plan->reduction.type, steps, NULL,
                       0, 0, NULL);
}

/* ---- the plan ---- */

/* Joins the axes that lines lie along, the fastest first; false if too many are left. */
static bool join_lines(struct reduceat_plan *plan, const int order[])
{
    PyArrayObject *array = plan->arguments.array;
    struct axes *kept = &plan->segments.kept;
    kept->count = 0;
    for (int i = 0; i < plan->arguments.ndim; i++) {
        const int axis = order[i];
        const struct axis next = {PyArray_DIM(array, axis), PyArray_STRIDE(array, axis),
                                  plan->reduction.out_step[axis]};
        if (axis != plan->axis && !axes_join(kept, next)) {
            return false;
        }
    }
    return true;
}

/* Of NumPy's loop, for a segment, on average. `python benchmarks/random_calls.py` */
enum { LEAST_CALL_ELEMENTS = 8 };

/* Whether segments are reduced by kernels, which is known but for their lengths. */
static bool make_plan(struct reduceat_plan *plan, const struct reduction_op *op)
{
    PyArrayObject *array = plan->arguments.array;
    int order[NPY_MAXDIMS];
    plan->reduction.arguments = &plan->arguments;
    const npy_intp count = PyArray_DIM(plan->indices, 0);
    /* A call of NumPy's loop for each of a few elements costs the same on one thread, and threads more. */
    const bool are_short = !op->widens && policy_in_use.threshold == 0 &&
                           PyArray_DIM(array, plan->axis) / LEAST_CALL_ELEMENTS < count;
    if (!array_is_plain(array) || count == 0 || are_short ||
        !reduction_find_kernel(&plan->reduction, op) ||
        /* What ends at the first true or false element takes NumPy no time, or all of it. */
        plan->reduction.reduction.kernel->final >= 0) {
        return false;
    }
    axes_sort(plan->arguments.ndim, order, compare_lines, plan);
    if (plan->arguments.out == NULL) {
        lay_out_new(plan, order);
    } else if (!accept_given(plan)) {
        return false;
    }
    plan->has_kernel = op->widens;
    plan->segments = (struct segments){
        .policy = &policy_in_use,
        .kernel = plan->reduction.reduction.kernel,
        .data = PyArray_BYTES(array),
        .n = PyArray_DIM(array, plan->axis),
        .step = PyArray_STRIDE(array, plan->axis),
        .indices = PyArray_DATA(plan->indices),
        .count = count,
        .out_step = plan->reduction.out_step[plan->axis],
        .conversion = plan->reduction.reduction.conversion,
        .out_size = plan->reduction.reduction.out_size,
    };
    return join_lines(plan, order);
}

/* ---- carried out ---- */

/* Whether it has been done; if not, there may be an exception. */
static bool compute(struct reduceat_plan *plan, PyObject *out)
{
    NPY_BEGIN_THREADS_DEF;
    plan->segments.out = PyArray_BYTES((PyArrayObject *)out);
    NPY_BEGIN_THREADS_THRESHOLDED(PyArray_SIZE(plan->arguments.array));
    const struct segment_lengths lengths = segments_measure(&plan->segments);
    errors_clear();
    plan->segments.threads = segments_threads(&plan->segments, &lengths);
    const bool gains = plan->has_kernel || plan->segments.threads > 1;
    const bool computed =
        lengths.are_within && gains && segments_compute(&plan->segments, &lengths);
    const int raised = errors_raised();
    NPY_END_THREADS;
    return computed && errors_report("reduceat", raised) == 0;
}

static PyObject *run(struct reduceat_plan *plan, const struct reduction_op *op)
{
    if (!make_plan(plan, op)) {
        return NULL;
    }
    PyObject *given = plan->arguments.out;
    PyObject *out = given != NULL ? Py_NewRef(given) : new_output(plan);
    if (out != NULL && !compute(plan, out)) {
        Py_CLEAR(out);
    }
    return out;
}

/* Whether one thread takes no longer than several would, along contiguous lines. */
static bool are_short_lines(const struct reduceat_plan *plan, PyObject *indices)
{
    PyArrayObject *array = plan->arguments.array;
    const npy_intp item = PyArray_ITEMSIZE(array), n = PyArray_DIM(array, plan->axis);
    const npy_intp count = PyArray_Check(indices)       ? PyArray_SIZE((PyArrayObject *)indices)
                           : PyList_CheckExact(indices) ? PyList_GET_SIZE(indices)
                                                        : n;
    return PyArray_STRIDE(array, plan->axis) == item &&
           PyArray_SIZE(array) / n * (n * item + count * REDUCTION_SEGMENT_BYTES) <
               REDUCTION_THREADS_BYTES;
}

/* Whether kernels, or threads, can gain anything. */
static bool is_worth_a_plan(const struct reduceat_plan *plan, const struct reduction_op *op,
                            PyObject *indices)
{
    PyArrayObject *array = plan->arguments.array;
    const npy_intp forced = policy_in_use.threshold, n = PyArray_SIZE(array);
    if (n == 0 || (!op->widens && forced == 0 &&
                   (n < REDUCTION_THREADS_ELEMENTS || threads_limit().threads == 1 ||
                    are_short_lines(plan, indices)))) {
        return false;
    }
    const npy_intp pays = op->widens ? reduction_short_loop() : forced;
    const npy_intp least = forced != 0 ? 2 : REDUCTION_SEGMENTED_AXIS;
    return n >= pays && PyArray_DIM(array, plan->axis) >= least;
}

PyObject *reduceat_call(const struct reduction_op *op, PyObject *const *args, Py_ssize_t count,
                        PyObject *keywords)
{
    struct reduceat_plan plan;
    if (op == NULL || !read_arguments(&plan, args, count, keywords) ||
        !is_worth_a_plan(&plan, op, args[1])) {
        return NULL;
    }
    plan.indices = read_indices(args[1]);
    PyObject *result = plan.indices != NULL ? run(&plan, op) : NULL;
    Py_XDECREF((PyObject *)plan.indices);
    return result;
}
