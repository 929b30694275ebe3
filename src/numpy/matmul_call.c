/* Products of arrays and of stacks of them, without the iterator and the broadcasting of NumPy, which cost
 * more than a small product does. The loop gets what NumPy would hand it, but for the number of products
 * in one call. */
#include "matmul_call.h"

#include "axes.h"
#include "errors.h"

enum {
    MOST_STACK_AXES = 8,
    LONG_STACK = 16, /* products that are worth one call of the loop */
};

unsigned long long matmul_calls;

struct product {
    npy_intp m, k, n;
    npy_intp shape[MOST_STACK_AXES + 2]; /* of the result */
    int ndim;
    int core[2];                      /* dimensions of each operand that belong to one product */
    int stack;                        /* those of the result that do not */
    int order[MOST_STACK_AXES];       /* the fastest first */
    npy_intp dimensions[4], steps[9]; /* as the loop takes them */
    /* What is left of the stack when axes are joined. The loop goes along the last one. */
    int axes;
    struct stack_axis {
        npy_intp n, step[3];
    } axis[MOST_STACK_AXES];
};

/* How many of an operand's dimensions belong to one product; 0: it has too few. */
static int core_of(enum gufunc gufunc, int operand, int ndim)
{
    const bool takes_matrix = gufunc == MATMUL || (gufunc == MATVEC && operand == 0) ||
                              (gufunc == VECMAT && operand == 1);
    const int least = takes_matrix && gufunc != MATMUL ? 2 : 1;
    return ndim < least ? 0 : takes_matrix && ndim > 1 ? 2 : 1;
}

/* The step of a dimension of one element means nothing: NumPy makes it zero, too. */
static npy_intp step_of(PyArrayObject *array, int axis)
{
    return PyArray_DIM(array, axis) != 1 ? PyArray_STRIDE(array, axis) : 0;
}

/* Which axis of an operand is that axis of the stack; negative: none, it is repeated along it. */
static int own_axis(PyArrayObject *array, const struct product *product, int operand, int axis)
{
    return axis - (product->stack - (PyArray_NDIM(array) - product->core[operand]));
}

static npy_intp stack_extent(PyArrayObject *array, const struct product *product, int operand,
                             int axis)
{
    const int own = own_axis(array, product, operand, axis);
    return own >= 0 ? PyArray_DIM(array, own) : 1;
}

static npy_intp stack_step(PyArrayObject *array, const struct product *product, int operand,
                           int axis)
{
    const int own = own_axis(array, product, operand, axis);
    return own >= 0 ? step_of(array, own) : 0;
}

/* Whether there is something to compute, of shapes that go together. */
static bool read_shape(const struct ufunc_call *call, struct product *product)
{
    PyArrayObject *a = call->array[0], *b = call->array[1];
    const int a_ndim = PyArray_NDIM(a), b_ndim = PyArray_NDIM(b);
    const int a_core = product->core[0] = core_of(call->table->gufunc, 0, a_ndim);
    const int b_core = product->core[1] = core_of(call->table->gufunc, 1, b_ndim);
    product->stack = Py_MAX(a_ndim - a_core, b_ndim - b_core);
    if (a_core == 0 || b_core == 0 || product->stack > MOST_STACK_AXES) {
        return false;
    }
    product->ndim = 0;
    for (int axis = 0; axis < product->stack; axis++) {
        const npy_intp of_a = stack_extent(a, product, 0, axis);
        const npy_intp of_b = stack_extent(b, product, 1, axis);
        if ((of_a != of_b && of_a != 1 && of_b != 1) || of_a == 0 || of_b == 0) {
            return false;
        }
        product->shape[product->ndim++] = of_a != 1 ? of_a : of_b;
    }
    product->m = product->n = 1;
    product->k = PyArray_DIM(a, a_ndim - 1);
    if (a_core == 2) {
        product->shape[product->ndim++] = product->m = PyArray_DIM(a, a_ndim - 2);
    }
    if (b_core == 2) {
        product->shape[product->ndim++] = product->n = PyArray_DIM(b, b_ndim - 1);
    }
    return product->m > 0 && product->n > 0 && product->k > 0 &&
           PyArray_DIM(b, b_ndim - b_core) == product->k;
}

/* An output that the loop may write as it goes. */
static bool suits(const struct ufunc_call *call, const struct product *product)
{
    PyArrayObject *out = call->array[2];
    return PyArray_NDIM(out) == product->ndim &&
           PyArray_CompareLists(PyArray_DIMS(out), product->shape, product->ndim) &&
           (PyArray_FLAGS(out) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)) != 0 &&
           operands_output_is_independent(call, false);
}

/* What turn_of() compares. */
struct sorted_stack {
    const struct ufunc_call *call;
    const struct product *product;
};

static int turn_of(const void *context, int axis, int later)
{
    const struct sorted_stack *stack = context;
    int turn = 0;
    for (int operand = 0; operand < 2; operand++) {
        PyArrayObject *array = stack->call->array[operand];
        const npy_intp outer = stack_step(array, stack->product, operand, axis);
        const npy_intp inner = stack_step(array, stack->product, operand, later);
        if (outer != 0 && inner != 0) {
            turn = turn < 0 || Py_ABS(inner) <= Py_ABS(outer) ? -1 : 1;
        }
    }
    return turn;
}

