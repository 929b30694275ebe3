/* Up to MOST_DOT_ROWS rows of a are not packed in advance: most sums end at the first true product. */
#include "matmul_bool.h"

#include "matmul_cutoffs.h"
#include "memory/workspace.h"
#include "threads/region.h"

enum { CHUNK_ROWS = 8, CHUNK_COLUMNS = 64, WORD = 64 };

struct bits_run {
    const struct matmul_bits *kernel;
    const struct product *x;
    uint64_t *a, *b;
    ptrdiff_t a_words, b_words;
};

static void pack_a(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct bits_run *run = context;
    const struct product *x = run->x;
    const ptrdiff_t row = WORD * first, left = x->m - row;
    run->kernel->pack(run->a + row * run->a_words, run->a_words, x->a.data + row * x->a.row_step,
                      x->a.row_step, x->a.column_step, left < WORD * count ? left : WORD * count,
                      x->k);
}

static void pack_b(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct bits_run *run = context;
    const struct product *x = run->x;
    const ptrdiff_t row = WORD * first, left = x->k - row;
    run->kernel->pack(run->b + row * run->b_words, run->b_words, x->b.data + row * x->b.row_step,
                      x->b.row_step, x->b.column_step, left < WORD * count ? left : WORD * count,
                      x->n);
}

static void multiply(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct bits_run *run = context;
    const ptrdiff_t row = first * CHUNK_ROWS, left = run->x->m - row;
    run->kernel->multiply(run->a, run->a_words, run->b, run->b_words, run->x, row,
                          left < count * CHUNK_ROWS ? left : count * CHUNK_ROWS);
}

/* Threads for one phase of a product; 1 if the product itself has one. */
static int phase_threads(const struct policy *policy, int threads, double ns)
{
    return threads > 1 ? threads_for_ns(policy, ns, BREAK_EVEN_NS) : 1;
}

static bool run_packed(const struct policy *policy, const struct matmul_bits *kernel,
                       const struct product *x, int threads)
{
    const ptrdiff_t a_words = (x->k + WORD - 1) / WORD, b_words = (x->n + WORD - 1) / WORD;
    const size_t b_bytes = (size_t)((x->k * b_words + 7) / 8 * 64);
    const size_t a_bytes = (size_t)(x->m * a_words * 8);
    const struct workspace workspace = workspace_take(b_bytes + a_bytes);
    if (workspace.data == NULL) {
        return false;
    }
    struct bits_run run = {
        .kernel = kernel,
        .x = x,
        .a = (uint64_t *)(workspace.data + b_bytes),
        .b = (uint64_t *)workspace.data,
        .a_words = a_words,
        .b_words = b_words,
    };
    const ptrdiff_t m_words = (x->m + WORD - 1) / WORD;
    const double a_ns = 4.0 * (double)x->k * (double)m_words;
    const double b_ns = 4.0 * (double)x->n * (double)a_words;
    region_run_ranges(policy, phase_threads(policy, threads, a_ns), m_words, 0, pack_a, &run);
    region_run_ranges(policy, phase_threads(policy, threads, b_ns), a_words, 0, pack_b, &run);
    region_run_ranges(policy, threads, (x->m + CHUNK_ROWS - 1) / CHUNK_ROWS, 0, multiply, &run);
    workspace_give_back(workspace);
    return true;
}

/* Few rows of a, by contiguous columns of b. */
static void dots(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct bits_run *run = context;
    struct product x = *run->x;
    const ptrdiff_t column = first * CHUNK_COLUMNS, left = x.n - column;
    x.b.data += column * x.b.column_step;
    x.c.data += column * x.c.column_step;
    x.n = left < count * CHUNK_COLUMNS ? left : count * CHUNK_COLUMNS;
    const struct workspace workspace = workspace_take((size_t)(x.m * run->a_words * 8));
    if (workspace.data == NULL) {
        run->kernel->direct(&x);
        return;
    }
    run->kernel->dots(&x, (uint64_t *)workspace.data);
    workspace_give_back(workspace);
}

static bool is_few_dots(const struct product *x)
{
    return x->m > 1 && x->m <= MOST_DOT_ROWS && x->b.row_step == 1 && x->b.column_step != 1;
}

double matmul_bool_ns(const struct product *x)
{
    return x->m > MOST_DOT_ROWS ? (double)x->m * (double)(x->k + x->n)
           : is_few_dots(x)     ? (double)x->k * (double)x->n * 0.05
                                : 0;
}

void matmul_bool(const struct policy *policy, const struct matmul_bits *kernel,
                 const struct product *x, int threads)
{
    if (is_few_dots(x)) {
        struct bits_run run = {.kernel = kernel, .x = x, .a_words = (x->k + WORD - 1) / WORD};
        region_run_ranges(policy, threads, (x->n + CHUNK_COLUMNS - 1) / CHUNK_COLUMNS, 0, dots,
                          &run);
    } else if (x->m <= MOST_DOT_ROWS || !run_packed(policy, kernel, x, threads)) {
        kernel->direct(x);
    }
}
