/* Adapts the loops of matmul and its relatives to the parallel engine. */
#include "matmul_loop.h"

#include "dtypes.h"
#include "policy_in_use.h"

#include <string.h>

enum {
    /* Up to here a kernel of our own beats a call of BLAS, in multiplications and in any dimension. */
    SMALL_FLOAT = 16 * 16 * 16,
    SMALL_FLOAT_SIDE = 32,
    /* Up to here OpenBLAS stays on the calling thread: threads of ours and of its would multiply. */
    SERIAL_BLAS = 64 * 64 * 64,
    SERIAL_BLAS_VECTOR = 9000,
    WHOLE_BYTES = 32, /* what is left of a row is computed one by one */
    SHORT_DOT = 32,
    /* Halves are converted and packed, which pays from so many sums and multiplications on. */
    FEW_HALVES = 8,
    SMALL_HALF = 128,
    TINY = 4 * 4 * 3,          /* NumPy's loop is done before ours has looked at the shape */
    SMALL_VECTOR = 256,        /* the same for a single column */
    SMALL_BOOL = 24 * 24 * 24, /* NumPy breaks off at the first true product */
    MOST_ROWS = 64,
};

struct gufunc_counts gufunc_counts;

bool gufunc_is_named(const char *name, enum gufunc *gufunc)
{
    static const char *const names[] = {"matmul", "vecdot", "matvec", "vecmat"};
    for (int i = 0; i < 4; i++) {
        if (name != NULL && strcmp(name, names[i]) == 0) {
            *gufunc = (enum gufunc)i;
            return true;
        }
    }
    return false;
}

/* Halves have kernels of their own kind. */
static char kind_of(int type)
{
    return type == NPY_HALF ? 'e' : dtype_modular_kind(type);
}

bool gufunc_initialize(struct gufunc_loop *loop, const char *name, const char types[], int operands,
                       PyUFuncGenericFunction numpy_function, void *numpy_data)
{
    const int type = types[0];
    *loop = (struct gufunc_loop){.numpy_function = numpy_function, .numpy_data = numpy_data};
    if (!gufunc_is_named(name, &loop->gufunc) || operands != 3 || types[1] != type ||
        types[2] != type || numpy_function == NULL || !dtype_is_number(type)) {
        return false;
    }
    const struct dtype dtype = dtype_of(type);
    loop->kernel = matmul_kernel_find(kind_of(type), dtype.size, false);
    loop->bits = type == NPY_BOOL ? matmul_bits_find() : NULL;
    loop->item_size = (npy_intp)dtype.size;
    loop->is_complex = dtype.kind == 'c';
    loop->has_blas =
        type == NPY_FLOAT || type == NPY_DOUBLE || type == NPY_CFLOAT || type == NPY_CDOUBLE;
    return true;
}

/* Reads the gufunc's own order of dimensions and core steps. */
static struct matrices matrices_of(enum gufunc gufunc, char **args, const npy_intp *dimensions,
                                   const npy_intp *steps)
{
    struct matrices x = {.a = args[0], .b = args[1], .c = args[2], .m = 1, .n = 1};
    const npy_intp *core = steps + 3;
    switch (gufunc) {
    case MATMUL:
        x.m = dimensions[1], x.k = dimensions[2], x.n = dimensions[3];
        x.a_row = core[0], x.a_k = core[1], x.b_k = core[2], x.b_column = core[3];
        x.c_row = core[4], x.c_column = core[5];
        break;
    case VECDOT:
        x.k = dimensions[1];
        x.a_k = core[0], x.b_k = core[1];
        break;
    case MATVEC:
        x.m = dimensions[1], x.k = dimensions[2];
        x.a_row = core[0], x.a_k = core[1], x.b_k = core[2], x.c_row = core[3];
        break;
    case VECMAT:
        x.k = dimensions[1], x.n = dimensions[2];
        x.a_k = core[0], x.b_k = core[1], x.b_column = core[2], x.c_column = core[3];
        break;
    }
    return x;
}

struct numpy_call {
    const struct gufunc_loop *loop;
    char **args;
    const npy_intp *dimensions, *steps;
    int dimension_count;
};

static void run_numpy(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct numpy_call *call = context;
    char *args[3];
    npy_intp dimensions[4] = {count, 0, 0, 0};
    for (int i = 0; i < 3; i++) {
        args[i] = call->args[i] + first * call->steps[i];
    }
    for (int i = 1; i < call->dimension_count; i++) {
        dimensions[i] = call->dimensions[i];
    }
    call->loop->numpy_function(args, dimensions, call->steps, call->loop->numpy_data);
}

