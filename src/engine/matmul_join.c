/* Joins the products of a stack: BLAS reads the repeated operand once for all of them, not once for each. */
#include "matmul_join.h"

#include "kernels/copy/tile_unpack.h"
#include "kernels/matmul/product_steps.h"
#include "kernels/sizes.h"
#include "matmul_cutoffs.h"
#include "memory/workspace.h"
#include "threads/region.h"

/* ---- by other steps ---- */

/* Whether the stack's rows follow each other; then row_step is that of all. */
static bool joins_rows(struct strided *x, ptrdiff_t batch, ptrdiff_t rows, ptrdiff_t columns,
                       const struct matmul_dtype *dtype)
{
    if (rows == 1) {
        x->row_step = x->batch_step;
    }
    return x->batch_step == rows * x->row_step &&
           (!dtype->has_blas || strided_suits_blas(x, batch * rows, columns, dtype->item_size));
}

/* NumPy makes the product of a matrix and its own transpose exactly symmetric, in a stack, too. */
static bool may_be_symmetric(const struct product *x)
{
    const ptrdiff_t first = x->b.data - x->a.data, last = (x->batch - 1) * x->a.batch_step;
    return x->m == x->n && x->a.row_step == x->b.column_step && x->a.column_step == x->b.row_step &&
           first >= size_min(last, 0) && first <= size_max(last, 0);
}

static bool join_rows(const struct matmul_dtype *dtype, struct product *x)
{
    struct product joined = *x;
    if (x->b.batch_step != 0 || x->a.batch_step == 0 || x->m > MOST_JOINED_ROWS / x->batch ||
        !joins_rows(&joined.a, x->batch, x->m, x->k, dtype) ||
        !joins_rows(&joined.c, x->batch, x->m, x->n, dtype) ||
        (dtype->has_blas && may_be_symmetric(x))) {
        return false;
    }
    joined.m *= joined.batch;
    joined.batch = 1;
    joined.a.batch_step = joined.c.batch_step = 0;
    *x = joined;
    return true;
}

/* Whether BLAS multiplies a matrix by so many vectors in less time than by each: it packs the matrix first, and for
 * few of them its kernels are slower. */
static bool vectors_gain(const struct matmul_dtype *dtype, ptrdiff_t vectors, ptrdiff_t rows,
                         ptrdiff_t k, bool from_left)
{
    if (dtype->is_complex) {
        return k <= JOIN_COMPLEX_SHORT_K ||
               (vectors >= JOIN_COMPLEX_VECTORS && rows >= JOIN_COMPLEX_LEAST_ROWS);
    }
    const bool is_wide = vectors >= JOIN_VECTORS;
    return is_wide ||
           (rows > 1 &&
            (from_left || (vectors <= JOIN_FEW_VECTORS && rows <= JOIN_FEW_VECTORS_MOST_ROWS)));
}

/* Whether BLAS has a kernel for small products, which packs nothing, for each, and all together are little more. */
static bool exceed_small_kernels(const struct product *x)
{
    const double each = (double)(x->m * x->n) * (double)x->k, all = each * (double)x->batch;
    return each <= SMALL_BLAS_MULS && all > SMALL_BLAS_MULS && all < JOIN_NOT_UP_TO_MULS;
}

/* Whether sums of integers take no longer one by one than as a product of a matrix and a vector. */
static bool are_better_apart(const struct matmul_kernel *kernel, const struct product *x)
{
    return kernel->kind == 'i' && x->m == 1 && x->n == 1 &&
           (x->batch < JOIN_LEAST_SUMS || matmul_suits_dots(kernel, x));
}

/* No loop that multiplies matrices conjugates. */
static bool gains(const struct matmul_dtype *dtype, const struct product *x)
{
    const bool repeats_b = x->b.batch_step == 0;
    if (x->batch <= 1 || dtype->conjugates || repeats_b == (x->a.batch_step == 0)) {
        return false;
    }
    if (!dtype->has_blas) {
        return dtype->kernel != NULL && !are_better_apart(dtype->kernel, x) &&
               (double)x->batch * (double)(x->m * x->n) * (double)x->k > TINY_STACK_MULS;
    }
    const ptrdiff_t rows = repeats_b ? x->m : x->n, repeated_rows = repeats_b ? x->n : x->m;
    /* From the first level of cache, BLAS reads the repeated operand as fast as it computes. */
    const double bytes = (double)x->k * (double)repeated_rows * (double)dtype->item_size;
    return rows <= JOIN_MOST_ROWS && bytes > JOIN_FROM_BYTES &&
           (rows > 1 ? dtype->is_complex || !exceed_small_kernels(x)
                     : vectors_gain(dtype, x->batch, repeated_rows, x->k, repeats_b));
}

