/* Plans reductions of whole arrays in the axis order of NumPy's iterator, so that new results have
 * NumPy's strides. Unusual calls are left to NumPy. */
#include "reduction_plan.h"

#include "axes.h"
#include "dtypes.h"
#include "engine/reduction_cutoffs.h"
#include "kernels/kernels.h"
#include "numpy_private.h"
#include "operands.h"
#include "policy_in_use.h"
#include "reduction_loop.h"

#include <string.h>

struct reduction_op reduction_op_add = {.name = "add"};
struct reduction_op reduction_op_multiply = {.name = "multiply"};

void reduction_plan_initialize(void)
{
    struct reduction_op *const ops[] = {&reduction_op_add, &reduction_op_multiply};
    for (int i = 0; i < 2; i++) {
        for (int type = 0; type < DTYPES; type++) {
            ops[i]->of_type[type] = reduction_of_type(ops[i]->name, type);
        }
    }
}

/* ---- operands ---- */

static bool is_plain(PyArrayObject *array)
{
    return PyArray_ISALIGNED(array) && PyArray_ISNOTSWAPPED(array) &&
           PyDataType_METADATA(PyArray_DESCR(array)) == NULL;
}

/* Whether an axis has stride 0: NumPy's iterator then sums in another order. */
static bool is_broadcast(PyArrayObject *array)
{
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        if (PyArray_DIM(array, i) > 1 && PyArray_STRIDE(array, i) == 0) {
            return true;
        }
    }
    return false;
}

/* The type of a sum: NumPy widens integers to the size of long. */
static int type_of_result(int type)
{
    if (!dtype_is_integer(type)) {
        return type;
    }
    const bool is_short = type != NPY_LONGLONG && type != NPY_ULONGLONG;
    return !is_short ? type : dtype_of(type).kind == 'u' ? NPY_ULONG : NPY_LONG;
}

static bool dtype_is(PyObject *dtype, int type)
{
    return dtype == NULL ||
           (PyArray_DescrCheck(dtype) && ((PyArray_Descr *)dtype)->type_num == type &&
            PyArray_ISNBO(((PyArray_Descr *)dtype)->byteorder) &&
            PyDataType_METADATA((PyArray_Descr *)dtype) == NULL);
}

/* ---- axes ---- */

static npy_intp size_of_step(PyArrayObject *array, int axis)
{
    const npy_intp step = PyArray_DIM(array, axis) != 1 ? PyArray_STRIDE(array, axis) : 0;
    return step < 0 ? -step : step;
}

static int turn_of(const void *context, int axis, int later)
{
    PyArrayObject *array = (PyArrayObject *)context;
    const npy_intp outer = size_of_step(array, axis), inner = size_of_step(array, later);
    return outer == 0 || inner == 0 ? 0 : inner <= outer ? -1 : 1;
}

/* Takes over the steps of a given output if it has the dtype and shape of the result, and lies elsewhere
 * in memory. */
static bool accept_out(struct reduction_plan *plan, PyArrayObject *array, PyObject *object)
{
    const struct reduction_arguments *arguments = plan->arguments;
    PyArrayObject *out = (PyArrayObject *)object;
    if (!PyArray_CheckExact(object) || PyArray_TYPE(out) != plan->type || !is_plain(out) ||
        !private_is_writable(out) || PyArray_CHKFLAGS(out, NPY_ARRAY_WRITEBACKIFCOPY)) {
        return false;
    }
    int at = 0;
    for (int axis = 0; axis < arguments->ndim; axis++) {
        if (arguments->reduced[axis] && !arguments->keepdims) {
            continue;
        }
        const npy_intp n = arguments->reduced[axis] ? 1 : PyArray_DIM(array, axis);
        if (at == PyArray_NDIM(out) || PyArray_DIM(out, at) != n ||
            (n > 1 && PyArray_STRIDE(out, at) == 0)) {
            return false;
        }
        plan->out_step[axis] = PyArray_STRIDE(out, at++);
    }
    return at == PyArray_NDIM(out) && !extents_meet(array_extent(out), array_extent(array));
}