/* An atomic addition would take as long as the rest of a loop over one tiny product: calls that meet may
 * be counted as one. */
static void count_call(_Atomic unsigned long long *counter)
{
    const unsigned long long count = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, count + 1, memory_order_relaxed);
}

/* One matrix product so small that looking at its shape would show in its time. */
static bool is_tiny(const npy_intp *dimensions)
{
    const npy_intp m = dimensions[1], k = dimensions[2], n = dimensions[3];
    return dimensions[0] == 1 && (m | k | n) < 2 * TINY && m * k * n <= TINY;
}

static double multiplications(const struct matrices *x)
{
    return (double)x->m * (double)x->k * (double)x->n;
}

/* Vectors need neighbours: NumPy's loop goes from element to element as fast as any. */
static bool suits_dot(const struct gufunc_loop *loop, const struct matrices *x)
{
    return x->k >= SHORT_DOT && x->a_k == loop->item_size && x->b_k == loop->item_size;
}

/* Whether our kernel is the better choice. It depends on the shape of one product alone, so that
 * products in a stack are the same as single ones. */
static bool suits_kernel(const struct gufunc_loop *loop, const struct matrices *x)
{
    const double work = multiplications(x);
    if (loop->kernel->kind == 'e') {
        return ((double)x->m * (double)x->n >= FEW_HALVES && work > SMALL_HALF) || x->k == 0;
    }
    if (loop->gufunc == VECDOT && !suits_dot(loop, x)) {
        return false;
    }
    if (!loop->has_blas) {
        return work > (x->n == 1 ? SMALL_VECTOR : TINY) || x->k == 0;
    }
    const bool is_small = work <= SMALL_FLOAT && x->m <= SMALL_FLOAT_SIDE &&
                          x->k <= SMALL_FLOAT_SIDE && x->n <= SMALL_FLOAT_SIDE;
    const bool is_whole_vectors = x->n * (ptrdiff_t)loop->kernel->item_size % WHOLE_BYTES == 0;
    return loop->gufunc == MATMUL && work > TINY && is_small && is_whole_vectors;
}

static bool suits_bits(const struct gufunc_loop *loop, const struct matrices *x)
{
    return loop->gufunc == VECDOT ? suits_dot(loop, x) : multiplications(x) > SMALL_BOOL;
}

static bool may_split_numpy(const struct gufunc_loop *loop, const struct matrices *x)
{
    const double work = multiplications(x);
    return !loop->has_blas || work <= (x->m == 1 || x->n == 1 ? SERIAL_BLAS_VECTOR : SERIAL_BLAS);
}

/* NumPy's vecmat of complex numbers takes every output for contiguous (seen from 2.2 to 2.5). */
static bool numpy_ignores_out_step(const struct gufunc_loop *loop, const struct matrices *x)
{
    return loop->gufunc == VECMAT && loop->is_complex && x->n > 1 && x->c_column != loop->item_size;
}

static void run_vecmat_by_columns(const struct gufunc_loop *loop, char **args,
                                  const npy_intp *dimensions, const npy_intp *steps)
{
    const npy_intp column_dimensions[] = {dimensions[0], dimensions[1], 1};
    for (npy_intp i = 0; i < dimensions[2]; i++) {
        /* The loop advances them. */
        char *column[] = {args[0], args[1] + i * steps[5], args[2] + i * steps[6]};
        loop->numpy_function(column, column_dimensions, steps, loop->numpy_data);
    }
}

void gufunc_run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    static const int dimension_counts[] = {[MATMUL] = 4, [VECDOT] = 2, [MATVEC] = 3, [VECMAT] = 3};
    const struct gufunc_loop *loop = data;
    if (loop->gufunc == MATMUL && is_tiny(dimensions)) {
        count_call(&gufunc_counts.numpys);
        loop->numpy_function(args, dimensions, steps, loop->numpy_data);
        return;
    }
    const struct matrices x = matrices_of(loop->gufunc, args, dimensions, steps);
    const struct stack stack = {dimensions[0], steps[0], steps[1], steps[2]};
    const bool by_bits = loop->bits != NULL && suits_bits(loop, &x);
    const bool by_kernel = loop->kernel != NULL && suits_kernel(loop, &x);
    count_call(by_bits || by_kernel ? &gufunc_counts.ours : &gufunc_counts.numpys);
    if (by_bits) {
        matmul_bits_run(&policy_in_use, loop->bits, &x, &stack);
    } else if (by_kernel) {
        matmul_run(&policy_in_use, loop->kernel, &x, &stack);
    } else if (numpy_ignores_out_step(loop, &x)) {
        run_vecmat_by_columns(loop, args, dimensions, steps);
    } else if (stack.count > 1 && may_split_numpy(loop, &x)) {
        struct numpy_call call = {loop, args, dimensions, steps, dimension_counts[loop->gufunc]};
        const double work = multiplications(&x);
        matmul_split(&policy_in_use, stack.count, 10 + work * (loop->has_blas ? 0.05 : 0.5),
                     run_numpy, &call);
    } else {
        loop->numpy_function(args, dimensions, steps, loop->numpy_data);
    }
}