bool matmul_join(const struct matmul_dtype *dtype, struct product *x)
{
    if (!gains(dtype, x)) {
        return false;
    }
    if (x->b.batch_step == 0) {
        return join_rows(dtype, x);
    }
    struct product other = product_transposed(x);
    if (!join_rows(dtype, &other)) {
        return false;
    }
    *x = product_transposed(&other);
    return true;
}

/* ---- by copies ---- */

/* Some products of a stack, whose rows are copied to `rows` or from there. */
struct row_copies {
    const struct strided *matrix;
    char *rows;
    ptrdiff_t m, columns, size;
    bool back;
};

static void copy_rows(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct row_copies *x = context;
    /* Products of one row are a matrix. */
    const bool single = x->m == 1;
    struct tile tile = {.rows = single ? count : x->m,
                        .columns = x->columns,
                        .row_step = single ? x->matrix->batch_step : x->matrix->row_step,
                        .column_step = x->matrix->column_step};
    const ptrdiff_t bytes = x->m * x->columns * x->size;
    for (ptrdiff_t i = first; i < first + count; i += single ? count : 1) {
        char *data = x->matrix->data + i * x->matrix->batch_step, *rows = x->rows + i * bytes;
        tile.data = x->back ? rows : data;
        if (x->back) {
            tile_unpack((size_t)x->size, &tile, data);
        } else {
            tile_pack((size_t)x->size, &tile, rows);
        }
    }
}

static void copy(const struct policy *policy, struct row_copies *copies, ptrdiff_t batch)
{
    const double ns = (double)batch * (double)copies->m * (double)copies->columns;
    region_run_ranges(policy, threads_for_ns(policy, ns, BREAK_EVEN_NS), batch, 0, copy_rows,
                      copies);
}

static bool copies_pay(const struct matmul_dtype *dtype, const struct product *x)
{
    const ptrdiff_t least = dtype->is_complex ? JOIN_COPY_LEAST_COMPLEX_ROWS : JOIN_COPY_LEAST_ROWS;
    return dtype->has_blas && x->k >= JOIN_COPY_LEAST_SIDE && x->n >= JOIN_COPY_LEAST_SIDE &&
           x->m <= JOIN_COPY_MOST_ROWS && x->batch * x->m >= least && !may_be_symmetric(x);
}

bool matmul_join_copies(const struct policy *policy, const struct matmul_dtype *dtype,
                        const struct product *product, matmul_compute *compute, const void *context)
{
    if (!gains(dtype, product)) {
        return false;
    }
    struct product x = product->b.batch_step == 0 ? *product : product_transposed(product);
    if (!copies_pay(dtype, &x)) {
        return false;
    }
    const ptrdiff_t size = dtype->item_size, batch = x.batch, m = x.m;
    const ptrdiff_t bytes = m * (x.k + x.n) * size;
    const ptrdiff_t most = size_min(batch, size_max(JOIN_COPY_BYTES / bytes, 1));
    const struct workspace workspace = workspace_take((size_t)(most * bytes));
    if (workspace.data == NULL) {
        return false;
    }
    struct row_copies a = {&x.a, workspace.data, m, x.k, size, false};
    struct row_copies c = {&x.c, workspace.data + most * m * x.k * size, m, x.n, size, true};
    for (ptrdiff_t i = 0; i < batch; i += most) {
        const ptrdiff_t count = size_min(most, batch - i);
        copy(policy, &a, count);
        compute(context, &(struct product){1,
                                           count * m,
                                           x.n,
                                           x.k,
                                           {a.rows, 0, x.k * size, size},
                                           x.b,
                                           {c.rows, 0, x.n * size, size}});
        copy(policy, &c, count);
        x.a.data += count * x.a.batch_step;
        x.c.data += count * x.c.batch_step;
    }
    workspace_give_back(workspace);
    return true;
}
