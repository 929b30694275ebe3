/* Plans a product: kernel or fallback, which algorithm, how many threads; then carries it out. */
#include "matmul.h"

#include "kernels/matmul/product_steps.h"
#include "kernels/sizes.h"
#include "matmul_bool.h"
#include "matmul_cutoffs.h"
#include "matmul_direct.h"
#include "matmul_packed.h"
#include "threads/clock.h"

#include <string.h>

static double elements_of(const struct product *x)
{
    return (double)x->m * (double)x->k + (double)x->k * (double)x->n + (double)x->m * (double)x->n;
}

/* ---- kernel or fallback ---- */

/* So small that a closer look at the shape would cost more than it gains. */
static bool is_tiny(const struct product *x)
{
    return x->batch == 1 && (x->m | x->k | x->n) < 2 * TINY_MULS && x->m * x->k * x->n <= TINY_MULS;
}

/* Vectors need contiguous elements: the fallback goes from element to element as fast as any. */
static bool has_contiguous_dots(const struct matmul_kernel *kernel, const struct product *x)
{
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    return x->a.column_step == size && x->b.row_step == size;
}

bool matmul_suits_dots(const struct matmul_kernel *kernel, const struct product *x)
{
    return kernel->dots != NULL && x->m == 1 && x->n == 1 &&
           x->k * (ptrdiff_t)kernel->item_size >= DOTS_FROM_BYTES && has_contiguous_dots(kernel, x);
}

/* Rows of c, or columns, that vectors can write as they read b, or a copy of it. */
static bool suits_short_k(const struct product *x, ptrdiff_t size)
{
    const bool by_rows = x->c.column_step == size || x->c.row_step != size;
    const ptrdiff_t along = by_rows ? x->n : x->m, across = by_rows ? x->m : x->n;
    const ptrdiff_t step = by_rows ? x->b.column_step : x->a.row_step;
    const bool is_many_short_rows = x->k > 1 && across > SHORT_K_MOST_SHORT_ROWS &&
                                    along * size > WHOLE_VECTOR_BYTES &&
                                    along * size <= 2 * WHOLE_VECTOR_BYTES;
    const bool is_near = x->k * along * size <= COPY_MOST_BYTES &&
                         (step == size || along <= COPY_MOST_ASPECT * across);
    return across > 1 && !is_many_short_rows &&
           along * size >= (x->k <= SHORT_K / 2 ? 1 : 2) * WHOLE_VECTOR_BYTES &&
           (x->c.column_step == size || x->c.row_step == size) &&
           (is_near || (step == size && x->k <= SHORT_K / 4));
}

static bool suits_float_kernel(const struct matmul_dtype *dtype, const struct product *x,
                               double muls)
{
    if (x->k <= SHORT_K && x->k * dtype->item_size <= SHORT_K_BYTES &&
        suits_short_k(x, dtype->item_size)) {
        return muls > TINY_MULS;
    }
    return muls > TINY_MULS && muls <= SMALL_FLOAT_MULS && x->m <= SMALL_FLOAT_SIDE &&
           x->k <= SMALL_FLOAT_SIDE && x->n <= SMALL_FLOAT_SIDE &&
           x->n * dtype->item_size % WHOLE_VECTOR_BYTES == 0;
}

/* Halves are converted several at a time, along rows or k. */
static double least_half_muls(const struct product *x)
{
    return x->m > THIN_SIDE && x->n > THIN_SIDE     ? SMALL_HALF_MULS
           : x->k < TINY_HALF_MULS || x->batch == 1 ? TINY_MULS
                                                    : TINY_HALF_MULS;
}

/* Of bools, which NumPy's loop looks at one by one, until a product is true. */
static bool is_worth_words(ptrdiff_t k)
{
    return (k > 1 && k <= SHORT_BOOL_DOT) || k >= LONG_BOOL_DOT;
}

