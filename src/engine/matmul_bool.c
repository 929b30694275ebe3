/* Products of truth values. */
#include "matmul_packed.h"
#include "memory/workspace.h"

#include <string.h>

enum { ROWS_PER_PART = 8, COLUMNS_PER_PART = 64 };

struct bits_product {
    const struct matmul_bits *kernel;
    const struct matrices *x;
    uint64_t *a, *b;
    ptrdiff_t a_words, b_words;
};

static void pack_a(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct bits_product *product = context;
    const struct matrices *x = product->x;
    const ptrdiff_t row = 64 * first, left = x->m - row;
    product->kernel->pack(product->a + row * product->a_words, product->a_words,
                          x->a + row * x->a_row, x->a_row, x->a_k,
                          left < 64 * count ? left : 64 * count, x->k);
}

static void pack_b(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct bits_product *product = context;
    const struct matrices *x = product->x;
    const ptrdiff_t row = 64 * first, left = x->k - row;
    product->kernel->pack(product->b + row * product->b_words, product->b_words,
                          x->b + row * x->b_k, x->b_k, x->b_column,
                          left < 64 * count ? left : 64 * count, x->n);
}

static void multiply(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct bits_product *product = context;
    const ptrdiff_t row = first * ROWS_PER_PART, left = product->x->m - row;
    product->kernel->multiply(product->a, product->a_words, product->b, product->b_words,
                              product->x, row,
                              left < count * ROWS_PER_PART ? left : count * ROWS_PER_PART);
}

static bool run_packed(const struct policy *policy, const struct matmul_bits *kernel,
                       const struct matrices *x, bool may_split)
{
    struct bits_product product = {
        .kernel = kernel, .x = x, .a_words = (x->k + 63) / 64, .b_words = (x->n + 63) / 64};
    const size_t b_bytes = (size_t)((x->k * product.b_words + 7) / 8 * 64);
    const size_t a_bytes = (size_t)(x->m * product.a_words * 8);
    const struct workspace workspace = workspace_take(b_bytes + a_bytes);
    if (workspace.data == NULL) {
        return false;
    }
    product.b = (uint64_t *)workspace.data;
    product.a = (uint64_t *)(workspace.data + b_bytes);
    const double a_ns = may_split ? (double)x->k * 4 : 0, b_ns = may_split ? (double)x->n * 4 : 0;
    const double ns = may_split ? (double)(x->k + x->n) * ROWS_PER_PART : 0;
    matmul_split(policy, (x->m + 63) / 64, a_ns, pack_a, &product);
    matmul_split(policy, (x->k + 63) / 64, b_ns, pack_b, &product);
    matmul_split(policy, (x->m + ROWS_PER_PART - 1) / ROWS_PER_PART, ns, multiply, &product);
    workspace_give_back(workspace);
    return true;
}

/* Few rows, by columns whose elements are neighbours. */
static void dots(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct bits_product *product = context;
    struct matrices x = *product->x;
    const ptrdiff_t column = first * COLUMNS_PER_PART, left = x.n - column;
    x.b += column * x.b_column;
    x.c += column * x.c_column;
    x.n = left < count * COLUMNS_PER_PART ? left : count * COLUMNS_PER_PART;
    const struct workspace workspace = workspace_take((size_t)(x.m * product->a_words * 8));
    if (workspace.data == NULL) {
        product->kernel->direct(&x);
        return;
    }
    product->kernel->dots(&x, (uint64_t *)workspace.data);
    workspace_give_back(workspace);
}

static void run_dots(const struct policy *policy, const struct matmul_bits *kernel,
                     const struct matrices *x, bool may_split)
{
    struct bits_product product = {.kernel = kernel, .x = x, .a_words = (x->k + 63) / 64};
    const double ns = may_split ? (double)x->k * COLUMNS_PER_PART * 0.05 : 0;
    matmul_split(policy, (x->n + COLUMNS_PER_PART - 1) / COLUMNS_PER_PART, ns, dots, &product);
}

static void transpose(struct matrices *x)
{
    *x = (struct matrices){x->b,     x->a,        x->c,     x->b_column, x->b_k, x->a_k,
                           x->a_row, x->c_column, x->c_row, x->n,        x->k,   x->m};
}

static void run_one(const struct policy *policy, const struct matmul_bits *kernel,
                    const struct matrices *matrices, bool may_split)
{
    struct matrices x = *matrices;
    if (x.n < x.m && x.n <= MOST_DOT_ROWS) {
        transpose(&x);
    }
    const bool thin = x.m <= MOST_DOT_ROWS;
    if (thin && x.m > 1 && x.b_k == 1 && x.b_column != 1) {
        run_dots(policy, kernel, &x, may_split);
    } else if (thin || !run_packed(policy, kernel, &x, may_split)) {
        kernel->direct(&x);
    }
}

struct bits_stack {
    const struct policy *policy;
    const struct matmul_bits *kernel;
    const struct matrices *x;
    const struct stack *stack;
    bool may_split;
};

static void run_stack(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct bits_stack *run = context;
    struct matrices x = *run->x;
    x.a += first * run->stack->a;
    x.b += first * run->stack->b;
    x.c += first * run->stack->c;
    for (ptrdiff_t i = 0; i < count; i++) {
        run_one(run->policy, run->kernel, &x, run->may_split);
        x.a += run->stack->a;
        x.b += run->stack->b;
        x.c += run->stack->c;
    }
}

void matmul_bits_run(const struct policy *policy, const struct matmul_bits *kernel,
                     const struct matrices *x, const struct stack *stack)
{
    if (x->m == 0 || x->n == 0 || stack->count == 0) {
        return;
    }
    struct bits_stack run = {policy, kernel, x, stack, true};
    const double elements =
        (double)x->m * (double)x->k + (double)x->k * (double)x->n + (double)x->m * (double)x->n;
    if (elements < 1e6 && stack->count > 1) {
        run.may_split = false;
        matmul_split(policy, stack->count, 20 + elements * 0.1, run_stack, &run);
    } else {
        run_stack(&run, 0, stack->count);
    }
}
