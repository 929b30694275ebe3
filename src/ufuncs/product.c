/* One product of two arrays, without the iterator and the broadcasting of NumPy, which cost more than
 * a small product does. The loop gets what NumPy would hand it. Stacks are left to NumPy. */
#include "gufunc.h"
#include "operands.h"

struct product {
    npy_intp m, k, n;
    npy_intp shape[2]; /* of the result */
    int ndim;
    npy_intp dimensions[4], steps[9]; /* as the loop takes them */
};

/* Whether operands of so many dimensions make a single product. */
static bool has_shape(enum gufunc gufunc, int a_ndim, int b_ndim)
{
    switch (gufunc) {
    case MATMUL:
        return (a_ndim == 1 || a_ndim == 2) && (b_ndim == 1 || b_ndim == 2);
    case VECDOT:
        return a_ndim == 1 && b_ndim == 1;
    case MATVEC:
        return a_ndim == 2 && b_ndim == 1;
    case VECMAT:
        return a_ndim == 1 && b_ndim == 2;
    }
    return false;
}

static bool read_shape(const struct call *call, struct product *product)
{
    PyArrayObject *a = call->array[0], *b = call->array[1];
    const int a_ndim = PyArray_NDIM(a), b_ndim = PyArray_NDIM(b);
    if (!has_shape(call->table->gufunc, a_ndim, b_ndim)) {
        return false;
    }
    product->m = product->n = 1;
    product->k = PyArray_DIM(a, a_ndim - 1);
    product->ndim = 0;
    if (a_ndim == 2) {
        product->shape[product->ndim++] = product->m = PyArray_DIM(a, 0);
    }
    if (b_ndim == 2) {
        product->shape[product->ndim++] = product->n = PyArray_DIM(b, 1);
    }
    return product->m > 0 && product->n > 0 && product->k > 0 && PyArray_DIM(b, 0) == product->k;
}

/* An output that the loop may write as it goes. */
static bool suits(const struct call *call, const struct product *product)
{
    PyArrayObject *out = call->array[2];
    return PyArray_NDIM(out) == product->ndim &&
           PyArray_CompareLists(PyArray_DIMS(out), product->shape, product->ndim) &&
           (PyArray_FLAGS(out) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)) != 0 &&
           call_output_is_independent(call, false);
}

/* The step of a dimension of one element means nothing: NumPy makes it zero, too. */
static npy_intp step_of(PyArrayObject *array, int axis)
{
    return PyArray_DIM(array, axis) != 1 ? PyArray_STRIDE(array, axis) : 0;
}

/* Dimensions and steps in the order of the gufunc's signature, of which those of the outer loop are
 * the first. */
static void lay_out(const struct call *call, PyArrayObject *out, struct product *product)
{
    PyArrayObject *a = call->array[0], *b = call->array[1];
    const enum gufunc gufunc = call->table->gufunc;
    const bool has_m = gufunc == MATMUL || gufunc == MATVEC;
    const bool has_n = gufunc == MATMUL || gufunc == VECMAT;
    const bool a_is_matrix = PyArray_NDIM(a) == 2, b_is_matrix = PyArray_NDIM(b) == 2;
    npy_intp *dimension = product->dimensions, *step = product->steps;
    *dimension++ = 1;
    *step++ = 0, *step++ = 0, *step++ = 0;
    if (has_m) {
        *dimension++ = product->m;
        *step++ = a_is_matrix ? step_of(a, 0) : 0;
    }
    *dimension++ = product->k;
    *step++ = step_of(a, a_is_matrix);
    *step++ = step_of(b, 0);
    if (has_n) {
        *dimension++ = product->n;
        *step++ = b_is_matrix ? step_of(b, 1) : 0;
    }
    if (has_m) {
        *step++ = a_is_matrix ? step_of(out, 0) : 0;
    }
    if (has_n) {
        *step++ = b_is_matrix ? step_of(out, product->ndim - 1) : 0;
    }
}

bool call_product(const struct call *call, PyObject **result)
{
    struct product product;
    if (call->array[0] == NULL || call->array[1] == NULL || !read_shape(call, &product)) {
        return false;
    }
    PyArrayObject *out = call->array[2];
    if (out != NULL && !suits(call, &product)) {
        return false;
    }
    if (out != NULL) {
        Py_INCREF(out);
    } else {
        out = call_new_output(call, product.ndim, product.shape, false);
        if (out == NULL) {
            *result = NULL;
            return true;
        }
    }
    lay_out(call, out, &product);
    char *data[] = {PyArray_DATA(call->array[0]), PyArray_DATA(call->array[1]), PyArray_DATA(out)};
    call_counts.products++;
    call_clear_errors();
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED((double)product.m * (double)product.k * (double)product.n);
    call->row->function(data, product.dimensions, product.steps, call->row->data);
    NPY_END_THREADS;
    *result = call_finish(call, out);
    if (*result != NULL && product.ndim == 0 && call->array[2] == NULL) {
        *result = PyArray_Return(out);
    }
    return true;
}