static bool suits_kernel(const struct matmul_dtype *dtype, const struct product *x, double muls)
{
    const bool is_vecdot = dtype->is_vecdot && x->m == 1 && x->n == 1;
    if (dtype->kernel == NULL || (is_tiny(x) && !is_vecdot)) {
        return false;
    }
    switch (dtype->kernel->kind) {
    case 'b':
        return is_vecdot ? is_worth_words(x->k) && has_contiguous_dots(dtype->kernel, x)
                         : matmul_bool_suits(x, muls);
    case 'e':
        return x->k == 0 || muls > least_half_muls(x);
    default:
        break;
    }
    if (is_vecdot || (dtype->kernel->kind == 'i' && x->m == 1 && x->n == 1)) {
        return matmul_suits_dots(dtype->kernel, x);
    }
    if (dtype->has_blas) {
        return suits_float_kernel(dtype, x, muls);
    }
    if (x->k == 0) {
        return true;
    }
    if (x->batch > 1) {
        return muls > TINY_STACK_MULS || x->m * x->n > TINY_STACK_RESULTS;
    }
    return muls > (x->n == 1 ? TINY_VECTOR_MULS : TINY_MULS);
}

/* Multiplications up to which BLAS computes a product on the calling thread, whatever threads it has. */
static double serial_muls(const struct matmul_dtype *dtype, const struct product *x)
{
    if (x->m == 1 || x->n == 1) {
        return dtype->is_complex ? SERIAL_BLAS_COMPLEX_VECTOR_MULS : SERIAL_BLAS_VECTOR_MULS;
    }
    return dtype->is_complex ? SERIAL_BLAS_COMPLEX_MULS : SERIAL_BLAS_MULS;
}

/* Whether so many threads compute a stack faster than those that BLAS has for each product. */
static bool gains_by_held_blas(const struct matmul_dtype *dtype, const struct product *x,
                               double muls, int threads)
{
    if (x->batch < threads) {
        return false;
    }
    if (x->m == 1 || x->n == 1) {
        return !dtype->is_complex && muls <= SMALL_BLAS_VECTOR_MULS;
    }
    return (!dtype->is_complex && muls <= SMALL_BLAS_MULS) ||
           muls <= threads * serial_muls(dtype, x);
}

/* Few large products are split themselves; of many small ones the stack is, and of `many` for each thread, however
 * large. `ns`: of one. */
static int plan_threads(struct matmul_plan *plan, double ns, ptrdiff_t many)
{
    const ptrdiff_t batch = plan->product.batch;
    const int threads =
        threads_for_ns(plan->policy, (ns > 20 ? ns : 20) * (double)batch, BREAK_EVEN_NS);
    const bool by_stack = batch > 1 && !(ns > SPLIT_PRODUCT_NS && batch < many * threads);
    plan->stack_threads = by_stack ? threads : 1;
    plan->threads = by_stack ? 1 : threads;
    return threads;
}

static void plan_fallback(struct matmul_plan *plan, const struct matmul_dtype *dtype,
                          const struct product *x, double muls)
{
    const bool is_threaded = dtype->has_blas && muls > serial_muls(dtype, x);
    const double ns = 10 + muls * (dtype->has_blas ? 0.05 : 0.5);
    plan->way = MATMUL_FALLBACK;
    plan->stack_threads =
        x->batch > 1 ? threads_for_ns(plan->policy, ns * (double)x->batch, BREAK_EVEN_NS) : 1;
    if (is_threaded && !gains_by_held_blas(dtype, x, muls, plan->stack_threads)) {
        plan->stack_threads = 1;
    }
    plan->holds_blas = is_threaded && plan->stack_threads > 1;
}

/* ---- the order of rows and columns ---- */

/* Register tiles and vectors run along rows of c: they should be long, and contiguous. */
static bool wants_transposition(const struct matmul_kernel *kernel, const struct product *x)
{
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    if (kernel->kind == 'b') {
        return matmul_bool_wants_transposition(x);
    }
    if (x->c.row_step != size) {
        return false;
    }
    if (x->c.column_step != size) {
        return true;
    }
    return x->n < x->m && x->n < (kernel->rows > 0 ? kernel->columns : 64 / size);
}

