/* Plans and computes accumulate: what NumPy's own method is to do is left to it before anything is
 * written. */
#include "accumulate_call.h"

#include "clone.h"
#include "errors.h"
#include "operands.h"
#include "policy_in_use.h"

#include "engine/accumulate_axes.h"
#include "engine/reduction_cutoffs.h"

#include <string.h>

/* What has been decided about a call. */
struct accumulate_plan {
    const struct reduction_arguments *arguments;
    const struct call_row *row; /* of the output's dtype */
    int axis;
    struct accumulated_axes axes;
};

/* ---- dtypes ---- */

/* The type number of the output, as NumPy chooses it; -1: only NumPy knows. */
static int type_of_output(const PyUFuncObject *ufunc, const struct reduction_arguments *arguments)
{
    const int type = PyArray_TYPE(arguments->array);
    if (arguments->out != NULL) {
        const int chosen = reduction_arguments_type(arguments, type);
        const bool is_array = PyArray_CheckExact(arguments->out);
        return is_array && PyArray_TYPE((PyArrayObject *)arguments->out) == chosen ? chosen : -1;
    }
    const bool widens = strcmp(ufunc->name, "add") == 0 || strcmp(ufunc->name, "multiply") == 0;
    return reduction_arguments_type(arguments, widens ? dtype_of_sum(type) : type);
}

/* Whether elements become those of the row's dtype, if by a conversion. */
static bool find_conversion(struct accumulate_plan *plan)
{
    const int from = PyArray_TYPE(plan->arguments->array), to = plan->row->input->type_num;
    const struct dtype source = dtype_of(from), target = dtype_of(to);
    const bool are_bits = dtype_modular_kind(from) == 'i' && dtype_modular_kind(to) == 'i' &&
                          source.size == target.size;
    plan->axes.convert = NULL;
    if (from == to || are_bits) {
        return true;
    }
    /* If a signaling NaN is cast, or a float overflows, NumPy says so, and may raise before it writes. */
    const bool may_raise = (source.kind == 'f' || source.kind == 'c') &&
                           (plan->arguments->out != NULL || target.size < source.size);
    if (to != NPY_BOOL && !may_raise) {
        plan->axes.convert =
            conversion_find(source.kind, source.size, dtype_modular_kind(to), target.size);
    }
    return plan->axes.convert != NULL;
}

/* NumPy goes along lines, where outputs overlap inputs; its loops have ways of their own for rows, some of
 * which compute other bits: of zeros of both signs, and of functions that are approximated. What gets cheaper
 * along a line takes a branch of its own in each column. */
static bool takes_rows(const struct call_row *row, const struct reduction_op *op)
{
    const int type = row->input->type_num;
    const struct reduction_kernel *reduction = row->loop->reduction;
    return (dtype_is_integer(type) && !(reduction != NULL && reduction->gets_cheaper)) ||
           row->loop->engine.kernel != NULL || op == &reduction_op_add ||
           (op == &reduction_op_multiply && dtype_of(type).kind == 'f');
}

static bool find_loop(struct accumulate_plan *plan, PyObject *ufunc, const struct reduction_op *op)
{
    const PyUFuncObject *object = (PyUFuncObject *)ufunc;
    const int type =
        object->nin == 2 && !object->core_enabled ? type_of_output(object, plan->arguments) : -1;
    const struct call_row *row = type >= 0 ? clone_row(ufunc, type) : NULL;
    if (row == NULL || row->input == NULL || row->converts || row->output->type_num != type) {
        return false;
    }
    const struct reduction_kernel *kernel =
        op != NULL && type != NPY_BOOL ? op->of_type[type] : NULL;
    plan->row = row;
    plan->axes.loop = &row->loop->engine;
    plan->axes.kernel = kernel != NULL && kernel->accumulate != NULL ? kernel : NULL;
    plan->axes.running = row->loop->running;
    plan->axes.takes_rows = takes_rows(row, op);
    return find_conversion(plan);
}

/* ---- operands ---- */

/* Whether a given output, of the result's dtype, can be written as it lies. */
static bool accepts_out(const struct accumulate_plan *plan)
{
    PyArrayObject *array = plan->arguments->array, *out = (PyArrayObject *)plan->arguments->out;
    return reduction_may_write_to(plan->arguments->out, PyArray_TYPE(out)) &&
           PyArray_SAMESHAPE(out, array) && array_is_injective(out) &&
           operands_output_is_independent(&array, 1, NULL, out, true);
}

/* NumPy's iterator allocates it, in the array's axis order. NULL with an exception. */
static PyArrayObject *new_output(PyArrayObject *array, PyArray_Descr *dtype)
{
    PyArrayObject *operands[] = {NULL, array}, *out = NULL;
    PyArray_Descr *dtypes[] = {dtype, NULL};
    npy_uint32 flags[] = {NPY_ITER_WRITEONLY | NPY_ITER_ALLOCATE | NPY_ITER_NO_SUBTYPE,
                          NPY_ITER_READONLY};
    NpyIter *iterator = NpyIter_MultiNew(2, operands, NPY_ITER_MULTI_INDEX, NPY_KEEPORDER,
                                         NPY_NO_CASTING, flags, dtypes);
    if (iterator != NULL) {
        out = NpyIter_GetOperandArray(iterator)[0];
        Py_INCREF(out);
        NpyIter_Deallocate(iterator);
    }
    return out;
}

/* Kept axes, sorted by the output's steps, and joined where they are one in memory; false if too many
 * are left. */
