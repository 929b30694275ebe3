/* What is known of a gufunc's loops, and how NumPy's are called: converts between NumPy's dimensions and steps
 * and struct product. */
#include "matmul_loop.h"

#include "devices.h"
#include "dtypes.h"
#include "threads/blas_threads.h"

#include <string.h>

enum { MOST_ROWS = 64 };

/* NumPy's loops of matmul by type: a joined stack of another gufunc is a product of matrices. They are static
 * in NumPy, and outlive every clone. */
static struct matmul_function {
    PyUFuncGenericFunction function;
    void *data;
} matmul_functions[DTYPES];

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

/* Of kernels. Halves have a kind of their own. */
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
    if (loop->gufunc == MATMUL) {
        matmul_functions[type] = (struct matmul_function){numpy_function, numpy_data};
    }
    const struct dtype dtype = dtype_of(type);
    const bool has_blas =
        type == NPY_FLOAT || type == NPY_DOUBLE || type == NPY_CFLOAT || type == NPY_CDOUBLE;
    /* BLAS is left to products of two matrices alone: those of vectors gain nothing. No kernel
     * conjugates its first operand. */
    const bool conjugates = dtype.kind == 'c' && (loop->gufunc == VECDOT || loop->gufunc == VECMAT);
    const bool has_kernel = (!has_blas || loop->gufunc == MATMUL) && !conjugates;
    const struct matmul_kernel *floats =
        has_blas ? matmul_kernel_find('f', dtype.size / (dtype.kind == 'c' ? 2 : 1), false) : NULL;
    loop->dtype = (struct matmul_dtype){
        .thin = floats != NULL ? floats->thin : NULL,
        .is_complex = dtype.kind == 'c',
        .conjugates = conjugates,
        .kernel = has_kernel ? matmul_kernel_find(kind_of(type), dtype.size, false) : NULL,
        .large = has_kernel ? matmul_kernel_find(kind_of(type), dtype.size, true) : NULL,
        .item_size = (ptrdiff_t)dtype.size,
        .is_vecdot = loop->gufunc == VECDOT,
        .has_blas = has_blas,
    };
    loop->type = type;
    loop->has_devices = loop->gufunc == MATMUL && device_has_type(type, &loop->device_type);
    return matmul_functions[type].function != NULL;
}

/* ---- NumPy's loops ---- */

struct product gufunc_product(enum gufunc gufunc, char **args, const npy_intp *dimensions,
                              const npy_intp *steps)
{
    struct product x = {.batch = dimensions[0],
                        .m = 1,
                        .n = 1,
                        .a = {args[0], steps[0], 0, 0},
                        .b = {args[1], steps[1], 0, 0},
                        .c = {args[2], steps[2], 0, 0}};
    const npy_intp *core = steps + 3;
    switch (gufunc) {
    case MATMUL:
        x.m = dimensions[1], x.k = dimensions[2], x.n = dimensions[3];
        x.a.row_step = core[0], x.a.column_step = core[1];
        x.b.row_step = core[2], x.b.column_step = core[3];
        x.c.row_step = core[4], x.c.column_step = core[5];
        break;
    case VECDOT:
        x.k = dimensions[1];
        x.a.column_step = core[0], x.b.row_step = core[1];
        break;
    case MATVEC:
        x.m = dimensions[1], x.k = dimensions[2];
        x.a.row_step = core[0], x.a.column_step = core[1], x.b.row_step = core[2];
        x.c.row_step = core[3];
        break;
    case VECMAT:
        x.k = dimensions[1], x.n = dimensions[2];
        x.a.column_step = core[0], x.b.row_step = core[1], x.b.column_step = core[2];
        x.c.column_step = core[3];
        break;
    }
    return x;
}

/* NumPy's vecmat of complex numbers takes every output for contiguous (seen from 2.2 to 2.5). */
static bool numpy_ignores_out_step(const struct gufunc_loop *loop, const struct product *x)
{
    return loop->gufunc == VECMAT && loop->dtype.is_complex && x->n > 1 &&
           x->c.column_step != loop->dtype.item_size;
}

/* Which of NumPy's gufuncs computes it: joined stacks are more than their own has a name for. */
static enum gufunc gufunc_for(const struct gufunc_loop *loop, const struct product *x)
{
    const bool is_more =
        (x->m > 1 && loop->gufunc != MATVEC) || (x->n > 1 && loop->gufunc != VECMAT);
    return is_more ? MATMUL : loop->gufunc;
}

/* The inverse of gufunc_product(). Loops advance `args`, hence the copy. */
static void call_numpy(const struct gufunc_loop *loop, const struct product *x)
{
    char *args[] = {x->a.data, x->b.data, x->c.data};
    npy_intp dimensions[4] = {x->batch};
    npy_intp steps[9] = {x->a.batch_step, x->b.batch_step, x->c.batch_step}, *core = steps + 3;
    const enum gufunc gufunc = gufunc_for(loop, x);
    switch (gufunc) {
    case MATMUL:
        dimensions[1] = x->m, dimensions[2] = x->k, dimensions[3] = x->n;
        core[0] = x->a.row_step, core[1] = x->a.column_step;
        core[2] = x->b.row_step, core[3] = x->b.column_step;
        core[4] = x->c.row_step, core[5] = x->c.column_step;
        break;
    case VECDOT:
        dimensions[1] = x->k;
        core[0] = x->a.column_step, core[1] = x->b.row_step;
        break;
    case MATVEC:
        dimensions[1] = x->m, dimensions[2] = x->k;
        core[0] = x->a.row_step, core[1] = x->a.column_step, core[2] = x->b.row_step;
        core[3] = x->c.row_step;
        break;
    case VECMAT:
        dimensions[1] = x->k, dimensions[2] = x->n;
        core[0] = x->a.column_step, core[1] = x->b.row_step, core[2] = x->b.column_step;
        core[3] = x->c.column_step;
        break;
    }
    if (gufunc == loop->gufunc) {
        loop->numpy_function(args, dimensions, steps, loop->numpy_data);
    } else {
        const struct matmul_function *matmul = &matmul_functions[loop->type];
        matmul->function(args, dimensions, steps, matmul->data);
    }
}

struct numpy_call {
    const struct gufunc_loop *loop;
    const struct product *product;
};

void gufunc_call_numpy(const struct gufunc_loop *loop, const struct product *product)
{
    if (!numpy_ignores_out_step(loop, product)) {
        call_numpy(loop, product);
        return;
    }
    struct product x = *product;
    for (ptrdiff_t columns = x.n; columns > 0; columns--) {
        x.n = 1;
        call_numpy(loop, &x);
        x.b.data += x.b.column_step;
        x.c.data += x.c.column_step;
    }
}

static void run_numpy(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct numpy_call *call = context;
    struct product x = *call->product;
    x.batch = count;
    x.a.data += first * x.a.batch_step;
    x.b.data += first * x.b.batch_step;
    x.c.data += first * x.c.batch_step;
    gufunc_call_numpy(call->loop, &x);
}

void gufunc_by_numpy(const struct gufunc_loop *loop, const struct product *product,
                     const struct matmul_plan *plan)
{
    struct numpy_call call = {loop, product};
    if (plan->holds_blas) {
        blas_threads_hold(1);
    }
    matmul_run_stack(plan, product->batch, run_numpy, &call);
    if (plan->holds_blas) {
        blas_threads_release();
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
        char *row_args[] = {args[0] + i * steps[0], args[1] + i * steps[1], args[2] + i * steps[2]};
        vecdot->function(row_args, vecdot_dimensions, vecdot_steps, vecdot->data);
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