static PyArrayObject *new_output(const struct ufunc_call *call, const struct product *product)
{
    bool is_c = true;
    for (int i = 0; i < product->stack; i++) {
        is_c = is_c && product->order[i] == product->stack - 1 - i;
    }
    if (is_c) {
        return operands_new_output(call, product->ndim, product->shape, false);
    }
    PyArray_Descr *dtype = call->row->output;
    npy_intp strides[MOST_STACK_AXES + 2], stride = PyDataType_ELSIZE(dtype);
    for (int i = product->ndim - 1; i >= 0; i--) {
        const int axis = i < product->stack ? product->order[product->stack - 1 - i] : i;
        strides[axis] = stride;
        stride *= product->shape[axis];
    }
    Py_INCREF(dtype);
    return (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, dtype, product->ndim,
                                                 product->shape, strides, NULL, 0, NULL);
}

/* Dimensions and steps of one product in the order of the gufunc's signature; those of the stack, which are
 * the first, are for later. */
static void lay_out(const struct ufunc_call *call, PyArrayObject *out, struct product *product)
{
    PyArrayObject *a = call->array[0], *b = call->array[1];
    const enum gufunc gufunc = call->table->gufunc;
    const bool has_m = gufunc == MATMUL || gufunc == MATVEC;
    const bool has_n = gufunc == MATMUL || gufunc == VECMAT;
    const bool a_is_matrix = product->core[0] == 2, b_is_matrix = product->core[1] == 2;
    const int a_core = PyArray_NDIM(a) - product->core[0];
    const int b_core = PyArray_NDIM(b) - product->core[1];
    npy_intp *dimension = product->dimensions, *step = product->steps;
    *dimension++ = 1;
    *step++ = 0, *step++ = 0, *step++ = 0;
    if (has_m) {
        *dimension++ = product->m;
        *step++ = a_is_matrix ? step_of(a, a_core) : 0;
    }
    *dimension++ = product->k;
    *step++ = step_of(a, a_core + a_is_matrix);
    *step++ = step_of(b, b_core);
    if (has_n) {
        *dimension++ = product->n;
        *step++ = b_is_matrix ? step_of(b, b_core + 1) : 0;
    }
    if (has_m) {
        *step++ = a_is_matrix ? step_of(out, product->stack) : 0;
    }
    if (has_n) {
        *step++ = b_is_matrix ? step_of(out, product->ndim - 1) : 0;
    }
}

/* Joins axes of the stack that are as good as one, and puts a long one last. */
static void lay_out_stack(const struct ufunc_call *call, PyArrayObject *out,
                          struct product *product)
{
    product->axes = 0;
    for (int i = product->stack - 1; i >= 0; i--) {
        const int sorted = product->order[i];
        const struct stack_axis axis = {product->shape[sorted],
                                        {stack_step(call->array[0], product, 0, sorted),
                                         stack_step(call->array[1], product, 1, sorted),
                                         step_of(out, sorted)}};
        if (axis.n == 1) {
            continue;
        }
        struct stack_axis *last = product->axes > 0 ? &product->axis[product->axes - 1] : NULL;
        if (last != NULL && last->step[0] == axis.n * axis.step[0] &&
            last->step[1] == axis.n * axis.step[1] && last->step[2] == axis.n * axis.step[2]) {
            const npy_intp n = last->n * axis.n;
            *last = axis;
            last->n = n;
        } else {
            product->axis[product->axes++] = axis;
        }
    }
    if (product->axes == 0) {
        product->axis[product->axes++] = (struct stack_axis){.n = 1};
    }
    struct stack_axis *last = &product->axis[product->axes - 1], *longest = last;
    for (struct stack_axis *axis = product->axis; last->n < LONG_STACK && axis < last; axis++) {
        longest = axis->n > longest->n ? axis : longest;
    }
    const struct stack_axis kept = *last;
    *last = *longest;
    *longest = kept;
    product->dimensions[0] = last->n;
    for (int operand = 0; operand < 3; operand++) {
        product->steps[operand] = last->step[operand];
    }
}

/* Along the last axis of the stack, for each place on the others. */
static void run(const struct call_row *row, const struct product *product, char *const first[])
{
    npy_intp at[MOST_STACK_AXES] = {0};
    char *data[] = {first[0], first[1], first[2]};
    for (;;) {
        char *args[] = {data[0], data[1], data[2]}; /* the loop advances them */
        row->function(args, product->dimensions, product->steps, row->data);
        int i = product->axes - 2;
        for (; i >= 0; i--) {
            const struct stack_axis *axis = &product->axis[i];
            const npy_intp moved = ++at[i] < axis->n ? 1 : 1 - axis->n;
            for (int operand = 0; operand < 3; operand++) {
                data[operand] += moved * axis->step[operand];
            }
            if (moved == 1) {
                break;
            }
            at[i] = 0;
        }
        if (i < 0) {
            return;
        }
    }
}

bool matmul_call(const struct ufunc_call *call, PyObject **result)
{
    struct product product;
    if (call->array[0] == NULL || call->array[1] == NULL || !read_shape(call, &product)) {
        return false;
    }
    PyArrayObject *out = call->array[2];
    if (out != NULL && !suits(call, &product)) {
        return false;
    }
    const struct sorted_stack stack = {call, &product};
    axes_sort(product.stack, product.order, turn_of, &stack);
    if (out != NULL) {
        Py_INCREF(out);
    } else {
        out = new_output(call, &product);
        if (out == NULL) {
            *result = NULL;
            return true;
        }
    }
    lay_out(call, out, &product);
    lay_out_stack(call, out, &product);
    char *data[] = {PyArray_DATA(call->array[0]), PyArray_DATA(call->array[1]), PyArray_DATA(out)};
    matmul_calls++;
    errors_clear();
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED((double)PyArray_SIZE(out) * (double)product.k);
    run(call->row, &product, data);
    NPY_END_THREADS;
    *result = errors_finish(call->table->name, out, errors_raised());
    if (*result != NULL && product.ndim == 0 && call->array[2] == NULL) {
        *result = PyArray_Return(out);
    }
    return true;
}
