/* Where the result goes, and what is around the computation: the GIL, floating-point errors. */
#include "reduction_call.h"

#include "engine/scattered_rows.h"
#include "engine/signed_zeros.h"
#include "errors.h"
#include "loop_reduction.h"

static PyObject *new_result(const struct reduction_plan *plan)
{
    const struct reduction_arguments *arguments = plan->arguments;
    npy_intp dims[NPY_MAXDIMS], steps[NPY_MAXDIMS];
    int ndim = 0;
    for (int axis = 0; axis < arguments->ndim; axis++) {
        if (!arguments->reduced[axis] || arguments->keepdims) {
            dims[ndim] = arguments->reduced[axis] ? 1 : PyArray_DIM(arguments->array, axis);
            steps[ndim++] = plan->out_step[axis];
        }
    }
    return PyArray_New(&PyArray_Type, ndim, dims, plan->type, steps, NULL, 0, 0, NULL);
}

static bool has_axes(const struct reduction_arguments *arguments)
{
    bool found = arguments->keepdims;
    for (int axis = 0; axis < arguments->ndim && !found; axis++) {
        found = !arguments->reduced[axis];
    }
    return found;
}

static PyObject *scalar_of(const char *item, int type)
{
    PyArray_Descr *dtype = PyArray_DescrFromType(type);
    PyObject *scalar = PyArray_Scalar((void *)item, dtype, NULL);
    Py_DECREF(dtype);
    return scalar;
}

/* Whether it has been done; if not, there may be an exception. */
static bool compute(struct reduction_plan *plan, npy_intp size)
{
    const struct reduction *reduction = &plan->reduction;
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(size);
    errors_clear();
    if (plan->has_start) {
        reduction_fill(reduction, plan->start.bytes);
    }
    plan->masked.reduction = *reduction;
    bool computed = plan->masked.mask != NULL
                        ? masked_reduction_compute(&plan->masked)
                        : scattered_rows_reduce(reduction) || reduction_compute(reduction);
    if (computed && reduction->kernel->zeros_tie) {
        computed = !zeros_may_tie(reduction, loop_reduction_minimum(reduction->kernel->item_size));
    }
    const int raised = errors_raised();
    NPY_END_THREADS;
    return computed && errors_report("reduce", raised) == 0;
}

PyObject *reduction_run(struct reduction_plan *plan)
{
    _Alignas(2 * sizeof(double)) char
        item[2 * sizeof(double)]; /* of a result without axes, which becomes a scalar */
    PyObject *out = Py_XNewRef(plan->arguments->out);
    const bool is_scalar = out == NULL && !has_axes(plan->arguments);
    if (out == NULL && !is_scalar) {
        out = new_result(plan);
        if (out == NULL) {
            return NULL;
        }
    }
    plan->reduction.out = is_scalar ? item : PyArray_BYTES((PyArrayObject *)out);
    if (!compute(plan, PyArray_SIZE(plan->arguments->array))) {
        Py_XDECREF(out);
        return NULL;
    }
    return is_scalar ? scalar_of(item, plan->type) : out;
}