/* The steps of a new result, in the order of the array's axes. */
static void lay_out(struct reduction_plan *plan, PyArrayObject *array, const int order[])
{
    npy_intp step = (npy_intp)plan->reduction.out_size;
    for (int i = 0; i < plan->arguments->ndim; i++) {
        const int axis = order[i];
        plan->out_step[axis] = step;
        step *= plan->arguments->reduced[axis] ? 1 : PyArray_DIM(array, axis);
    }
}

/* Axes joined into one: consecutive in memory. */
struct joined_axis {
    npy_intp n, step, out_step;
};

/* Appends an axis that is faster than those before; false if there are three that cannot be joined. */
static bool append_axis(struct joined_axis axes[2], int *count, struct joined_axis axis)
{
    if (axis.n == 1) {
        return true;
    }
    struct joined_axis *last = *count > 0 ? &axes[*count - 1] : NULL;
    if (last != NULL && last->step == axis.step * axis.n &&
        last->out_step == axis.out_step * axis.n) {
        last->n *= axis.n;
        last->step = axis.step;
        last->out_step = axis.out_step;
        return true;
    }
    if (*count == 2) {
        return false;
    }
    axes[(*count)++] = axis;
    return true;
}

/* Joins axes to at most two kept and two reduced ones; false if that is impossible. */
static bool join_axes(struct reduction_plan *plan, PyArrayObject *array, const int order[])
{
    const bool *is_reduced = plan->arguments->reduced;
    struct joined_axis kept[2], reduced[2];
    int kept_count = 0, reduced_count = 0;
    const char *data = PyArray_BYTES(array);
    for (int i = plan->arguments->ndim - 1; i >= 0; i--) {
        const int axis = order[i];
        struct joined_axis next = {PyArray_DIM(array, axis), PyArray_STRIDE(array, axis),
                                   plan->out_step[axis]};
        if (is_reduced[axis]) {
            next.out_step = 0;
            if (next.step < 0) {
                data += (next.n - 1) * next.step;
                next.step = -next.step;
            }
        }
        if (!(is_reduced[axis] ? append_axis(reduced, &reduced_count, next)
                               : append_axis(kept, &kept_count, next))) {
            return false;
        }
    }
    struct reduction *reduction = &plan->reduction;
    const struct joined_axis one = {1, 0, 0};
    const struct joined_axis outer = kept_count == 2 ? kept[0] : one;
    const struct joined_axis inner = kept_count > 0 ? kept[kept_count - 1] : one;
    const struct joined_axis slow = reduced_count == 2 ? reduced[0] : one;
    reduction->data = data;
    reduction->outer = outer.n, reduction->outer_step = outer.step;
    reduction->inner = inner.n, reduction->inner_step = inner.step;
    reduction->groups = slow.n, reduction->group_step = slow.step;
    reduction->n = reduced_count > 0 ? reduced[reduced_count - 1].n : 1;
    reduction->step = reduced_count > 0 ? reduced[reduced_count - 1].step
                                        : (npy_intp)reduction->kernel->item_size;
    reduction->out_outer_step = outer.out_step, reduction->out_inner_step = inner.out_step;
    return true;
}

/* ---- the rules ---- */

/* Why NumPy's loop is faster for the joined axes; NULL if it is not. */
static const char *why_slow(const struct reduction *reduction)
{
    const npy_intp item = (npy_intp)reduction->kernel->item_size;
    const char kind = reduction->kernel->kind;
    if (reduction->groups * reduction->n == 1) {
        return "a copy";
    }
    if (reduction->groups > 1 && reduction->n * item < REDUCTION_ROW_BYTES) {
        return "short rows of reduced axes that are not one in memory";
    }
    if ((kind == 'f' || kind == 'c') && reduction->groups == 1 &&
        reduction->n < REDUCTION_STRIDED_ROWS &&
        reduction->inner >= REDUCTION_STRIDED_ROW_ELEMENTS && reduction->inner_step != item) {
        return "few long rows of elements that lie apart";
    }
    return NULL;
}

