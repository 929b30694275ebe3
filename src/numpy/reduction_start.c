/* Where no element is left out, results begin with the initial value, onto which inner calls are folded. Where
 * some are, NumPy begins with the identity, unless an initial value is given. */
#include "reduction_start.h"

#include "engine/reduction_cutoffs.h"
#include "kernels/kernels.h"

#include <string.h>

/* Operations that begin with something where they leave elements out. (gcd is not among them: it makes negative
 * numbers positive.) */
static const struct start {
    const char *op;
    int identity; /* of bools, if it is negative, true; NONE: there is none */
} starts[] = {
    {"add", 0},          {"multiply", 1},   {"bitwise_xor", 0}, {"bitwise_or", 0},
    {"bitwise_and", -1}, {"logical_or", 0}, {"logical_and", 1}, {"maximum", 2},
    {"minimum", 2},      {"fmax", 2},       {"fmin", 2},
};
enum { NONE = 2 };

static const struct start *start_of(const char *op)
{
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        if (strcmp(starts[i].op, op) == 0) {
            return &starts[i];
        }
    }
    return NULL;
}

/* 0, 1 or -1; of floats 0 only. */
static void write_identity(union element *item, int identity, bool is_bool, size_t size)
{
    memset(item->bytes, identity < 0 && !is_bool ? 0xff : 0, size);
    if (identity > 0 || (identity < 0 && is_bool)) {
        item->bytes[0] = 1;
    }
}

/* Its sign depends on what is added to it, and in which way. */
static bool is_negative_zero(const char *item, size_t size)
{
    for (size_t i = 0; i + 1 < size; i++) {
        if (item[i] != 0) {
            return false;
        }
    }
    return (unsigned char)item[size - 1] == 0x80;
}

/* Without flags, which NumPy would report once more; nor from objects, which might be something else each time
 * that they are asked. */
static bool convert_initial(PyObject *initial, int type, union element *item)
{
    if (PyFloat_CheckExact(initial) || PyLong_CheckExact(initial) ||
        PyComplex_CheckExact(initial)) {
        return scalar_convert_number(initial, type, item);
    }
    if (!PyBool_Check(initial) && !PyArray_CheckAnyScalarExact(initial)) {
        return false;
    }
    PyArray_Descr *own =
        PyBool_Check(initial) ? PyArray_DescrFromType(NPY_BOOL) : PyArray_DescrFromScalar(initial);
    PyArray_Descr *dtype = PyArray_DescrFromType(type);
    const bool converted = own != NULL && PyArray_CanCastTypeTo(own, dtype, NPY_SAFE_CASTING) &&
                           PyArray_Pack(dtype, item->bytes, initial) == 0;
    Py_XDECREF(own);
    Py_DECREF(dtype);
    PyErr_Clear();
    return converted;
}

static bool read_initial(struct reduction_plan *plan)
{
    if (!convert_initial(plan->arguments->initial, plan->type, &plan->start)) {
        return false;
    }
    const char kind = plan->reduction.kernel->kind;
    const size_t size = plan->reduction.out_size, part = kind == 'c' ? size / 2 : size;
    const bool is_float = kind == 'f' || kind == 'c';
    return !is_float || (!is_negative_zero(plan->start.bytes, part) &&
                         !is_negative_zero(plan->start.bytes + size - part, part));
}

/* Sets the steps of a mask of the array's shape whose bools lie as its elements do. */
static bool find_mask_steps(struct masked_reduction *masked, PyArrayObject *array,
                            PyArrayObject *mask)
{
    masked->step = 0; /* the smallest, so that products with others are small */
    for (int axis = 0; axis < PyArray_NDIM(array); axis++) {
        const npy_intp step = PyArray_STRIDE(array, axis);
        if (PyArray_DIM(array, axis) != PyArray_DIM(mask, axis)) {
            return false;
        }
        if (PyArray_DIM(array, axis) > 1 &&
            (masked->step == 0 || Py_ABS(step) < Py_ABS(masked->step))) {
            masked->step = step;
            masked->mask_step = PyArray_STRIDE(mask, axis);
        }
    }
    if (masked->step == 0) { /* one element */
        masked->step = masked->mask_step = 1;
    }
    bool is_like = masked->mask_step != 0;
    for (int axis = 0; axis < PyArray_NDIM(array); axis++) {
        is_like = is_like && (PyArray_DIM(array, axis) == 1 ||
                              PyArray_STRIDE(mask, axis) * masked->step ==
                                  PyArray_STRIDE(array, axis) * masked->mask_step);
    }
    return is_like;
}

bool reduction_mask_suits(const struct reduction_arguments *arguments,
                          struct masked_reduction *masked)
{
    PyArrayObject *mask = (PyArrayObject *)arguments->where;
    return PyArray_CheckExact(arguments->where) && PyArray_TYPE(mask) == NPY_BOOL &&
           PyArray_NDIM(mask) == arguments->ndim && find_mask_steps(masked, arguments->array, mask);
}

static bool read_mask(struct reduction_plan *plan)
{
    const struct reduction *reduction = &plan->reduction;
    const struct reduction_kernel *kernel = reduction->kernel;
    PyArrayObject *mask = (PyArrayObject *)plan->arguments->where;
    PyObject *out = plan->arguments->out;
    if (out != NULL && extents_meet(array_extent((PyArrayObject *)out), array_extent(mask))) {
        return false;
    }
    plan->masked.mask =
        PyArray_BYTES(mask) +
        mask_step_of(&plan->masked, reduction->data - PyArray_BYTES(plan->arguments->array));
    plan->masked.neutral = NULL;
    const struct start *start = start_of(kernel->op);
    if (start == NULL) {
        return false;
    }
    if (!plan->has_start) {
        if (start->identity == NONE) {
            return false;
        }
        write_identity(&plan->start, start->identity, plan->type == NPY_BOOL, reduction->out_size);
    }
    if (!kernel->any_order && reduction->inner.count > 0) { /* one inner call for each row */
        return reduction->inner.count == 1 && reduction->inner_call == reduction->inner.axis[0].n;
    }
    plan->neutral = plan->start;
    if (!kernel->repeats) {
        write_identity(&plan->neutral, start->identity, false, kernel->item_size);
    }
    plan->masked.neutral = plan->neutral.bytes;
    return true;
}

bool reduction_plan_start(struct reduction_plan *plan)
{
    const struct reduction_arguments *arguments = plan->arguments;
    plan->has_start = arguments->initial != NULL;
    if (plan->has_start && !read_initial(plan)) {
        return false;
    }
    if (arguments->where != NULL && !read_mask(plan)) {
        return false;
    }
    plan->has_start = plan->reduction.onto = true;
    /* The first row of columns would be added to the others before it is to the initial value. */
    return plan->masked.mask != NULL || plan->reduction.kernel->any_order ||
           plan->reduction.inner.count > 0;
}
