/* Most sums end at one of the first true products. So up to MOST_DOT_ROWS rows of a are not packed in advance, and
 * of more only the first few k, as long as these may be enough. */
#include "matmul_bool.h"

#include "kernels/sizes.h"
#include "matmul_cutoffs.h"
#include "memory/workspace.h"
#include "threads/region.h"

enum { CHUNK_ROWS = 8, CHUNK_COLUMNS = 64, WORD = 64 };
/* How many k are looked at first. Where they decide nothing, that takes up to an eighth longer. */
enum { FEW_LOOKED_AT = 8, LOOK_AT_ONE_OF = 8, LEAST_K_TO_LOOK = 3 * FEW_LOOKED_AT };
enum { NEAR_WORDS = COPY_TO_STACK_BYTES / 8 };
/* Elements in a line of memory that are looked at together. */
enum { LEAST_LINE = 8, SCATTERED_MOST_COLUMNS = 128, SCATTERED_MOST_SIDE = 256 };

/* A matrix, and its rows as bits. */
struct bit_rows {
    const struct matmul_bits *kernel;
    const struct strided *from;
    ptrdiff_t rows, columns, words; /* of a row */
    uint64_t *bits;
};

struct bits_run {
    const struct matmul_bits *kernel;
    const struct product *x;
    struct bit_rows a, b;
    bool ends_at_false;
    _Atomic bool has_false; /* the result */
};

static struct bit_rows rows_of(const struct matmul_bits *kernel, const struct strided *from,
                               ptrdiff_t rows, ptrdiff_t columns)
{
    return (struct bit_rows){kernel, from, rows, columns, ceiling(columns, WORD), NULL};
}

/* Of the first k. */
static struct bits_run run_of(const struct matmul_bits *kernel, const struct product *x,
                              ptrdiff_t k)
{
    return (struct bits_run){
        .kernel = kernel,
        .x = x,
        .a = rows_of(kernel, &x->a, x->m, k),
        .b = rows_of(kernel, &x->b, k, x->n),
    };
}

static void pack(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct bit_rows *x = context;
    const ptrdiff_t row = WORD * first;
    x->kernel->pack(x->bits + row * x->words, x->words, x->from->data + row * x->from->row_step,
                    x->from->row_step, x->from->column_step, size_min(WORD * count, x->rows - row),
                    x->columns);
}

/* On one thread if the product itself has one. */
static void pack_on_threads(const struct policy *policy, struct bit_rows *x, int threads)
{
    const ptrdiff_t blocks = ceiling(x->rows, WORD);
    const double ns = 4.0 * (double)x->columns * (double)blocks;
    region_run_ranges(policy, threads > 1 ? threads_for_ns(policy, ns, BREAK_EVEN_NS) : 1, blocks,
                      0, pack, x);
}

static void multiply(void *context, ptrdiff_t first, ptrdiff_t count)
{
    struct bits_run *run = context;
    for (ptrdiff_t i = first; i < first + count && !(run->ends_at_false && run->has_false); i++) {
        const ptrdiff_t row = i * CHUNK_ROWS;
        if (!run->kernel->multiply(run->a.bits, run->a.words, run->b.bits, run->b.words, run->x,
                                   row, size_min(CHUNK_ROWS, run->x->m - row))) {
            run->has_false = true;
        }
    }
}

static bool run_packed(const struct policy *policy, struct bits_run *run, int threads)
{
    const size_t b_bytes = (size_t)((run->b.rows * run->b.words + 7) / 8 * 64);
    const size_t a_bytes = (size_t)(run->a.rows * run->a.words * 8);
    const struct workspace workspace = workspace_take(b_bytes + a_bytes);
    if (workspace.data == NULL) {
        return false;
    }
    run->a.bits = (uint64_t *)(workspace.data + b_bytes);
    run->b.bits = (uint64_t *)workspace.data;
    pack_on_threads(policy, &run->a, threads);
    pack_on_threads(policy, &run->b, threads);
    region_run_ranges(policy, threads, ceiling(run->x->m, CHUNK_ROWS), 0, multiply, run);
    workspace_give_back(workspace);
    return true;
}

