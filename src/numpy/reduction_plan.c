/* Plans reductions of whole arrays in the axis order of NumPy's iterator, so that new results have
 * NumPy's strides. Unusual calls are left to NumPy. */
#include "reduction_plan.h"

#include "dtypes.h"
#include "engine/reduction_cutoffs.h"
#include "kernels/kernels.h"
#include "numpy_private.h"
#include "policy_in_use.h"
#include "reduction_loop.h"
#include "threads/limit.h"
#include "threads/region.h"

#include <stdlib.h>
#include <string.h>

/* Older NumPys add in another order, which our inner loops have, too, since NumPy calls them. */
static bool follows_numpys_order;

struct reduction_op reduction_op_add = {.name = "add", .widens = true};
struct reduction_op reduction_op_multiply = {.name = "multiply", .widens = true};

void reduction_plan_initialize(void)
{
    follows_numpys_order = PyArray_GetNDArrayCFeatureVersion() >= API_OF_NUMPY_2_3;
    struct reduction_op *const ops[] = {&reduction_op_add, &reduction_op_multiply};
    for (int i = 0; i < 2; i++) {
        for (int type = 0; type < DTYPES; type++) {
            ops[i]->of_type[type] = reduction_of_type(ops[i]->name, type);
        }
    }
}

/* ---- operands ---- */

/* Whether an axis has stride 0, but for some: NumPy's iterator then sums in another order. */
static bool is_broadcast(PyArrayObject *array, const bool but_for[])
{
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        if (PyArray_DIM(array, i) > 1 && PyArray_STRIDE(array, i) == 0 &&
            (but_for == NULL || !but_for[i])) {
            return true;
        }
    }
    return false;
}

/* Whether what an axis repeats is reduced once, bools twice: loops make those true that are neither 0 nor 1. Not of
 * floats, whose order decides between zeros. */
static bool skips_repeated(const struct reduction_kernel *kernel)
{
    return kernel->repeats && !kernel->zeros_tie;
}

/* NULL if there is none: if it may lose more than the last bits, for example. */
static convert_addends *find_conversion(const struct reduction_kernel *kernel, int type)
{
    const struct conversion_kernel *row = kernel->conversions;
    const struct dtype dtype = dtype_of(type);
    while (row != NULL && row->convert != NULL &&
           (row->kind != dtype.kind || row->item_size != dtype.size)) {
        row++;
    }
    return row != NULL ? row->convert : NULL;
}

static const struct reduction_kernel *kernel_of(const struct reduction_op *op, int type)
{
    return op != NULL && type >= 0 && type < DTYPES ? op->of_type[type] : NULL;
}

/* Integers are added modulo 2^64, so their kernel is that of the operand. */
bool reduction_find_kernel(struct reduction_plan *plan, const struct reduction_op *op)
{
    const int type = PyArray_TYPE(plan->arguments->array);
    if (op == NULL || type < 0 || type >= DTYPES) {
        return false;
    }
    plan->type = reduction_arguments_type(plan->arguments, op->widens ? dtype_of_sum(type) : type);
    if (plan->type < 0) {
        return false;
    }
    const bool is_integer = op->widens && dtype_is_integer(plan->type) && dtype_is_integer(type);
    const bool casts = !is_integer && type != plan->type;
    struct reduction *reduction = &plan->reduction;
    reduction->kernel = kernel_of(op, is_integer ? type : plan->type);
    if (reduction->kernel == NULL || (op->widens && plan->type == NPY_BOOL) ||
        (!reduction->kernel->any_order && !follows_numpys_order)) {
        return false;
    }
    reduction->conversion = (struct conversion){
        .from_size = dtype_of(type).size,
        .to_size = reduction->kernel->item_size,
        .convert = casts ? find_conversion(reduction->kernel, type) : NULL,
    };
    reduction->out_size = dtype_of(plan->type).size;
    return !casts || reduction->conversion.convert != NULL;
}

/* ---- axes ---- */

static int compare_axes(const void *context, int axis, int later)
{
    const struct reduction_plan *plan = context;
    PyArrayObject *array = plan->arguments->array;
    const int turn = axes_turn_with(0, array_step(array, axis), array_step(array, later));
    return axes_turn_with(turn, plan->out_step[axis], plan->out_step[later]);
}