/* Why not by kernels; NULL if the plan for them is complete. */
static const char *why_not_kernels(struct reduction_plan *plan, const struct reduction_op *op,
                                   const int order[])
{
    PyArrayObject *array = plan->arguments->array;
    const int type = PyArray_TYPE(array);
    struct reduction *reduction = &plan->reduction;
    reduction->kernel = op != NULL && type >= 0 && type < DTYPES ? op->of_type[type] : NULL;
    if (reduction->kernel == NULL) {
        return "no kernel";
    }
    if (PyArray_SIZE(array) == 0) {
        return "no elements";
    }
    if (!is_plain(array)) {
        return "not aligned, of another byte order, or with metadata";
    }
    if (is_broadcast(array)) {
        return "broadcast elements";
    }
    plan->type = type_of_result(type);
    if (!dtype_is(plan->arguments->dtype, plan->type)) {
        return "dtype=";
    }
    reduction->out_size = dtype_of(plan->type).size;
    lay_out(plan, array, order);
    if (plan->arguments->out != NULL && !accept_out(plan, array, plan->arguments->out)) {
        return "out=";
    }
    return join_axes(plan, array, order) ? why_slow(reduction) : "axes that are not one in memory";
}

/* The most elements that one call of an inner loop gets when NumPy reduces: its iterator goes along the
 * fastest axes, as far as all are reduced, or none is. */
static npy_intp longest_loop(const struct reduction_arguments *arguments, const int order[])
{
    npy_intp n = 1;
    for (int i = 0;
         i < arguments->ndim && arguments->reduced[order[i]] == arguments->reduced[order[0]]; i++) {
        n *= PyArray_DIM(arguments->array, order[i]);
    }
    return n;
}

/* Whether the call may be passed to NumPy's ufunc: a built-in dtype, and no argument that could
 * tell which ufunc it is. */
static bool is_numpys(const struct reduction_arguments *arguments)
{
    const int type = PyArray_TYPE(arguments->array);
    return type >= 0 && type < DTYPES && arguments->dtype == NULL &&
           (arguments->out == NULL || PyArray_CheckExact(arguments->out));
}

static npy_intp short_loop(void)
{
    const npy_intp forced = policy_in_use.threshold;
    return forced != 0 ? Py_MIN(forced, REDUCTION_LOOP_ELEMENTS) : REDUCTION_LOOP_ELEMENTS;
}

void reduction_plan_reduce(struct reduction_plan *plan, const struct reduction_op *op,
                           const struct reduction_arguments *arguments)
{
    int order[NPY_MAXDIMS];
    plan->arguments = arguments;
    plan->reduction.policy = &policy_in_use;
    plan->reduction.onto = false;
    axes_sort(arguments->ndim, order, turn_of, arguments->array);
    plan->reason = why_not_kernels(plan, op, order);
    if (plan->reason == NULL) {
        plan->way = REDUCE_BY_KERNELS;
        return;
    }
    /* Inner loops below the threshold cost less than the checks of ours; and a loop that reduces
     * to one result runs on one thread unless there is a kernel. */
    const bool one_by_one = plan->reduction.kernel == NULL && arguments->reduced[order[0]];
    const bool gains = longest_loop(arguments, order) >= short_loop() && !one_by_one;
    plan->way = gains || !is_numpys(arguments) ? REDUCE_BY_LOOPS : REDUCE_BY_NUMPY;
}

enum reduction_way reduction_plan_accumulate(const struct reduction_op *op,
                                             const struct reduction_arguments *arguments)
{
    if (!is_numpys(arguments)) {
        return REDUCE_BY_LOOPS;
    }
    PyArrayObject *array = arguments->array;
    int order[NPY_MAXDIMS];
    axes_sort(arguments->ndim, order, turn_of, array);
    const npy_intp pays =
        arguments->reduced[order[0]] ? short_loop() : REDUCTION_ACCUMULATED_COLUMN_ELEMENTS;
    bool is_long = false;
    for (int axis = 0; axis < arguments->ndim; axis++) {
        is_long = is_long || (arguments->reduced[axis] && PyArray_DIM(array, axis) >= pays);
    }
    /* A running sum is sequential: only a kernel that accumulates can use several threads. */
    const struct reduction_kernel *kernel =
        op != NULL ? op->of_type[type_of_result(PyArray_TYPE(array))] : NULL;
    return is_long && kernel != NULL && kernel->accumulate != NULL ? REDUCE_BY_LOOPS
                                                                   : REDUCE_BY_NUMPY;
}