/* ---- floats with few columns ---- */

/* BLAS makes this one exactly symmetric. */
static bool is_own_transpose(const struct product *x)
{
    return x->m == x->n && x->a.data == x->b.data && x->a.row_step == x->b.column_step &&
           x->a.column_step == x->b.row_step;
}

/* BLAS computes what fits the caches as fast, and reads a matrix for one vector as fast. In a stack its threads
 * would begin and end with each product, and complex ones take it longer than this. */
static bool gains_by_thin(const struct matmul_dtype *dtype, const struct product *x,
                          ptrdiff_t columns, double muls, bool packs, int threads)
{
    const double bytes = (double)x->m * (double)x->k * (double)dtype->item_size;
    if (x->m < THIN_LEAST_PACKED_FOR && packs) {
        return false; /* making b contiguous would take as long as the product */
    }
    /* OpenBLAS computes dots of float32, and only these, on one thread. */
    const bool is_serial = x->m == 1 && dtype->item_size == sizeof(float);
    if (x->n == 1 && !is_serial && strided_suits_blas(&x->a, x->m, x->k, dtype->item_size)) {
        return false;
    }
    const bool is_long =
        dtype->is_complex ? muls > SERIAL_BLAS_VECTOR_MULS : muls > serial_muls(dtype, x);
    const bool is_split = threads > 1 && (x->batch == 1 || is_long);
    return bytes >= THIN_FROM_BYTES
               ? threads > 1 || (x->n > 1 && columns <= MOST_THIN_COLUMNS_ALONE)
               : is_split && x->batch > 1 && bytes * (double)x->batch >= THIN_FROM_BYTES;
}

/* Adding the lanes of a sum takes as long as lanes^2 multiplications. */
static bool is_deep(const struct thin_kernels *kernel, bool by_rows, ptrdiff_t columns,
                    ptrdiff_t floats)
{
    const bool is_wide = columns > THIN_FEW;
    return by_rows ? floats >= (is_wide ? 4 : 1) * THIN_LEAST_K
                   : floats >= (is_wide ? 2 : 1) * kernel->least_k * kernel->least_k;
}

static bool plan_thin(struct matmul_plan *plan, const struct matmul_dtype *dtype,
                      const struct product *product, double muls)
{
    struct product *x = &plan->product;
    const ptrdiff_t size = dtype->item_size;
    if (dtype->thin == NULL || product->k < THIN_LEAST_K ||
        (plan->policy->threshold == 0 &&
         (double)product->batch * elements_of(product) * (double)size < THIN_FROM_BYTES) ||
        is_own_transpose(product)) {
        return false;
    }
    *x = *product;
    product_normalise(x, size);
    const bool is_turned = x->n > x->m;
    if (is_turned) {
        *x = product_transposed(x);
    }
    const bool by_rows = x->a.row_step == size && x->a.column_step != size;
    const ptrdiff_t parts = dtype->is_complex ? 2 : 1, columns = parts * x->n;
    const bool packs =
        !by_rows && (dtype->is_complex || x->b.row_step != size || x->a.column_step != size);
    const ptrdiff_t floats = by_rows ? x->k : parts * x->k;
    /* All threads would meet after each product, which takes as long as one where those of BLAS spin. */
    const int threads =
        plan_threads(plan, (double)x->m * (double)x->k * (double)size / THIN_BYTES_PER_NS, 1);
    if (columns == 0 || columns > MOST_THIN_COLUMNS ||
        (plan->policy->threshold == 0 &&
         !(is_deep(dtype->thin, by_rows, columns, floats) &&
           gains_by_thin(dtype, x, columns, muls, packs, threads)))) {
        return false;
    }
    plan->thin = (struct thin_task){
        .kernel = dtype->thin,
        .is_complex = dtype->is_complex,
        .conjugates_a = dtype->conjugates && !is_turned,
        .conjugates_b = dtype->conjugates && is_turned,
    };
    plan->way = MATMUL_THIN;
    return true;
}

