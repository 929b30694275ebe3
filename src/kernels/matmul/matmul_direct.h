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

INLINE void row_group(const struct matrices *x, ptrdiff_t row, int rows, int vectors)
{
    const ptrdiff_t end = x->n * (ptrdiff_t)sizeof(ELEMENT);
    ptrdiff_t at = 0;
    for (; at + vectors * WIDEST <= end; at += vectors * WIDEST) {
        block(x, row, at, rows, vectors);
    }
    rest(x, row, at, rows);
}

/* Where a row is shorter than a vector. */
INLINE void short_row_group(const struct matrices *x, ptrdiff_t row, int rows)
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

static void by_columns(const struct matrices *x)
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
INLINE void by_dots(const struct matrices *x, ptrdiff_t a_k, ptrdiff_t b_k)
{
    for (ptrdiff_t row = 0; row < x->m; row++) {
        for (ptrdiff_t column = 0; column < x->n; column++) {
            *(ELEMENT *)(x->c + row * x->c_row + column * x->c_column) = (ELEMENT)element_sum(
                x->a + row * x->a_row, x->b + column * x->b_column, a_k, b_k, x->k);
        }
    }
}

static void JOIN(direct, DTYPE)(const struct matrices *x)
{
    const ptrdiff_t size = sizeof(ELEMENT);
    if (x->b_column == size && x->c_column == size && x->n > 1 && x->n * size >= NARROWEST) {
        by_columns(x);
    } else if (x->a_k == size && x->b_k == size && x->k >= 16) {
        by_dots(x, size, size);
    } else {
        by_dots(x, x->a_k, x->b_k);
    }
}

typedef void JOIN(make_block, DTYPE)(const struct matrices *x, ptrdiff_t row, ptrdiff_t at,
                                     int rows, int vectors);

/* Rows of c are `vectors` vectors, at most a cache line, and there are whole groups of four of them.
 * While one product is computed, the next one may be on its way. */
INLINE void narrow(const struct matrices *first, const struct stack *stack, int vectors,
                   JOIN(make_block, DTYPE) * make, bool fetch_ahead)
{
    struct matrices x = *first;
    for (ptrdiff_t i = 0; i < stack->count; i++) {
        for (ptrdiff_t row = 0; row < x.m; row += 4) {
            for (ptrdiff_t r = row; r < row + 4 && fetch_ahead; r++) {
                __builtin_prefetch(x.a + stack->a + r * x.a_row);
                __builtin_prefetch(x.b + stack->b + r * x.b_k);
                __builtin_prefetch(x.c + stack->c + r * x.c_row, 1);
            }
            make(&x, row, 0, 4, vectors);
        }
        x.a += stack->a;
        x.b += stack->b;
        x.c += stack->c;
    }
}

static bool JOIN(stack, DTYPE)(const struct matrices *x, const struct stack *stack)
{
    const ptrdiff_t size = sizeof(ELEMENT);
    if (x->b_column != size || x->c_column != size || x->m % 4 != 0) {
        return false;
    }
    if (x->n * size == VECTOR_BYTES) {
        narrow(x, stack, 1, short_block, false);
    } else if (x->n * size == 2 * VECTOR_BYTES) {
        narrow(x, stack, 2 * VECTOR_BYTES / WIDEST, block, true);
    } else {
        return false;
    }
    return true;
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