/* ---- matvec and vecmat for a NumPy without them ---- */

struct made_row {
    PyUFuncGenericFunction function;
    void *data;
};

struct made {
    struct made_row rows[MOST_ROWS];
    PyUFuncGenericFunction functions[MOST_ROWS];
    void *data[MOST_ROWS];
    char types[3 * MOST_ROWS];
};

static void matvec_by_matmul(char **args, const npy_intp *dimensions, const npy_intp *steps,
                             void *data)
{
    const struct made_row *matmul = data;
    const npy_intp matmul_dimensions[] = {dimensions[0], dimensions[1], dimensions[2], 1};
    const npy_intp matmul_steps[] = {steps[0], steps[1], steps[2], steps[3], steps[4],
                                     steps[5], 0,        steps[6], 0};
    matmul->function(args, matmul_dimensions, matmul_steps, matmul->data);
}

/* vecdot conjugates its first operand, as vecmat does; its outer loop runs over the columns. */
static void vecmat_by_vecdot(char **args, const npy_intp *dimensions, const npy_intp *steps,
                             void *data)
{
    const struct made_row *vecdot = data;
    const npy_intp vecdot_dimensions[] = {dimensions[2], dimensions[1]};
    const npy_intp vecdot_steps[] = {0, steps[5], steps[6], steps[3], steps[4]};
    for (npy_intp i = 0; i < dimensions[0]; i++) {
        /* The loop advances them. */
        char *part[] = {args[0] + i * steps[0], args[1] + i * steps[1], args[2] + i * steps[2]};
        vecdot->function(part, vecdot_dimensions, vecdot_steps, vecdot->data);
    }
}

PyObject *gufunc_make(const char *name, PyUFuncObject *matmul, PyUFuncObject *vecdot)
{
    static struct made made[2];
    static PyObject *ufuncs[2]; /* kept: there is one table for each */
    enum gufunc gufunc;
    if (!gufunc_is_named(name, &gufunc) || gufunc < MATVEC) {
        return PyErr_Format(PyExc_ValueError, "not 'matvec' or 'vecmat': '%s'", name);
    }
    if (ufuncs[gufunc - MATVEC] != NULL) {
        return Py_NewRef(ufuncs[gufunc - MATVEC]);
    }
    const PyUFuncObject *source = gufunc == MATVEC ? matmul : vecdot;
    struct made *new = &made[gufunc - MATVEC];
    if (source->ntypes > MOST_ROWS || source->nargs != 3) {
        return PyErr_Format(PyExc_RuntimeError, "cannot make %s", name);
    }
    for (int row = 0; row < source->ntypes; row++) {
        new->rows[row] = (struct made_row){source->functions[row],
                                           source->data != NULL ? source->data[row] : NULL};
        new->functions[row] = gufunc == MATVEC ? matvec_by_matmul : vecmat_by_vecdot;
        new->data[row] = &new->rows[row];
    }
    memcpy(new->types, source->types, 3 * (size_t)source->ntypes);
    const bool is_matvec = gufunc == MATVEC;
    PyUFuncObject *ufunc = (PyUFuncObject *)PyUFunc_FromFuncAndDataAndSignature(
        new->functions, new->data, new->types, source->ntypes, 2, 1, PyUFunc_None,
        is_matvec ? "matvec" : "vecmat", "", 0, is_matvec ? "(m,n),(n)->(m)" : "(n),(n,m)->(m)");
    if (ufunc != NULL) {
        ufunc->type_resolver = matmul->type_resolver;
        if (matmul->op_flags != NULL && ufunc->op_flags != NULL) {
            memcpy(ufunc->op_flags, matmul->op_flags, 3 * sizeof *ufunc->op_flags);
        }
    }
    ufuncs[gufunc - MATVEC] = Py_XNewRef((PyObject *)ufunc);
    return (PyObject *)ufunc;
}