static bool is_decided_by(const struct policy *policy, const struct matmul_bits *kernel,
                          const struct product *x, ptrdiff_t k, int threads)
{
    struct bits_run run = run_of(kernel, x, k);
    run.ends_at_false = true;
    return run_packed(policy, &run, threads) && !run.has_false;
}

/* A few k decide matrices that are mostly true. */
static bool is_decided_by_first_k(const struct policy *policy, const struct matmul_bits *kernel,
                                  const struct product *x, int threads)
{
    const ptrdiff_t most = size_min(x->k / LOOK_AT_ONE_OF, WORD);
    return x->k >= LEAST_K_TO_LOOK &&
           (is_decided_by(policy, kernel, x, FEW_LOOKED_AT, threads) ||
            (most >= 2 * FEW_LOOKED_AT && is_decided_by(policy, kernel, x, most, threads)));
}

static void run_directly(const struct matmul_bits *kernel, struct product x)
{
    x.batch = 1;
    kernel->direct(&x);
}

/* Few rows of a, by contiguous columns of b. */
static void dots(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct bits_run *run = context;
    struct product x = *run->x;
    const ptrdiff_t column = first * CHUNK_COLUMNS, words = x.m * run->a.words;
    x.b.data += column * x.b.column_step;
    x.c.data += column * x.c.column_step;
    x.n = size_min(count * CHUNK_COLUMNS, x.n - column);
    if (words <= NEAR_WORDS) {
        uint64_t near[NEAR_WORDS];
        run->kernel->dots(&x, near);
        return;
    }
    const struct workspace workspace = workspace_take((size_t)(words * 8));
    if (workspace.data == NULL) {
        run_directly(run->kernel, x);
        return;
    }
    run->kernel->dots(&x, (uint64_t *)workspace.data);
    workspace_give_back(workspace);
}

static bool is_few_dots(const struct product *x)
{
    return x->m > 1 && x->m <= MOST_DOT_ROWS && x->b.row_step == 1 && x->b.column_step != 1;
}

static bool is_scattered(const struct strided *matrix)
{
    return matrix->column_step != 1 && matrix->row_step != 1;
}

/* Whether rows would be gathered to be packed: those of a take as long as to look at their elements once, and of b
 * mostly few are needed. */
static bool has_scattered_rows(const struct product *x)
{
    return (is_scattered(&x->b) || (is_scattered(&x->a) && x->b.column_step == 1)) &&
           x->n >= LEAST_LINE && x->n <= SCATTERED_MOST_COLUMNS && x->k <= SCATTERED_MOST_SIDE &&
           x->m <= SCATTERED_MOST_SIDE;
}

bool matmul_bool_suits(const struct product *x, double muls)
{
    const bool has_lines = (x->b.column_step == 1 && x->n >= LEAST_LINE) ||
                           (x->a.row_step == 1 && x->m >= LEAST_LINE) ||
                           (x->a.column_step == 1 && x->b.row_step == 1);
    return muls > SMALL_BOOL_MULS || (has_lines && x->m * x->n >= SMALL_BOOL_RESULTS);
}

/* Few columns become rows, unless rows of b are lines of memory that a kernel can use. */
bool matmul_bool_wants_transposition(const struct product *x)
{
    const bool is_wide = x->n >= LEAST_LINE, is_direct = x->m <= MOST_DOT_ROWS;
    const bool gains = x->a.column_step == 1 || x->a.row_step == 1; /* dots, or longer lines */
    const bool suits = gains ? is_wide && is_direct : is_wide || is_direct;
    return x->n < x->m && x->n <= MOST_DOT_ROWS && !(x->b.column_step == 1 && suits);
}

bool matmul_bool_is_direct(const struct product *x)
{
    return (x->m <= MOST_DOT_ROWS && !is_few_dots(x)) || has_scattered_rows(x);
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
    struct bits_run run = run_of(kernel, x, x->k);
    if (is_few_dots(x)) {
        region_run_ranges(policy, threads, ceiling(x->n, CHUNK_COLUMNS), 0, dots, &run);
    } else if (x->m <= MOST_DOT_ROWS || !(is_decided_by_first_k(policy, kernel, x, threads) ||
                                          run_packed(policy, &run, threads))) {
        run_directly(kernel, *x);
    }
}