bool reduction_may_write_to(PyObject *object, int type)
{
    PyArrayObject *out = (PyArrayObject *)object;
    return PyArray_CheckExact(object) && PyArray_TYPE(out) == type && array_is_plain(out) &&
           private_is_writable(out) && !PyArray_CHKFLAGS(out, NPY_ARRAY_WRITEBACKIFCOPY);
}

/* Takes over the steps of a given output if it has the dtype and shape of the result, and lies elsewhere
 * in memory. */
static bool accept_out(struct reduction_plan *plan, PyArrayObject *array, PyObject *object)
{
    const struct reduction_arguments *arguments = plan->arguments;
    PyArrayObject *out = (PyArrayObject *)object;
    if (!reduction_may_write_to(object, plan->type) ||
        extents_meet(array_extent(out), array_extent(array))) {
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
        plan->out_step[axis] = n > 1 ? PyArray_STRIDE(out, at) : 0;
        at++;
    }
    return at == PyArray_NDIM(out);
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

/* Joins axes that are one in memory, the fastest first; false if too many are left. Where the order does not matter,
 * elements are reduced by ascending addresses, so that more are one; where repeated ones change nothing, once. */
static bool join_axes(struct axes *joined, struct reduction_plan *plan, const int order[])
{
    const struct reduction_arguments *arguments = plan->arguments;
    plan->reduction.data = PyArray_BYTES(arguments->array);
    joined->count = 0;
    for (int i = 0; i < arguments->ndim; i++) {
        const int axis = order[i];
        const bool is_reduced = arguments->reduced[axis];
        struct axis next = {PyArray_DIM(arguments->array, axis),
                            PyArray_STRIDE(arguments->array, axis),
                            is_reduced ? 0 : plan->out_step[axis]};
        if (is_reduced && next.step < 0 && plan->reduction.kernel->any_order) {
            plan->reduction.data += (next.n - 1) * next.step;
            next.step = -next.step;
        }
        if (is_reduced && next.step == 0 && skips_repeated(plan->reduction.kernel)) {
            next.n = Py_MIN(next.n, plan->reduction.kernel->kind == 'b' ? 2 : 1);
        }
        if (!axes_join(joined, next)) {
            return false;
        }
    }
    return true;
}

/* ---- inner calls ---- */

/* How NumPy's iterator divides joined axes into inner calls, from NumPy 2.3 on (in its source:
 * npyiter_find_buffering_setup). It weighs copies to its buffers against the number of calls. */
struct inner_calls {
    int axes;        /* of one call */
    npy_intp length; /* of one call along the last of them */
};

/* State of an operand while axes are added to the calls. */
struct operand_run {
    int axes; /* that are one run of memory, the fastest ones */
    bool is_buffered;
};

static bool continues_run(const struct axis *before, const struct axis *axis, bool of_out)
{
    return of_out ? before->out_step * before->n == axis->out_step
                  : before->step * before->n == axis->step;
}

/* A mask, whose bools lie as the elements do, is copied whenever these are. */
static struct inner_calls find_inner_calls(const struct axes *axes, bool casts, bool is_masked,
                                           npy_intp buffer)
{
    struct operand_run out = {1, false}, in = {1, casts};
    int cost = casts ? 2 : 1, best = 0, best_cost = cost, cut = 0;
    npy_intp size = axes->axis[0].n, best_size = size, core = 1;
    for (int i = 1; i < axes->count && cut == 0 && (size < buffer || cost == 1); i++) {
        const struct axis *before = &axes->axis[i - 1], *axis = &axes->axis[i];
        if (out.axes == i && continues_run(before, axis, true)) {
            out.axes++;
        } else {
            cost += out.axes == i;
            cut = axis->out_step == 0 || before->out_step == 0 ? i : 0;
        }
        if (in.axes == i && continues_run(before, axis, false)) {
            in.axes++;
        } else {
            cost += in.axes == i && !casts ? 1 + is_masked : 0;
        }
        const npy_intp inner = size;
        size *= axis->n;
        const npy_intp counted = size > buffer && cost > 1 ? buffer : size;
        if (cost * best_size <= best_cost * counted) {
            best = i, best_cost = cost, best_size = size, core = inner;
        }
    }
    if (cut > 0 && best == cut) { /* a call for each index along the axis that is cut */
        return (struct inner_calls){best, axes->axis[best - 1].n};
    }
    const bool is_buffered = casts || in.axes <= best || out.axes <= best;
    const npy_intp length = axes->axis[best].n, fit = Py_MAX(1, buffer / core);
    return (struct inner_calls){best + 1, is_buffered ? Py_MIN(fit, length) : length};
}

static void append(struct axes *axes, const struct axis *axis)
{
    axes->axis[axes->count++] = *axis;
}

/* Divides joined axes into those of an inner call, those along which it is repeated, and kept ones. */
static void divide_axes(struct reduction *reduction, const struct axes *joined, bool is_masked)
{
    struct inner_calls calls = {joined->axis[0].out_step == 0, joined->axis[0].n};
    const bool casts = reduction->conversion.convert != NULL;
    /* Where the order does not matter, only short inner axes are worth a copy. */
    const bool is_long =
        reduction->kernel->any_order &&
        joined->axis[0].n * (npy_intp)reduction->kernel->item_size >= REDUCTION_INNER_BYTES;
    if (calls.axes > 0 && !is_long && (casts || joined->count > 1)) {
        calls = find_inner_calls(joined, casts, is_masked, private_buffer_size());
    }
    int reduced = 0;
    for (int i = 0; i < joined->count; i++) {
        reduced += joined->axis[i].out_step == 0;
    }
    if (reduction->kernel->gets_cheaper && !is_long && reduced < joined->count &&
        reduced > calls.axes) {
        /* Results go on from what they are already, not each call from its first element. */
        calls.axes = 0;
    }
    reduction->kept.count = reduction->repeated.count = reduction->inner.count = 0;
    for (int i = 0; i < joined->count; i++) {
        const struct axis *axis = &joined->axis[i];
        append(axis->out_step != 0 ? &reduction->kept
               : i < calls.axes    ? &reduction->inner
                                   : &reduction->repeated,
               axis);
    }
    reduction->inner_call = calls.length;
}

/* ---- the rules ---- */

enum { FEW_ROWS = 3, MANY_ROWS = 64, MOST_COPIED_ROWS = 32 };

/* Why there is no kernel for the operands; NULL if there is one, and the steps of a given output are known. */
static const char *why_not_operands(struct reduction_plan *plan, const struct reduction_op *op)
{
    PyArrayObject *array = plan->arguments->array;
    if (!reduction_find_kernel(plan, op)) {
        return "no kernel";
    }
    if (PyArray_SIZE(array) == 0) {
        return "no elements";
    }
    if (!array_is_plain(array)) {
        return "not aligned, of another byte order, or with metadata";
    }
    if (is_broadcast(array,
                     skips_repeated(plan->reduction.kernel) ? plan->arguments->reduced : NULL)) {
        return "broadcast elements";
    }
    return plan->arguments->out == NULL || accept_out(plan, array, plan->arguments->out) ? NULL
                                                                                         : "out=";
}

/* Whether kernels copy elements, or compute each alone, in less time than NumPy; what is repeated, they copy once. */
static bool copies_faster(const struct reduction_plan *plan)
{
    PyArrayObject *array = plan->arguments->array;
    const struct axes *kept = &plan->reduction.kept;
    const struct reduction_kernel *kernel = plan->reduction.kernel;
    const npy_intp most = !kernel->alone_changes ? REDUCTION_COPIED_BYTES
                          : kernel->kind == 'b'  ? REDUCTION_SHORT_BYTES
                                                 : REDUCTION_COMPUTED_ALONE_BYTES;
    return (PyArray_NBYTES(array) <= most && size_from(kept, 1) <= MOST_COPIED_ROWS) ||
           PyArray_SIZE(array) > size_from(kept, 0);
}

/* Why kernels gain nothing on these axes; NULL if the plan for them is complete. */
static const char *why_not_axes(struct reduction_plan *plan, const struct reduction_op *op,
                                const int order[])
{
    PyArrayObject *array = plan->arguments->array;
    struct axes joined;
    if (plan->arguments->out == NULL) {
        lay_out(plan, array, order);
    }
    if (!join_axes(&joined, plan, order)) {
        return "more axes than kernels take";
    }
    axes_complete(&joined);
    divide_axes(&plan->reduction, &joined, plan->arguments->where != NULL);
    plan->reduction.threads = reduction_threads(&plan->reduction);
    const bool is_short = PyArray_NBYTES(array) < REDUCTION_SHORT_BYTES;
    const npy_intp rows = size_from(&plan->reduction.repeated, 0);
    const bool is_copy = reduction_is_copy(&plan->reduction);
    if (is_copy && !copies_faster(plan)) {
        return "a copy";
    }
    if (is_copy && plan->reduction.kernel->alone_changes) { /* onto the identity */
        memset(&plan->start, 0, sizeof plan->start);
        plan->start.bytes[0] = plan->reduction.kernel->final == 0; /* of bools, `and` */
        plan->has_start = plan->reduction.onto = true;
    }
    if (is_short || is_copy) {
        return NULL; /* what is around the loops takes NumPy longer */
    }
    /* Zeros in the result may take a second pass, and a few rows one more, from where they are combined: one
     * thread gains nothing then; but of a few columns each is one call of the loop. */
    const bool are_columns = plan->reduction.inner.count == 0;
    const bool has_few_rows = !op->widens && are_columns && rows <= FEW_ROWS;
    const bool has_few_columns = are_columns && plan->reduction.kept.count == 1 &&
                                 plan->reduction.kept.axis[0].n <= REDUCTION_FEW_COLUMNS &&
                                 rows >= MANY_ROWS && plan->reduction.out_size > 2;
    const bool ties = plan->reduction.kernel->zeros_tie && !has_few_columns;
    return (ties || has_few_rows) && plan->reduction.threads == 1 ? "one thread" : NULL;
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

/* Whether kernels add faster than NumPy's loops: floats along rows, if none is repeated; integers across them, or one
 * that is. */
static bool adds_faster(const struct reduction_plan *plan, int first)
{
    const struct reduction_kernel *kernel = plan->reduction.kernel;
    const bool along = plan->arguments->reduced[first];
    const bool repeats = array_step(plan->arguments->array, first) == 0;
    return kernel == NULL || (kernel->any_order ? !along || repeats : along && !repeats);
}

/* Whether our inner loops may be faster than NumPy's for so many elements along the innermost axis, `first`: by
 * kernels that add, or by threads. Reductions to one result have threads only where there is a kernel. */
static bool loops_may_gain(const struct reduction_plan *plan, const struct reduction_op *op,
                           int first, npy_intp n)
{
    const bool is_to_one = plan->arguments->reduced[first];
    const struct reduction_kernel *kernel = plan->reduction.kernel;
    if (n < reduction_short_loop() || (is_to_one && kernel == NULL)) {
        return false;
    }
    if ((op != NULL && op->widens && adds_faster(plan, first)) || policy_in_use.threshold != 0) {
        return true;
    }
    return is_to_one ? threads_for(&policy_in_use, n,
                                   REDUCTION_THREADS_BYTES / (npy_intp)kernel->item_size) > 1
                     : threads_limit().threads > 1;
}

/* Whether the call may be passed to NumPy's ufunc: a built-in dtype, and no argument that could
 * tell which ufunc it is. */
static bool is_numpys(const struct reduction_arguments *arguments)
{
    const int type = PyArray_TYPE(arguments->array);
    return type >= 0 && type < DTYPES && reduction_arguments_type(arguments, type) >= 0 &&
           (arguments->out == NULL || PyArray_CheckExact(arguments->out));
}

npy_intp reduction_short_loop(void)
{
    const npy_intp forced = policy_in_use.threshold;
    return forced != 0 ? Py_MIN(forced, REDUCTION_LOOP_ELEMENTS) : REDUCTION_LOOP_ELEMENTS;
}

/* Whether loops get runs of a mask, of which one thread gains nothing. */
static bool is_by_runs(const struct reduction_arguments *arguments)
{
    return arguments->where != NULL && policy_in_use.threshold == 0 && threads_limit().threads == 1;
}

enum reduction_way reduction_way_without_kernels(const struct reduction_arguments *arguments)
{
    return PyArray_SIZE(arguments->array) < reduction_short_loop() || is_by_runs(arguments)
               ? REDUCE_BY_NUMPY
               : REDUCE_BY_LOOPS;
}

bool reduction_is_short(const struct reduction_op *op, PyArrayObject *array)
{
    return array_size(array) < reduction_short_loop() &&
           (kernel_of(op, PyArray_TYPE(array)) == NULL || is_broadcast(array, NULL) ||
            !array_is_plain(array));
}

/* Whether one thread reduces all elements to one, and zeros may tie: why_not_axes() would refuse it in the end. */
static bool is_one_tie(const struct reduction_arguments *arguments, const struct reduction_op *op)
{
    PyArrayObject *array = arguments->array;
    const struct reduction_kernel *kernel = kernel_of(op, PyArray_TYPE(array));
    bool is_one = kernel != NULL && kernel->zeros_tie && arguments->where == NULL &&
                  policy_in_use.threshold == 0 && PyArray_ISONESEGMENT(array) &&
                  PyArray_NBYTES(array) >= REDUCTION_SHORT_BYTES;
    for (int axis = 0; axis < arguments->ndim && is_one; axis++) {
        is_one = arguments->reduced[axis];
    }
    return is_one && threads_for(&policy_in_use, PyArray_SIZE(array),
                                 REDUCTION_THREADS_BYTES / (npy_intp)kernel->item_size) == 1;
}

void reduction_plan_reduce(struct reduction_plan *plan, const struct reduction_op *op,
                           const struct reduction_arguments *arguments)
{
    int order[NPY_MAXDIMS];
    plan->arguments = arguments;
    plan->reduction.policy = &policy_in_use;
    plan->reduction.onto = plan->has_start = false;
    plan->masked.mask = NULL;
    plan->reduction.kernel = NULL;
    const bool is_short = reduction_is_short(op, arguments->array);
    if ((is_short || is_one_tie(arguments, op)) && is_numpys(arguments)) {
        plan->reason = is_short ? "short" : "one thread";
        plan->way = REDUCE_BY_NUMPY;
        return;
    }
    memset(plan->out_step, 0, (size_t)arguments->ndim * sizeof *plan->out_step);
    plan->reason = why_not_operands(plan, op);
    if (plan->reason != NULL && array_size(arguments->array) < reduction_short_loop() &&
        is_numpys(arguments)) {
        plan->way = REDUCE_BY_NUMPY; /* at once, as loops gain nothing in any order of the axes */
        return;
    }
    if (plan->reason == NULL && arguments->where != NULL &&
        plan->reduction.conversion.convert != NULL) {
        plan->reason = "where= and a conversion";
        plan->way = reduction_way_without_kernels(arguments);
        return;
    }
    axes_sort(arguments->ndim, order, compare_axes, plan);
    if (plan->reason == NULL) {
        plan->reason = why_not_axes(plan, op, order);
    }
    if (plan->reason == NULL) {
        plan->way = REDUCE_BY_KERNELS;
        return;
    }
    const bool gains = !is_by_runs(arguments) &&
                       loops_may_gain(plan, op, order[0], longest_loop(arguments, order));
    plan->way = gains || !is_numpys(arguments) ? REDUCE_BY_LOOPS : REDUCE_BY_NUMPY;
}

enum reduction_way reduction_plan_accumulate(const struct reduction_op *op,
                                             const struct reduction_arguments *arguments)
{
    if (!is_numpys(arguments)) {
        return REDUCE_BY_LOOPS;
    }
    PyArrayObject *array = arguments->array;
    if (PyArray_SIZE(array) < reduction_short_loop()) {
        return REDUCE_BY_NUMPY; /* at once: a plan has room for many axes */
    }
    /* A running sum is sequential: only a kernel that accumulates can use several threads. */
    const struct reduction_kernel *kernel = kernel_of(op, dtype_of_sum(PyArray_TYPE(array)));
    if (kernel == NULL || kernel->accumulate == NULL) {
        return REDUCE_BY_NUMPY;
    }
    struct reduction_plan plan = {.arguments = arguments}; /* without steps of an output */
    int order[NPY_MAXDIMS];
    axes_sort(arguments->ndim, order, compare_axes, &plan);
    const npy_intp pays = arguments->reduced[order[0]] ? reduction_short_loop()
                                                       : REDUCTION_ACCUMULATED_COLUMN_ELEMENTS;
    bool is_long = false;
    for (int axis = 0; axis < arguments->ndim; axis++) {
        is_long = is_long || (arguments->reduced[axis] && PyArray_DIM(array, axis) >= pays);
    }
    return is_long ? REDUCE_BY_LOOPS : REDUCE_BY_NUMPY;
}