/* ---- algorithm and threads ---- */

static enum matmul_way way_of(const struct matmul_kernel *kernel, const struct product *x,
                              double muls)
{
    const bool packing_pays_early = kernel->kind == 'e' || kernel->is_scalar;
    const bool is_vector = x->m == 1 || x->n == 1;
    const bool is_thin = kernel->kind == 'i' ? matmul_direct_gains((ptrdiff_t)kernel->item_size, x)
                         : kernel->kind == 'e' ? x->m <= THIN_SIDE || x->n <= THIN_SIDE
                                               : kernel->is_scalar && is_vector;
    if (kernel->kind == 'b') {
        return matmul_bool_is_direct(x) ? MATMUL_STACK : MATMUL_BOOL;
    }
    if (kernel->kind == 'f' && x->k <= SHORT_K && muls > DIRECT_MULS) {
        return MATMUL_RANGES;
    }
    if (kernel->rows == 0 || muls <= (packing_pays_early ? DIRECT_ELEMENT_MULS : DIRECT_MULS)) {
        return MATMUL_DIRECT;
    }
    return is_thin ? MATMUL_RANGES : MATMUL_PACKED;
}

static bool suits_stack(const struct matmul_kernel *kernel, const struct product *x, double muls)
{
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size, row_bytes = x->n * size;
    return kernel->stack != NULL && muls <= DIRECT_MULS && x->m % 4 == 0 &&
           x->b.column_step == size && x->c.column_step == size &&
           (row_bytes == kernel->stack_row_bytes || row_bytes == 2 * kernel->stack_row_bytes);
}

static void plan_bool_threads(struct matmul_plan *plan)
{
    const struct product *x = &plan->product;
    const double elements = elements_of(x);
    const bool by_stack = elements < BOOL_SPLIT_PRODUCT_ELEMENTS && x->batch > 1;
    const int threads = threads_for_ns(
        plan->policy, by_stack ? (20 + elements * 0.1) * (double)x->batch : matmul_bool_ns(x),
        BREAK_EVEN_NS);
    plan->stack_threads = by_stack ? threads : 1;
    plan->threads = by_stack ? 1 : threads;
}

void matmul_plan(struct matmul_plan *plan, const struct policy *policy,
                 const struct matmul_dtype *dtype, const struct product *product)
{
    const double muls = (double)product->m * (double)product->n * (double)product->k;
    const struct matmul_kernel *kernel = dtype->kernel;
    struct product *x = &plan->product;
    plan->policy = policy;
    plan->kernel = kernel;
    plan->ends_early = kernel != NULL && kernel->kind == 'b';
    if (!suits_kernel(dtype, product, muls)) {
        if (!plan_thin(plan, dtype, product, muls)) {
            plan_fallback(plan, dtype, product, muls);
        }
        return;
    }
    *x = *product;
    if (x->m == 0 || x->n == 0 || x->batch == 0) {
        plan->way = MATMUL_EMPTY;
        return;
    }
    product_normalise(x, (ptrdiff_t)kernel->item_size);
    plan->stack = kernel->bits != NULL ? kernel->bits->direct : kernel->stack;
    if (x->k == 0) {
        plan->way = MATMUL_ZEROS;
    } else if (matmul_suits_dots(kernel, x)) {
        plan->way = MATMUL_STACK;
        plan->stack = kernel->dots;
    } else if (suits_stack(kernel, x, muls)) {
        plan->way = MATMUL_STACK;
    } else {
        if (wants_transposition(kernel, x)) {
            *x = product_transposed(x);
        }
        plan->way = way_of(kernel, x, muls);
    }
    if (plan->ends_early) {
        plan_bool_threads(plan);
    } else {
        plan_threads(plan, muls * (kernel->is_scalar ? 1.0 : 0.05) + elements_of(x) * 0.2, 4);
    }
    const bool is_large = muls >= LARGE_MULS && x->m >= LARGE_SIDE && x->n >= LARGE_SIDE;
    if (plan->way == MATMUL_PACKED && is_large && dtype->large != NULL && dtype->large->prepare()) {
        plan->kernel = dtype->large;
    }
}