static bool read_axes(struct accumulate_plan *plan, PyArrayObject *out)
{
    PyArrayObject *array = plan->arguments->array;
    struct axes *kept = &plan->axes.kept;
    int order[NPY_MAXDIMS];
    axes_sort_by_stride(out, order);
    kept->count = 0;
    for (int i = 0; i < PyArray_NDIM(array); i++) {
        const int at = order[i];
        const struct axis axis = {PyArray_DIM(array, at), PyArray_STRIDE(array, at),
                                  PyArray_STRIDE(out, at)};
        if (at == plan->axis) {
            plan->axes.along = axis;
        } else if (!axes_join(kept, axis)) {
            return false;
        }
    }
    accumulate_order_axes(&plan->axes);
    return true;
}

/* ---- carried out ---- */

/* Whether no elements of other lines are closer to each other in the output than those of one line: its axes are in
 * the array's order, and in C's where the array is repeated. */
static bool lies_along(PyArrayObject *array, int axis)
{
    const npy_intp along = Py_ABS(PyArray_STRIDE(array, axis));
    bool is_nearest = true;
    for (int i = 0; i < PyArray_NDIM(array) && is_nearest; i++) {
        const npy_intp step = Py_ABS(array_step(array, i));
        is_nearest =
            i == axis || PyArray_DIM(array, i) == 1 || (step == 0 ? i < axis : step >= along);
    }
    return is_nearest;
}

/* Of few elements that lie in lines, which one thread accumulates as NumPy does, if not across them. */
static bool is_short(const struct accumulate_plan *plan)
{
    PyArrayObject *array = plan->arguments->array;
    const struct axis along = {PyArray_DIM(array, plan->axis), PyArray_STRIDE(array, plan->axis),
                               PyArray_ITEMSIZE(array)};
    return plan->axes.kernel == NULL && plan->axes.running == NULL && plan->axes.convert == NULL &&
           lies_along(array, plan->axis) && policy_in_use.threshold == 0 &&
           PyArray_SIZE(array) < REDUCTION_THREADS_ELEMENTS &&
           !(plan->axes.takes_rows && accumulate_spans_little(&plan->axes, along));
}

static bool make_plan(struct accumulate_plan *plan, PyObject *ufunc, const struct reduction_op *op)
{
    PyArrayObject *array = plan->arguments->array;
    plan->axis = reduction_arguments_axis(plan->arguments);
    return plan->axis >= 0 && PyArray_DIM(array, plan->axis) > 1 && array_is_plain(array) &&
           find_loop(plan, ufunc, op) && !is_short(plan) &&
           (plan->arguments->out == NULL || accepts_out(plan));
}

/* Whether there is one line, which only the loop can accumulate. */
static bool is_sequential(const struct accumulate_plan *plan)
{
    PyArrayObject *array = plan->arguments->array;
    return PyArray_SIZE(array) == PyArray_DIM(array, plan->axis) && plan->axes.convert == NULL &&
           plan->axes.kernel == NULL && plan->axes.running == NULL;
}

/* Whether NumPy would do the same in the same time: it calls the loop for one line after the other, and converts all
 * lines at once. */
static bool gains_nothing(const struct accumulated_axes *axes, const struct accumulation_cut *cut)
{
    if (axes->convert != NULL) {
        return (cut->way == BY_LINES || cut->way == BY_TURNS) && cut->threads == 1 &&
               policy_in_use.threshold == 0 && axes->along.n < ACCUMULATED_CONVERTED_LINE;
    }
    return cut->way == BY_LINES && axes->kernel == NULL && axes->running == NULL &&
           (cut->threads == 1 || cut->units == 1);
}

/* The result, a new reference to `out`, which is released otherwise. */
static PyObject *compute(struct accumulate_plan *plan, PyArrayObject *out,
                         const struct accumulation_cut *cut)
{
    PyArrayObject *array = plan->arguments->array;
    struct failure failure = {.threads_run = false};
    plan->axes.hook_data = &failure;
    errors_clear();
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(PyArray_SIZE(array));
    accumulate_axes(&plan->axes, cut);
    NPY_END_THREADS;
    const int raised = errors_raised();
    const char kind = dtype_of(PyArray_TYPE(array)).kind;
    const bool is_cast_of_floats = plan->axes.convert != NULL && (kind == 'f' || kind == 'c');
    if (is_cast_of_floats && (raised & FE_INVALID) != 0) {
        Py_DECREF(out); /* NumPy says whether a signaling NaN was cast */
        return NULL;
    }
    return errors_finish("accumulate", (PyObject *)out, raised);
}

PyObject *accumulate_call(PyObject *ufunc, const struct reduction_op *op,
                          const struct reduction_arguments *arguments)
{
    if (PyArray_SIZE(arguments->array) < reduction_short_loop()) {
        return NULL; /* at once: a plan has room for many axes */
    }
    struct accumulate_plan plan = {.arguments = arguments};
    if (!make_plan(&plan, ufunc, op) || is_sequential(&plan)) {
        return NULL;
    }
    PyArrayObject *out = arguments->out != NULL
                             ? (PyArrayObject *)Py_NewRef(arguments->out)
                             : new_output(arguments->array, (PyArray_Descr *)plan.row->output);
    if (out == NULL) {
        return NULL;
    }
    plan.axes.in = PyArray_BYTES(arguments->array);
    plan.axes.out = PyArray_BYTES(out);
    if (read_axes(&plan, out)) {
        const struct accumulation_cut cut = accumulate_cut(&plan.axes);
        if (!gains_nothing(&plan.axes, &cut)) {
            return compute(&plan, out, &cut);
        }
    }
    Py_DECREF(out);
    return NULL;
}
