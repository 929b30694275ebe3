/* The part of direct_template.h for columns that are not contiguous: each sum by itself, in ascending order
 * of k. */
#include "product_steps.h"

#include <stdlib.h>

enum { DOT_ROWS = 4, DOT_SHORT = 8, DOT_VECTORS = 16 };
/* Rows that are shorter, of more bytes in all, are read in the order in which they lie in memory.
 * `python benchmarks/random_calls.py` */
enum { IN_ORDER_BELOW_ROW_BYTES = 16384, IN_ORDER_FROM_BYTES = 65536, PAGE_BYTES = 4096 };
/* Whether an addition to a sum takes longer than the multiplication beside it. */
#if defined(FUSED)
enum { SUMS_WAIT = true };
#else
enum { SUMS_WAIT = false };
#endif
#if defined(SCALAR_DOTS)
#define SUMS_ARE_VECTORS(k) false
#else
#define SUMS_ARE_VECTORS(k) ((k) >= DOT_VECTORS)
#endif

INLINE wide add_to_dot(wide sum, wide a, wide b)
{
#if defined(FUSED)
    return add_product(sum, a, b);
#else
    return sum + a * b;
#endif
}

/* A column of c, of a constant k: that of b stays in registers. */
INLINE void short_dots(const struct product *x, ptrdiff_t column, int k, ptrdiff_t a_step)
{
    const char *a = x->a.data, *b = x->b.data + column * x->b.column_step;
    char *c = x->c.data + column * x->c.column_step;
    const ptrdiff_t a_row = x->a.row_step, c_row = x->c.row_step;
    wide factor[DOT_SHORT];
#pragma GCC unroll 8
    for (int i = 0; i < k; i++) {
        factor[i] = *(const element *)(b + i * x->b.row_step);
    }
    for (ptrdiff_t rows = x->m; rows > 0; rows--, a += a_row, c += c_row) {
        wide sum = 0;
#pragma GCC unroll 8
        for (int i = 0; i < k; i++) {
            sum = add_to_dot(sum, *(const element *)(a + i * a_step), factor[i]);
        }
        *(element *)c = (element)sum;
    }
}

/* A function each: their loops would share the registers of one. */
#define DEFINE(k)                                                                                  \
    NOINLINE void short_dots_##k(const struct product *x, ptrdiff_t column)                        \
    {                                                                                              \
        if (x->a.column_step == (ptrdiff_t)sizeof(element)) {                                      \
            short_dots(x, column, k, sizeof(element));                                             \
        } else {                                                                                   \
            short_dots(x, column, k, x->a.column_step);                                            \
        }                                                                                          \
    }
DEFINE(1)
DEFINE(2)
DEFINE(3)
DEFINE(4)
DEFINE(5)
DEFINE(6)
DEFINE(7)
DEFINE(8)
#undef DEFINE
static void (*const short_dots_of[DOT_SHORT])(const struct product *x, ptrdiff_t column) = {
    short_dots_1, short_dots_2, short_dots_3, short_dots_4,
    short_dots_5, short_dots_6, short_dots_7, short_dots_8,
};

/* Keeps the compiler from vectorizing a loop: it would gather what lies apart element by element. */
#define ONE_BY_ONE(pointer) __asm__("" : "+r"(pointer))

/* Adds the products of one k to the sums of several rows. */
INLINE void add_to_dots(wide sum[], const char *a, ptrdiff_t a_row, wide factor, int rows)
{
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        sum[r] = add_to_dot(sum[r], *(const element *)(a + r * a_row), factor);
    }
}

/* Several rows by one column: a sum alone would wait for each of its additions. With constant steps, the compiler
 * vectorizes sums of integers. */
