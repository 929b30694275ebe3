/* The product without packing, for small and thin matrices; included once per dtype.
 *   DTYPE, ELEMENT, WIDE   suffix of the names, the dtype, and the type that computes an element
 *   ADD_PRODUCT(c, a, b)   c + a * b of elements; ADD_PRODUCTS of vectors
 *   NARROWEST, WIDEST      bytes of the shortest vector, 4, 8 or 16, and of the longest, up to 64
 *   SHORT_LANE             lanes in which short vectors are summed: bytes are not multiplied well */

#define block JOIN(JOIN(direct_block, DTYPE), WIDEST)
#define short_block JOIN(JOIN(direct_block, DTYPE), VECTOR_BYTES)
#define rest JOIN(JOIN(direct_rest, DTYPE), WIDEST)
#define rest_by_32 JOIN(JOIN(direct_rest, DTYPE), 32)
#define rest_by_16 JOIN(JOIN(direct_rest, DTYPE), 16)
#define rest_by_8 JOIN(JOIN(direct_rest, DTYPE), 8)
#define rest_by_4 JOIN(JOIN(direct_rest, DTYPE), 4)
#define element_sum JOIN(element_sum, DTYPE)
#define row_group JOIN(row_group, DTYPE)
#define short_row_group JOIN(short_row_group, DTYPE)
#define by_columns JOIN(by_columns, DTYPE)
#define by_dots JOIN(by_dots, DTYPE)
#define narrow JOIN(narrow, DTYPE)

INLINE WIDE element_sum(const char *a, const char *b, ptrdiff_t a_k, ptrdiff_t b_k, ptrdiff_t k)
{
    WIDE sum = 0;
    for (ptrdiff_t i = 0; i < k; i++) {
        const WIDE x = *(const ELEMENT *)(a + i * a_k), y = *(const ELEMENT *)(b + i * b_k);
        sum = ADD_PRODUCT(sum, x, y);
    }
    return sum;
}

#if NARROWEST == 4
#define FEW_BYTES 4
#define LANE SHORT_LANE
#include "matmul_block.h"
#endif
#if NARROWEST <= 8
#define FEW_BYTES 8
#define LANE SHORT_LANE
#include "matmul_block.h"
#endif
#define FEW_BYTES 16
#define LANE SHORT_LANE
#include "matmul_block.h"
#if WIDEST > 16
#define FEW_BYTES 32
#define LANE ELEMENT
#include "matmul_block.h"
#endif
#if WIDEST > 32
#define FEW_BYTES 64
#define LANE ELEMENT
#include "matmul_block.h"
#endif

INLINE void row_group(const struct product *x, ptrdiff_t row, int rows, int vectors)
{
    const ptrdiff_t end = x->n * (ptrdiff_t)sizeof(ELEMENT);
    ptrdiff_t at = 0;
    for (; at + vectors * WIDEST <= end; at += vectors * WIDEST) {
        block(x, row, at, rows, vectors);
    }
    rest(x, row, at, rows);
}

/* Where a row is shorter than a vector. */
INLINE void short_row_group(const struct product *x, ptrdiff_t row, int rows)
{
#if NARROWEST == 4
    if (x->n * (ptrdiff_t)sizeof(ELEMENT) < 8) {
        rest_by_4(x, row, 0, rows);
        return;
    }
#endif
#if NARROWEST <= 8
    if (x->n * (ptrdiff_t)sizeof(ELEMENT) < 16) {
        rest_by_8(x, row, 0, rows);
        return;
    }
#endif
#if WIDEST > 32
    if (x->n * (ptrdiff_t)sizeof(ELEMENT) >= 32) {
        rest_by_32(x, row, 0, rows);
        return;
    }
#endif
    rest_by_16(x, row, 0, rows);
}

static void by_columns(const struct product *x)
{
    const bool is_short = x->n * (ptrdiff_t)sizeof(ELEMENT) < WIDEST;
    ptrdiff_t row = 0;
    for (; row + 4 <= x->m; row += 4) {
        if (is_short) {
            short_row_group(x, row, 4);
        } else {
            row_group(x, row, 4, 2);
        }
    }
    if (row + 2 <= x->m) {
        if (is_short) {
            short_row_group(x, row, 2);
        } else {
            row_group(x, row, 2, 4);
        }
        row += 2;
    }
    if (row < x->m) {
        if (is_short) {
            short_row_group(x, row, 1);
        } else {
            row_group(x, row, 1, 8);
        }
    }
}

/* With constant steps the compiler makes vectors of it where the order allows, which takes longer for a few
 * elements. */
INLINE void by_dots(const struct product *x, ptrdiff_t a_k, ptrdiff_t b_k)
{
    for (ptrdiff_t row = 0; row < x->m; row++) {
        for (ptrdiff_t column = 0; column < x->n; column++) {
            *(ELEMENT *)(x->c.data + row * x->c.row_step + column * x->c.column_step) =
                (ELEMENT)element_sum(x->a.data + row * x->a.row_step,
                                     x->b.data + column * x->b.column_step, a_k, b_k, x->k);
        }
    }
}

static void JOIN(direct, DTYPE)(const struct product *x)
{
    const ptrdiff_t size = sizeof(ELEMENT);
    if (x->b.column_step == size && x->c.column_step == size && x->n > 1 &&
        x->n * size >= NARROWEST) {
        by_columns(x);
    } else if (x->a.column_step == size && x->b.row_step == size && x->k >= 16) {
        by_dots(x, size, size);
    } else {
        by_dots(x, x->a.column_step, x->b.row_step);
    }
}

typedef void JOIN(make_block, DTYPE)(const struct product *x, ptrdiff_t row, ptrdiff_t at, int rows,
                                     int vectors);

/* Rows of c are `vectors` vectors, at most a cache line. While one product is computed, the next one may be
 * on its way. */
INLINE void narrow(const struct product *first, int vectors, JOIN(make_block, DTYPE) * make,
                   bool fetch_ahead)
{
    struct product x = *first;
    for (ptrdiff_t i = 0; i < x.batch; i++) {
        for (ptrdiff_t row = 0; row < x.m; row += 4) {
            for (ptrdiff_t r = row; r < row + 4 && fetch_ahead; r++) {
                __builtin_prefetch(x.a.data + x.a.batch_step + r * x.a.row_step);
                __builtin_prefetch(x.b.data + x.b.batch_step + r * x.b.row_step);
                __builtin_prefetch(x.c.data + x.c.batch_step + r * x.c.row_step, 1);
            }
            make(&x, row, 0, 4, vectors);
        }
        x.a.data += x.a.batch_step;
        x.b.data += x.b.batch_step;
        x.c.data += x.c.batch_step;
    }
}

static void JOIN(stack, DTYPE)(const struct product *x)
{
    if (x->n * (ptrdiff_t)sizeof(ELEMENT) == VECTOR_BYTES) {
        narrow(x, 1, short_block, false);
    } else {
        narrow(x, 2 * VECTOR_BYTES / WIDEST, block, true);
    }
}

#undef block
#undef short_block
#undef rest
#undef rest_by_32
#undef rest_by_16
#undef rest_by_8
#undef rest_by_4
#undef element_sum
#undef row_group
#undef short_row_group
#undef by_columns
#undef by_dots
#undef narrow
#undef DTYPE
#undef ELEMENT
#undef WIDE
#undef ADD_PRODUCT
#undef ADD_PRODUCTS
#undef NARROWEST
#undef WIDEST
#undef SHORT_LANE
