/* How a product, or a stack of them, is computed: directly or packed, on how many threads. */
#include "kernels/copy/tile_pack.h"
#include "matmul_packed.h"
#include "memory/workspace.h"
#include "threads/limit.h"
#include "threads/region.h"

#include <stdatomic.h>
#include <string.h>

enum {
    BREAK_EVEN_NS = 40000, /* twice what a region costs whose workers sleep */
    THIN = 4,              /* so few rows, columns or multiplications are not worth packing */
    DIRECT_MOST = 32 * 32 * 32,
    DIRECT_FEW = 4 * 4 * 4, /* where `direct` goes one by one */
    /* From here on kernels of large tiles pay, at half of their speed where 33 rows take two tiles. */
    LARGE = 96 * 96 * 96,
    LARGE_SIDE = 32,
    NEAR_BYTES = 8192, /* what fits the stack, and the first level of cache */
    COPIED_BYTES = 512 << 10,
    LEAST_VECTOR = 16, /* bytes of a row that are worth vectors */
    LONG_DOT = 32,
};

int matmul_threads(const struct policy *policy, double ns)
{
    if ((policy->threshold == 0 && ns < BREAK_EVEN_NS) || !region_available()) {
        return 1;
    }
    return threads_limit().threads;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

/* Steps of dimensions of one element mean nothing: let them say "next to each other". */
static void normalise(struct matrices *x, ptrdiff_t size)
{
    if (x->m == 1) {
        x->a_row = x->c_row = size;
    }
    if (x->k == 1) {
        x->a_k = x->b_k = size;
    }
    if (x->n == 1) {
        x->b_column = x->c_column = size;
    }
}

/* The same product, computed as c^T = b^T a^T. */
static void transpose(struct matrices *x)
{
    *x = (struct matrices){x->b,     x->a,        x->c,     x->b_column, x->b_k, x->a_k,
                           x->a_row, x->c_column, x->c_row, x->n,        x->k,   x->m};
}

/* Tiles and vectors run along rows of c: they should be long, and their elements neighbours. */
static bool wants_transposition(const struct matmul_kernel *kernel, const struct matrices *x)
{
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    if (x->c_row != size) {
        return false;
    }
    if (x->c_column != size) {
        return true;
    }
    return x->n < x->m && x->n < (kernel->rows > 0 ? kernel->columns : 64 / size);
}

static void zero(const struct matrices *x, size_t size)
{
    for (ptrdiff_t row = 0; row < x->m; row++) {
        for (ptrdiff_t column = 0; column < x->n; column++) {
            memset(x->c + row * x->c_row + column * x->c_column, 0, size);
        }
    }
}

/* What of a thin or small product is copied first, because it is read several times: vectors need the
 * columns of b and of c next to each other, or k of a and b. */
struct copies {
    bool a, b;
    bool for_dots; /* b's columns become rows */
};

static struct copies copies_for(const struct matmul_kernel *kernel, const struct matrices *x)
{
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    const bool rows_are_vectors =
        x->c_column == size && (x->n > THIN || x->n * size >= LEAST_VECTOR);
    const bool has_rows = rows_are_vectors && x->b_column == size;
    const bool a_suits = x->a_k == size || x->n > 1, b_suits = x->b_k == size || x->m > 1;
    struct copies copies = {false};
    if (x->a_k == size && x->b_k == size && (x->k >= LONG_DOT || !rows_are_vectors)) {
        return copies;
    }
    if (kernel->kind == 'i' && x->n <= THIN && x->k >= LONG_DOT && a_suits && b_suits &&
        !(has_rows && x->m <= THIN)) {
        copies = (struct copies){x->a_k != size, x->b_k != size, true};
    } else if (has_rows) {
        return copies;
    } else if (rows_are_vectors) {
        copies.b = x->m > 1;
    } else if (x->b_k == size) {
        copies = (struct copies){x->n > 1, false, true};
    }
    return copies;
}

/* Copies a matrix of `rows` rows of `columns` elements so that the columns are next to each other. */
static void bring_together(char *to, const char **matrix, ptrdiff_t *row, ptrdiff_t *column,
                           ptrdiff_t rows, ptrdiff_t columns, ptrdiff_t size)
{
    const struct tile tile = {*matrix, rows, columns, *row, *column};
    tile_pack((size_t)size, &tile, to);
    *matrix = to;
    *row = columns * size;
    *column = size;
}

/* Small or thin matrices. */
static void run_direct(const struct matmul_kernel *kernel, struct matrices x)
{
    _Alignas(64) char near[NEAR_BYTES];
    struct workspace workspace = {0};
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    const struct copies copies = copies_for(kernel, &x);
    const ptrdiff_t a_bytes = copies.a ? x.m * x.k * size : 0;
    const ptrdiff_t bytes = a_bytes + (copies.b ? x.k * x.n * size : 0);
    char *to = near;
    if (bytes > NEAR_BYTES) {
        workspace = bytes <= COPIED_BYTES ? workspace_take((size_t)bytes) : workspace;
        to = workspace.data;
    }
    if (to != NULL && copies.a) {
        bring_together(to, &x.a, &x.a_row, &x.a_k, x.m, x.k, size);
    }
    if (to != NULL && copies.b && copies.for_dots) {
        bring_together(to + a_bytes, &x.b, &x.b_column, &x.b_k, x.n, x.k, size);
    } else if (to != NULL && copies.b) {
        bring_together(to, &x.b, &x.b_k, &x.b_column, x.k, x.n, size);
    }
    kernel->direct(&x);
    workspace_give_back(workspace);
}

struct strips {
    const struct matmul_kernel *kernel;
    const struct matrices *x;
};

enum { STRIP = 256 };

/* Columns, or rows where there are more of them. */
static void run_strips(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct strips *strips = context;
    struct matrices x = *strips->x;
    if (x.n >= x.m) {
        x.b += first * STRIP * x.b_column;
        x.c += first * STRIP * x.c_column;
        x.n = x.n - first * STRIP < count * STRIP ? x.n - first * STRIP : count * STRIP;
    } else {
        x.a += first * STRIP * x.a_row;
        x.c += first * STRIP * x.c_row;
        x.m = x.m - first * STRIP < count * STRIP ? x.m - first * STRIP : count * STRIP;
    }
    run_direct(strips->kernel, x);
}

static double macs_of(const struct matrices *x)
{
    return (double)x->m * (double)x->n * (double)x->k;
}

static double ns_of(const struct matmul_kernel *kernel, const struct matrices *x)
{
    const double elements =
        (double)x->m * (double)x->k + (double)x->k * (double)x->n + (double)x->m * (double)x->n;
    return macs_of(x) * (kernel->item_size == 16 ? 1.0 : 0.05) + elements * 0.2;
}

static const struct matmul_kernel *kernel_for(const struct matmul_kernel *kernel,
                                              const struct matrices *x)
{
    const bool large = macs_of(x) >= LARGE && x->m >= LARGE_SIDE && x->n >= LARGE_SIDE;
    return large ? matmul_kernel_find(kernel->kind, kernel->item_size, true) : kernel;
}

static void run_one(const struct policy *policy, const struct matmul_kernel *kernel,
                    const struct matrices *matrices, bool may_split)
{
    struct matrices x = *matrices;
    if (wants_transposition(kernel, &x)) {
        transpose(&x);
    }
    const bool packing_pays_early = kernel->kind == 'e' || kernel->item_size == 16;
    const bool small = macs_of(&x) <= (packing_pays_early ? DIRECT_FEW : DIRECT_MOST);
    if (kernel->rows == 0 || small) {
        run_direct(kernel, x);
        return;
    }
    const bool is_vector = x.m == 1 || x.n == 1;
    const bool thin = kernel->kind == 'i' ? x.m <= THIN || x.n <= THIN || x.k <= THIN
                                          : kernel->item_size == 16 && is_vector;
    const int threads = may_split ? matmul_threads(policy, ns_of(kernel, &x)) : 1;
    if (!thin && matmul_packed(policy, kernel_for(kernel, &x), &x, threads)) {
        return;
    }
    struct strips strips = {kernel, &x};
    const ptrdiff_t longer = x.n >= x.m ? x.n : x.m;
    matmul_split(policy, (longer + STRIP - 1) / STRIP, threads > 1 ? 1e9 : 0, run_strips, &strips);
}

/* ---- stacks ---- */

struct split {
    matmul_part *run;
    void *context;
    ptrdiff_t count, part;
    _Atomic ptrdiff_t next;
};

static void run_parts(void *context, int index)
{
    (void)index;
    struct split *split = context;
    ptrdiff_t first;
    while ((first = atomic_fetch_add(&split->next, split->part)) < split->count) {
        const ptrdiff_t left = split->count - first;
        split->run(split->context, first, left < split->part ? left : split->part);
    }
}

void matmul_split(const struct policy *policy, ptrdiff_t count, double ns, matmul_part *run,
                  void *context)
{
    const int threads = count > 1 ? matmul_threads(policy, ns * (double)count) : 1;
    if (threads == 1) {
        run(context, 0, count);
        return;
    }
    const ptrdiff_t part = count / (8 * (ptrdiff_t)threads);
    struct split split = {run, context, count, part > 0 ? part : 1, 0};
    region_run(policy, threads, run_parts, &split);
}

struct stack_run {
    const struct policy *policy;
    const struct matmul_kernel *kernel;
    const struct matrices *x;
    const struct stack *stack;
    bool may_split;
};

static void run_stack(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct stack_run *run = context;
    struct matrices x = *run->x;
    x.a += first * run->stack->a;
    x.b += first * run->stack->b;
    x.c += first * run->stack->c;
    const struct stack part = {count, run->stack->a, run->stack->b, run->stack->c};
    const bool small = x.k > 0 && macs_of(&x) <= DIRECT_MOST;
    if (small && run->kernel->stack != NULL && run->kernel->stack(&x, &part)) {
        return;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        if (x.k == 0) {
            zero(&x, run->kernel->item_size);
        } else {
            run_one(run->policy, run->kernel, &x, run->may_split);
        }
        x.a += run->stack->a;
        x.b += run->stack->b;
        x.c += run->stack->c;
    }
}

void matmul_run(const struct policy *policy, const struct matmul_kernel *kernel,
                const struct matrices *matrices, const struct stack *stack)
{
    struct matrices x = *matrices;
    normalise(&x, (ptrdiff_t)kernel->item_size);
    if (x.m == 0 || x.n == 0 || stack->count == 0) {
        return;
    }
    struct stack_run run = {policy, kernel, &x, stack, false};
    const double ns = ns_of(kernel, &x);
    const int threads = matmul_threads(policy, ns * (double)stack->count);
    /* A few large matrices are better split themselves. */
    if (threads > 1 && ns > BREAK_EVEN_NS * 10.0 && stack->count < 4 * (ptrdiff_t)threads) {
        run.may_split = true;
        run_stack(&run, 0, stack->count);
    } else if (threads > 1 && stack->count == 1) {
        run.may_split = true;
        run_stack(&run, 0, 1);
    } else {
        matmul_split(policy, stack->count, most(ns, 20), run_stack, &run);
    }
}