INLINE void dots_block(const struct product *x, ptrdiff_t row, ptrdiff_t column, int rows,
                       ptrdiff_t a_step, ptrdiff_t b_step, bool is_contiguous)
{
    const char *a = x->a.data + row * x->a.row_step, *b = x->b.data + column * x->b.column_step;
    const ptrdiff_t a_row = x->a.row_step, k = x->k;
    wide sum[DOT_ROWS] = {0};
    /* Of short rows, much would be the rest of a loop that is unrolled further. */
    if (rows == DOT_ROWS && !is_contiguous) {
#pragma GCC unroll 2
        for (ptrdiff_t left = k; left > 0; left--) {
            ONE_BY_ONE(a);
            add_to_dots(sum, a, a_row, *(const element *)b, rows);
            a += a_step;
            b += b_step;
        }
    } else {
#pragma GCC unroll 4
        for (ptrdiff_t i = 0; i < k; i++) {
            if (!is_contiguous) {
                ONE_BY_ONE(a);
            }
            add_to_dots(sum, a + i * a_step, a_row, *(const element *)(b + i * b_step), rows);
        }
    }
    for (int r = 0; r < rows; r++) {
        *(element *)(x->c.data + (row + r) * x->c.row_step + column * x->c.column_step) =
            (element)sum[r];
    }
}

/* The same rows by all columns. */
INLINE void dots_blocks(const struct product *x, ptrdiff_t row, int rows, ptrdiff_t a_step,
                        ptrdiff_t b_step, bool is_contiguous)
{
    for (ptrdiff_t column = 0; column < x->n; column++) {
        dots_block(x, row, column, rows, a_step, b_step, is_contiguous);
    }
}

INLINE void dots_of_rows(const struct product *x, ptrdiff_t a_step, ptrdiff_t b_step,
                         bool is_contiguous)
{
    ptrdiff_t row = 0;
    for (; row + DOT_ROWS <= x->m; row += DOT_ROWS) {
        dots_blocks(x, row, DOT_ROWS, a_step, b_step, is_contiguous);
    }
    if (row + 2 <= x->m) {
        dots_blocks(x, row, 2, a_step, b_step, is_contiguous);
        row += 2;
    }
    if (row < x->m) {
        dots_blocks(x, row, 1, a_step, b_step, is_contiguous);
    }
}

NOINLINE void dots_of_contiguous_rows(const struct product *x)
{
    dots_of_rows(x, sizeof(element), sizeof(element), true);
}

NOINLINE void dots_of_any_rows(const struct product *x)
{
    dots_of_rows(x, x->a.column_step, x->b.row_step, false);
}

/* Whether the processor would have to read ahead in several short rows at once, or from several lines of each page. */
INLINE bool reads_in_order(const struct product *x)
{
    const ptrdiff_t step = labs(x->a.column_step), row = x->k * step;
    const bool are_short = row < IN_ORDER_BELOW_ROW_BYTES && row * x->m >= IN_ORDER_FROM_BYTES &&
                           labs(x->a.row_step) >= row;
    const bool are_apart = step >= PAGE_BYTES && labs(x->a.row_step) >= LINE_BYTES;
    return !SUMS_WAIT && (are_short || are_apart);
}

NOINLINE void dots_in_order(const struct product *matrices)
{
    const struct product x = *matrices; /* stores to c, bytes, could alias the struct */
    for (ptrdiff_t row = 0; row < x.m; row++) {
        const char *b = x.b.data;
        char *c = x.c.data + row * x.c.row_step;
        for (ptrdiff_t column = 0; column < x.n; column++) {
            const char *a = x.a.data + row * x.a.row_step, *factor = b;
            wide sum = 0;
#pragma GCC unroll 4
            for (ptrdiff_t left = x.k; left > 0; left--) {
                ONE_BY_ONE(a);
                sum = add_to_dot(sum, *(const element *)a, *(const element *)factor);
                a += x.a.column_step;
                factor += x.b.row_step;
            }
            *(element *)c = (element)sum;
            b += x.b.column_step;
            c += x.c.column_step;
        }
    }
}

static void compute_by_dots(const struct product *product)
{
    const ptrdiff_t size = sizeof(element);
    const struct product x = product->m < product->n ? product_transposed(product) : *product;
    if (x.k > 0 && x.k <= DOT_SHORT) {
        for (ptrdiff_t column = 0; column < x.n; column++) {
            short_dots_of[x.k - 1](&x, column);
        }
    } else if (x.a.column_step == size && x.b.row_step == size && SUMS_ARE_VECTORS(x.k)) {
        dots_of_contiguous_rows(&x);
    } else if (reads_in_order(&x)) {
        dots_in_order(&x);
    } else {
        dots_of_any_rows(&x);
    }
}
