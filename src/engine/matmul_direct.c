/* What a thin product reads several times is copied first, to where vectors can read it. */
#include "matmul_direct.h"

#include "kernels/copy/tile_pack.h"
#include "kernels/sizes.h"
#include "matmul_cutoffs.h"
#include "memory/workspace.h"
#include "threads/region.h"

/* Vectors need contiguous columns of b and of c, or contiguous k of a and b. */
struct copies {
    bool a, b;
    bool for_dots; /* columns of b become contiguous, else rows */
};

static struct copies copies_for(const struct matmul_kernel *kernel, const struct product *x)
{
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    const bool rows_are_vectors =
        x->c.column_step == size && (x->n > THIN_SIDE || x->n * size >= COPY_LEAST_ROW_BYTES);
    const bool has_rows = rows_are_vectors && x->b.column_step == size;
    const bool a_suits = x->a.column_step == size || x->n > 1;
    const bool b_suits = x->b.row_step == size || x->m > 1;
    const struct copies none = {false};
    if (x->a.column_step == size && x->b.row_step == size &&
        (x->k >= COPY_LONG_DOT || !rows_are_vectors)) {
        return none;
    }
    const bool gains_by_dots = kernel->kind == 'i' && x->k >= COPY_LONG_DOT;
    if (gains_by_dots && x->n <= DOTS_MOST_COLUMNS && a_suits && b_suits &&
        !(has_rows && x->m <= THIN_SIDE)) {
        return (struct copies){x->a.column_step != size, x->b.row_step != size, true};
    }
    if (gains_by_dots && x->m <= THIN_MOST_SIDE && x->n > 1 && x->b.row_step == size && !has_rows) {
        return (struct copies){.a = true, .for_dots = true};
    }
    if (has_rows) {
        return none;
    }
    if (rows_are_vectors) {
        return (struct copies){.b = x->m > 1};
    }
    const bool is_read_often = x->n > COPY_LEAST_COLUMNS || x->k >= COPY_LONG_DOT;
    return x->b.row_step == size && is_read_often ? (struct copies){.a = x->n > 1, .for_dots = true}
                                                  : none;
}

static void copy_a(struct product *x, char *to, ptrdiff_t size)
{
    const struct tile tile = {x->a.data, x->m, x->k, x->a.row_step, x->a.column_step};
    tile_pack((size_t)size, &tile, to);
    x->a = (struct strided){to, 0, x->k * size, size};
}

static void copy_b(struct product *x, char *to, ptrdiff_t size, bool for_dots)
{
    if (for_dots) {
        const struct tile tile = {x->b.data, x->n, x->k, x->b.column_step, x->b.row_step};
        tile_pack((size_t)size, &tile, to);
        x->b = (struct strided){to, 0, size, x->k * size};
    } else {
        const struct tile tile = {x->b.data, x->k, x->n, x->b.row_step, x->b.column_step};
        tile_pack((size_t)size, &tile, to);
        x->b = (struct strided){to, 0, x->n * size, size};
    }
}

void matmul_direct(const struct matmul_kernel *kernel, const struct product *product)
{
    const struct copies copies = copies_for(kernel, product);
    if (!copies.a && !copies.b) {
        kernel->direct(product);
        return;
    }
    _Alignas(64) char near[COPY_TO_STACK_BYTES];
    struct product x = *product;
    struct workspace workspace = {0};
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    const ptrdiff_t a_bytes = copies.a ? x.m * x.k * size : 0;
    const ptrdiff_t bytes = a_bytes + (copies.b ? x.k * x.n * size : 0);
    char *to = near;
    if (bytes > COPY_TO_STACK_BYTES) {
        workspace = bytes <= COPY_MOST_BYTES ? workspace_take((size_t)bytes) : workspace;
        to = workspace.data;
    }
    if (to != NULL && copies.a) {
        copy_a(&x, to, size);
    }
    if (to != NULL && copies.b) {
        copy_b(&x, to + a_bytes, size, copies.for_dots);
    }
    kernel->direct(&x);
    workspace_give_back(workspace);
}

/* The longer side is cut, but whole rows are written sooner where that is all there is to do. */
static bool is_cut_by_columns(const struct matmul_kernel *kernel, const struct product *x)
{
    return x->n >= x->m && kernel->kind != 'f';
}

/* A byte or two gain more by packing: one instruction multiplies several. */
bool matmul_direct_gains(ptrdiff_t size, const struct product *x)
{
    if (x->m <= THIN_SIDE || x->n <= THIN_SIDE || x->k <= THIN_MOST_K ||
        (x->m <= THIN_MOST_SIDE && x->n <= THIN_MOST_SIDE)) {
        return true;
    }
    const ptrdiff_t side = size_min(THIN_SIDE * size, THIN_MOST_SIDE);
    const bool has_dots = x->k >= COPY_LONG_DOT;
    const bool has_rows = x->b.column_step == size && x->c.column_step == size &&
                          (double)x->k * (double)x->n * (double)size <= THIN_NEAR_BYTES;
    return (x->n <= side && has_dots && x->a.column_step == size) ||
           (x->m <= side && (has_rows || (has_dots && x->b.row_step == size)));
}

struct cut_product {
    const struct matmul_kernel *kernel;
    const struct product *product;
};

static void run_cut(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct cut_product *cut = context;
    struct product x = *cut->product;
    const bool by_columns = is_cut_by_columns(cut->kernel, &x);
    ptrdiff_t *const side = by_columns ? &x.n : &x.m;
    const ptrdiff_t before = first * RANGE_SIDE;
    *side = size_min(*side - before, count * RANGE_SIDE);
    if (by_columns) {
        x.b.data += before * x.b.column_step;
        x.c.data += before * x.c.column_step;
    } else {
        x.a.data += before * x.a.row_step;
        x.c.data += before * x.c.row_step;
    }
    matmul_direct(cut->kernel, &x);
}

void matmul_ranges(const struct policy *policy, const struct matmul_kernel *kernel,
                   const struct product *product, int threads)
{
    struct cut_product cut = {kernel, product};
    const ptrdiff_t side = is_cut_by_columns(kernel, product) ? product->n : product->m;
    region_run_ranges(policy, threads, ceiling(side, RANGE_SIDE), 0, run_cut, &cut);
}