/* ---- carried out ---- */

static void zero(const struct product *x, size_t size)
{
    for (ptrdiff_t row = 0; row < x->m; row++) {
        for (ptrdiff_t column = 0; column < x->n; column++) {
            memset(x->c.data + row * x->c.row_step + column * x->c.column_step, 0, size);
        }
    }
}

static void run_thin(const struct matmul_plan *plan, const struct product *x)
{
    struct thin_task task = plan->thin;
    task.product = *x;
    thin_run(plan->policy, &task, plan->threads);
}

static void run_product(const struct matmul_plan *plan, const struct product *x)
{
    switch (plan->way) {
    case MATMUL_ZEROS:
        zero(x, plan->kernel->item_size);
        break;
    case MATMUL_DIRECT:
        matmul_direct(plan->kernel, x);
        break;
    case MATMUL_RANGES:
        matmul_ranges(plan->policy, plan->kernel, x, plan->threads);
        break;
    case MATMUL_PACKED:
        matmul_packed(plan->policy, plan->kernel, x, plan->threads);
        break;
    case MATMUL_THIN:
        run_thin(plan, x);
        break;
    case MATMUL_BOOL:
        matmul_bool(plan->policy, plan->kernel->bits, x, plan->threads);
        break;
    default:
        break;
    }
}

static void advance(struct product *x, ptrdiff_t products)
{
    x->a.data += products * x->a.batch_step;
    x->b.data += products * x->b.batch_step;
    x->c.data += products * x->c.batch_step;
}

static void run_range(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct matmul_plan *plan = context;
    struct product x = plan->product;
    advance(&x, first);
    x.batch = count;
    if (plan->way == MATMUL_STACK) {
        plan->stack(&x);
        return;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        run_product(plan, &x);
        advance(&x, 1);
    }
}

/* The rest of a stack. */
struct rest {
    region_range *run;
    void *context;
    ptrdiff_t first;
};

static void run_rest(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct rest *rest = context;
    rest->run(rest->context, rest->first + first, count);
}

/* Begins a stack on this thread, with more products at a time, until threads pay for the rest: what they take shows
 * as they are computed. Returns how many do. */
static int begin_stack(const struct matmul_plan *plan, ptrdiff_t products, struct rest *rest)
{
    const int64_t start = clock_ns();
    int threads = 1;
    for (ptrdiff_t count = 1; threads == 1 && rest->first < products; count *= 2) {
        count = size_min(count, products - rest->first);
        run_rest(rest, 0, count);
        rest->first += count;
        const double ns = (double)(clock_ns() - start);
        if (ns >= EARLY_END_TIMED_NS) {
            const double item_ns = ns / (double)rest->first;
            threads = threads_for_ns(plan->policy, item_ns * (double)(products - rest->first),
                                     BREAK_EVEN_NS);
        }
    }
    return threads;
}

void matmul_run_stack(const struct matmul_plan *plan, ptrdiff_t products, region_range *run,
                      void *context)
{
    struct rest rest = {run, context, 0};
    int threads = plan->stack_threads;
    if (threads > 1 && plan->ends_early && plan->policy->threshold == 0) {
        threads = begin_stack(plan, products, &rest);
    }
    if (rest.first < products) {
        region_run_ranges(plan->policy, threads, products - rest.first, 0, run_rest, &rest);
    }
}

void matmul_run(const struct matmul_plan *plan)
{
    if (plan->way != MATMUL_EMPTY) {
        matmul_run_stack(plan, plan->product.batch, run_range, (void *)plan);
    }
}
