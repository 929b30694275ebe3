/* Products of arrays and of stacks of them, without the iterator and the broadcasting of NumPy, which cost
 * more than a small product does. */
#include "matmul_call.h"

#include "engine/matmul.h"
#include "engine/matmul_join.h"
#include "errors.h"
#include "kernels/vector.h"
#include "offload.h"
#include "policy_in_use.h"

#include <string.h>

enum {
    MOST_STACK_AXES = 8,
    LONG_STACK = 16,          /* products that are worth one plan, */
    LONG_STACK_MULS = 512,    /* or multiplications of all together, */
    LEAST_OF_NUMPYS = 8,      /* or that NumPy's loop gets without a plan, */
    NUMPYS_STACK_MULS = 8192, /* of a stack that no near cache holds; */
    FEW_BOOLS = 4,            /* where so many decide a sum */
};

_Thread_local unsigned long long matmul_calls;

/* What the operands' dimensions say. */
struct product_layout {
    struct product product; /* the first along the stack's last axis, and how far it goes there */
    int ndim;
    npy_intp shape[MOST_STACK_AXES + 2]; /* of the result */
    int core[2];                         /* dimensions of each operand that belong to one product */
    int stack;                           /* those of the result that do not */
    int order[MOST_STACK_AXES];          /* the fastest first */
    /* What is left of the stack when axes are joined; the last one is the product's own. */
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

/* Which axis of an operand is that axis of the stack; negative: none, it is repeated along it. */
static int own_axis(PyArrayObject *array, const struct product_layout *layout, int operand,
                    int axis)
{
    return axis - (layout->stack - (PyArray_NDIM(array) - layout->core[operand]));
}

static npy_intp stack_extent(PyArrayObject *array, const struct product_layout *layout, int operand,
                             int axis)
{
    const int own = own_axis(array, layout, operand, axis);
    return own >= 0 ? PyArray_DIM(array, own) : 1;
}

static npy_intp stack_step(PyArrayObject *array, const struct product_layout *layout, int operand,
                           int axis)
{
    const int own = own_axis(array, layout, operand, axis);
    return own >= 0 ? array_step(array, own) : 0;
}

/* Whether there is something to compute, of shapes that go together. */
static bool read_shape(const struct ufunc_call *call, struct product_layout *layout)
{
    PyArrayObject *a = call->array[0], *b = call->array[1];
    const int a_ndim = PyArray_NDIM(a), b_ndim = PyArray_NDIM(b);
    const int a_core = layout->core[0] = core_of(call->table->gufunc, 0, a_ndim);
    const int b_core = layout->core[1] = core_of(call->table->gufunc, 1, b_ndim);
    layout->stack = Py_MAX(a_ndim - a_core, b_ndim - b_core);
    if (a_core == 0 || b_core == 0 || layout->stack > MOST_STACK_AXES) {
        return false;
    }
    layout->ndim = 0;
    for (int axis = 0; axis < layout->stack; axis++) {
        const npy_intp of_a = stack_extent(a, layout, 0, axis);
        const npy_intp of_b = stack_extent(b, layout, 1, axis);
        if ((of_a != of_b && of_a != 1 && of_b != 1) || of_a == 0 || of_b == 0) {
            return false;
        }
        layout->shape[layout->ndim++] = of_a != 1 ? of_a : of_b;
    }
    layout->product.m = layout->product.n = 1;
    layout->product.k = PyArray_DIM(a, a_ndim - 1);
    if (a_core == 2) {
        layout->shape[layout->ndim++] = layout->product.m = PyArray_DIM(a, a_ndim - 2);
    }
    if (b_core == 2) {
        layout->shape[layout->ndim++] = layout->product.n = PyArray_DIM(b, b_ndim - 1);
    }
    return layout->product.m > 0 && layout->product.n > 0 && layout->product.k > 0 &&
           PyArray_DIM(b, b_ndim - b_core) == layout->product.k;
}

/* An output that the loop may write as it goes. */
static bool suits(const struct ufunc_call *call, const struct product_layout *layout)
{
    PyArrayObject *out = call->array[2];
    return PyArray_NDIM(out) == layout->ndim &&
           PyArray_CompareLists(PyArray_DIMS(out), layout->shape, layout->ndim) &&
           (PyArray_FLAGS(out) & (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS)) != 0 &&
           operands_output_is_independent(call->array, 2, NULL, out, false);
}

/* What turn_of() compares. */
struct sorted_stack {
    const struct ufunc_call *call;
    const struct product_layout *layout;
};

/* How two axes of the stack are sorted, as NumPy's iterator does: see axes_sort(). */
static int turn_of(const void *context, int axis, int later)
{
    const struct sorted_stack *stack = context;
    int turn = 0;
    for (int operand = 0; operand < 2; operand++) {
        PyArrayObject *array = stack->call->array[operand];
        turn = axes_turn_with(turn, stack_step(array, stack->layout, operand, axis),
                              stack_step(array, stack->layout, operand, later));
    }
    return turn;
}

static PyArrayObject *new_output(const struct ufunc_call *call, const struct product_layout *layout)
{
    bool is_c = true;
    for (int i = 0; i < layout->stack; i++) {
        is_c = is_c && layout->order[i] == layout->stack - 1 - i;
    }
    if (is_c) {
        return operands_new_output(call, layout->ndim, layout->shape, false);
    }
    int order[MOST_STACK_AXES + 2];
    for (int i = 0; i < layout->ndim; i++) {
        const int core = layout->ndim - layout->stack;
        order[i] = i < core ? layout->ndim - 1 - i : layout->order[i - core];
    }
    return operands_new_output_in_order(call, layout->ndim, layout->shape, order);
}

/* Rows and columns of one product; those of the stack are for later. */
static void lay_out_matrices(const struct ufunc_call *call, PyArrayObject *out,
                             struct product_layout *layout)
{
    PyArrayObject *a = call->array[0], *b = call->array[1];
    const bool a_is_matrix = layout->core[0] == 2, b_is_matrix = layout->core[1] == 2;
    const int a_core = PyArray_NDIM(a) - layout->core[0];
    const int b_core = PyArray_NDIM(b) - layout->core[1];
    struct product *x = &layout->product;
    x->batch = 1;
    x->a = (struct strided){PyArray_DATA(a), 0, a_is_matrix ? array_step(a, a_core) : 0,
                            array_step(a, a_core + a_is_matrix)};
    x->b = (struct strided){PyArray_DATA(b), 0, array_step(b, b_core),
                            b_is_matrix ? array_step(b, b_core + 1) : 0};
    x->c = (struct strided){PyArray_DATA(out), 0, a_is_matrix ? array_step(out, layout->stack) : 0,
                            b_is_matrix ? array_step(out, layout->ndim - 1) : 0};
}

/* Joins axes of the stack that are consecutive in memory. */
static void lay_out_stack(const struct ufunc_call *call, PyArrayObject *out,
                          struct product_layout *layout)
{
    for (int i = layout->stack - 1; i >= 0; i--) {
        const int sorted = layout->order[i];
        const struct stack_axis axis = {layout->shape[sorted],
                                        {stack_step(call->array[0], layout, 0, sorted),
                                         stack_step(call->array[1], layout, 1, sorted),
                                         array_step(out, sorted)}};
        if (axis.n == 1) {
            continue;
        }
        struct stack_axis *last = layout->axes > 0 ? &layout->axis[layout->axes - 1] : NULL;
        if (last != NULL && last->step[0] == axis.n * axis.step[0] &&
            last->step[1] == axis.n * axis.step[1] && last->step[2] == axis.n * axis.step[2]) {
            const npy_intp n = last->n * axis.n;
            *last = axis;
            last->n = n;
        } else {
            layout->axis[layout->axes++] = axis;
        }
    }
}

static struct product along(const struct product *x, const struct stack_axis *axis)
{
    struct product stack = *x;
    stack.batch = axis->n;
    stack.a.batch_step = axis->step[0];
    stack.b.batch_step = axis->step[1];
    stack.c.batch_step = axis->step[2];
    return stack;
}

/* Whether dot products along another axis of the stack share cache lines, and those along this one do not. */
static bool others_share_lines(const struct product_layout *layout, int i)
{
    const int in = layout->axis[i].step[0] == 0; /* the operand that is not repeated */
    const bool are_dots = layout->core[0] == 1 && layout->core[1] == 1;
    bool share = false;
    for (int j = 0; are_dots && Py_ABS(layout->axis[i].step[in]) >= LINE_BYTES && j < layout->axes;
         j++) {
        const npy_intp step = Py_ABS(layout->axis[j].step[in]);
        share = share || (step != 0 && step < LINE_BYTES / 2);
    }
    return share;
}

/* Axes along which an operand is repeated become rows or columns of the other; the innermost first, as
 * only what is left may follow them in memory. */
static void join_axes(const struct gufunc_loop *loop, struct product_layout *layout)
{
    for (int i = layout->axes - 1; i >= 0; i--) {
        struct product joined = along(&layout->product, &layout->axis[i]);
        if (!others_share_lines(layout, i) && matmul_join(&loop->dtype, &joined)) {
            layout->product = joined;
            layout->axes--;
            memmove(&layout->axis[i], &layout->axis[i + 1],
                    (size_t)(layout->axes - i) * sizeof layout->axis[i]);
        }
    }
}

static bool is_shared_out(const struct gufunc_loop *loop, const struct product *stack)
{
    struct matmul_plan plan;
    matmul_plan(&plan, &policy_in_use, &loop->dtype, stack);
    return plan.stack_threads > 1;
}

static bool is_left_to_numpy(const struct gufunc_loop *loop, const struct product *stack)
{
    struct matmul_plan plan;
    matmul_plan(&plan, &policy_in_use, &loop->dtype, stack);
    return plan.way == MATMUL_FALLBACK && plan.stack_threads == 1;
}

/* Whether the last axis stays the product's own though another one is longer: memory is read in order along it. Not
 * where its products are not worth a plan, or threads get more of the longer one. */
static bool stays_last(const struct gufunc_loop *loop, const struct product *product,
                       const struct stack_axis *last, const struct stack_axis *longest)
{
    const struct product inner = along(product, last), stack = along(product, longest);
    const npy_intp k = loop->type == NPY_BOOL ? Py_MIN(inner.k, FEW_BOOLS) : inner.k;
    const double muls = (double)last->n * (double)inner.m * (double)k * (double)inner.n;
    if (muls < LONG_STACK_MULS) {
        return last->n >= LEAST_OF_NUMPYS && muls * (double)longest->n >= NUMPYS_STACK_MULS &&
               is_left_to_numpy(loop, &inner);
    }
    return !is_shared_out(loop, &stack) || is_shared_out(loop, &inner);
}

/* Puts a long axis last, the product's own. */
static void choose_last_axis(const struct gufunc_loop *loop, struct product_layout *layout)
{
    if (layout->axes == 0) {
        return;
    }
    struct stack_axis *last = &layout->axis[layout->axes - 1], *longest = last;
    for (struct stack_axis *axis = layout->axis; last->n < LONG_STACK && axis < last; axis++) {
        longest = axis->n > longest->n ? axis : longest;
    }
    if (longest != last && !stays_last(loop, &layout->product, last, longest)) {
        const struct stack_axis kept = *last;
        *last = *longest;
        *longest = kept;
    }
    layout->product = along(&layout->product, last);
}

/* The product along the last axis of the stack, for each index of the others. */
static void compute(const struct gufunc_loop *loop, const struct product_layout *layout)
{
    npy_intp at[MOST_STACK_AXES] = {0};
    struct product x = layout->product;
    bool is_numpys = false;
    for (;;) {
        if (is_numpys) {
            gufunc_counts.numpys++;
            gufunc_call_numpy(loop, &x);
        } else {
            is_numpys = offload_run(loop, &x);
        }
        int i = layout->axes - 2;
        for (; i >= 0; i--) {
            const struct stack_axis *axis = &layout->axis[i];
            const npy_intp moved = ++at[i] < axis->n ? 1 : 1 - axis->n;
            x.a.data += moved * axis->step[0];
            x.b.data += moved * axis->step[1];
            x.c.data += moved * axis->step[2];
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
    struct product_layout layout;
    layout.axes = 0;
    if (call->array[0] == NULL || call->array[1] == NULL || call->row->function != gufunc_run ||
        !read_shape(call, &layout)) {
        return false;
    }
    PyArrayObject *out = call->array[2];
    if (out != NULL && !suits(call, &layout)) {
        return false;
    }
    const struct sorted_stack stack = {call, &layout};
    axes_sort(layout.stack, layout.order, turn_of, &stack);
    if (out != NULL) {
        Py_INCREF(out);
    } else {
        out = new_output(call, &layout);
        if (out == NULL) {
            *result = NULL;
            return true;
        }
    }
    lay_out_matrices(call, out, &layout);
    lay_out_stack(call, out, &layout);
    join_axes(call->row->data, &layout);
    choose_last_axis(call->row->data, &layout);
    matmul_calls++;
    errors_clear();
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED((double)PyArray_SIZE(out) * (double)layout.product.k);
    compute(call->row->data, &layout);
    NPY_END_THREADS;
    *result = errors_finish(call->table->name, (PyObject *)out, errors_raised());
    if (*result != NULL && layout.ndim == 0 && call->array[2] == NULL) {
        *result = PyArray_Return(out);
    }
    return true;
}

void gufunc_run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    const struct gufunc_loop *loop = data;
    struct product product = gufunc_product(loop->gufunc, args, dimensions, steps);
    matmul_join(&loop->dtype, &product);
    offload_run(loop, &product);
}
