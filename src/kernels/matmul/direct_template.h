/* The product without packing, for small and thin matrices. What the file that includes it defines:
 *   element, wide       the dtype, and the type that computes an element
 *   short_lane          lanes in which vectors of 16 bytes and less are summed
 *   NARROWEST, WIDEST   bytes of the shortest row that vectors compute, 3, 4, 8 or 16, and of the longest vector, up
 *                       to 64
 *   SCALAR_DOTS         if defined: sums of contiguous k are not vectorized, for want of an instruction
 *   CROSS_SUMS          if defined: vectors of 64 bits have no product; low_products_16() and _32() are those of the
 *                       lower halves, add_cross_products_16() and _32() add those of lower and upper ones, in both
 *                       halves of a lane
 *   FUSED               floats: add_product(c, a, b) is c + a * b, rounded once; add_products_16(),
 *                       _32() and _64() are the same for vectors of that many bytes */

#include "direct_dots.h"

#define BLOCK_VECTOR_BYTES 16
#define LANE short_lane
#include "direct_block.h"
#if NARROWEST == 3
#define BLOCK_VECTOR_BYTES 8
#define LANE short_lane
#include "direct_block.h"
#endif
#if WIDEST > 16
#define BLOCK_VECTOR_BYTES 32
#define LANE element
#include "direct_block.h"
#endif
#if WIDEST > 32
#define BLOCK_VECTOR_BYTES 64
#define LANE element
#include "direct_block.h"
#endif

/* Of a block, whose sums fit the registers: 32 with AVX-512, 16 with AVX2. */
#if defined(CROSS_SUMS)
enum {
    FOUR_ROWS_VECTORS = 1,
    THREE_ROWS_VECTORS = 2,
    TWO_ROWS_VECTORS = 2,
    ROW_VECTORS = 4,
    SHORT_ROWS = 2
};
#else
enum {
    FOUR_ROWS_VECTORS = WIDEST > 32   ? 4
                        : WIDEST > 16 ? 3
                                      : 2,
    THREE_ROWS_VECTORS = WIDEST > 16 ? 4 : 2,
    TWO_ROWS_VECTORS = 4,
    ROW_VECTORS = 8,
    SHORT_ROWS = 4, /* than the longest vector, at a time */
};
#endif

INLINE void compute_rows(const struct product *x, ptrdiff_t row, int rows, int vectors)
{
    const ptrdiff_t end = x->n * (ptrdiff_t)sizeof(element), width = vectors * WIDEST;
    ptrdiff_t at = 0;
    for (; at + width <= end; at += width) {
        /* The next block's rows of c: of short bursts in each row, hardware fetches none ahead. */
        for (int r = 0; r < rows; r++) {
            const char *const next = x->c.data + (row + r) * x->c.row_step + at + width;
            for (ptrdiff_t line = 0; line < width; line += LINE_BYTES) {
                __builtin_prefetch(next + line, 1);
            }
        }
        JOIN(block, WIDEST)(x, row, at, rows, vectors, (vectors - 1) * WIDEST);
    }
    JOIN(compute_rest, WIDEST)(x, row, at, rows);
}

/* Rows shorter than the longest vector. Sums fill registers: of less, compilers compute one at a time. */
INLINE void compute_short_rows(const struct product *x, ptrdiff_t row, int rows)
{
#if NARROWEST < 16
    const ptrdiff_t bytes = x->n * (ptrdiff_t)sizeof(element);
    if (bytes < 8) {
#if NARROWEST == 3
        short_block_8(x, row, rows, false);
#else
        short_block_16(x, row, rows, false);
#endif
        return;
    }
    if (bytes < 16) {
        short_block_16(x, row, rows, true);
        return;
    }
#endif
#if WIDEST > 32
    if (x->n * (ptrdiff_t)sizeof(element) >= 32) {
        compute_rest_32(x, row, 0, rows);
        return;
    }
#endif
    compute_rest_16(x, row, 0, rows);
}

static void compute_by_vectors(const struct product *x)
{
    const bool is_short = x->n * (ptrdiff_t)sizeof(element) < WIDEST;
    ptrdiff_t row = 0;
    for (; row + 4 <= x->m; row += 4) {
        if (is_short) {
            for (int r = 0; r < 4; r += SHORT_ROWS) {
                compute_short_rows(x, row + r, SHORT_ROWS);
            }
        } else {
            compute_rows(x, row, 4, FOUR_ROWS_VECTORS);
        }
    }
    if (row + 3 == x->m) {
        if (is_short) {
            compute_short_rows(x, row, 3);
        } else {
            compute_rows(x, row, 3, THREE_ROWS_VECTORS);
        }
        return;
    }
    if (row + 2 <= x->m) {
        if (is_short) {
            compute_short_rows(x, row, 2);
        } else {
            compute_rows(x, row, 2, TWO_ROWS_VECTORS);
        }
        row += 2;
    }
    if (row < x->m) {
        if (is_short) {
            compute_short_rows(x, row, 1);
        } else {
            compute_rows(x, row, 1, ROW_VECTORS);
        }
    }
}

/* Columns whose rows of b stay in the first-level cache for all rows of c: whole blocks of any shape. */
enum { STRIP_BYTES = 1536 };

NOINLINE void compute_in_strips(const struct product *x)
{
    const ptrdiff_t columns = STRIP_BYTES / sizeof(element);
    struct product rest = *x;
    while (rest.n >= 2 * columns) {
        struct product strip = rest;
        strip.n = columns;
        compute_by_vectors(&strip);
        rest.n -= columns;
        rest.b.data += STRIP_BYTES;
        rest.c.data += STRIP_BYTES;
    }
    compute_by_vectors(&rest);
}

static void compute_directly(const struct product *x)
{
    const ptrdiff_t size = sizeof(element);
    if (x->b.column_step == size && x->c.column_step == size && x->n > 1 &&
        x->n * size >= NARROWEST) {
        (x->n * size < 2 * STRIP_BYTES ? compute_by_vectors : compute_in_strips)(x);
    } else {
        compute_by_dots(x);
    }
}

typedef void compute_block(const struct product *x, ptrdiff_t row, ptrdiff_t at, int rows,
                           int vectors, ptrdiff_t last);

/* Rows of c are `vectors` vectors, at most a cache line. `fetch_ahead`: prefetch the operands of
 * the next product. */
INLINE void narrow_stack(const struct product *first, int vectors, ptrdiff_t last,
                         compute_block *compute, bool fetch_ahead)
{
    struct product x = *first;
    for (ptrdiff_t i = 0; i < x.batch; i++) {
        for (ptrdiff_t row = 0; row < x.m; row += 4) {
            for (ptrdiff_t r = row; r < row + 4 && fetch_ahead; r++) {
                __builtin_prefetch(x.a.data + x.a.batch_step + r * x.a.row_step);
                __builtin_prefetch(x.b.data + x.b.batch_step + r * x.b.row_step);
                __builtin_prefetch(x.c.data + x.c.batch_step + r * x.c.row_step, 1);
            }
            compute(&x, row, 0, 4, vectors, last);
        }
        x.a.data += x.a.batch_step;
        x.b.data += x.b.batch_step;
        x.c.data += x.c.batch_step;
    }
}

static void compute_stack(const struct product *x)
{
    if (x->n * (ptrdiff_t)sizeof(element) == VECTOR_BYTES) {
        narrow_stack(x, 1, 0, JOIN(block, VECTOR_BYTES), false);
    } else {
        narrow_stack(x, 2 * VECTOR_BYTES / WIDEST, 2 * VECTOR_BYTES - WIDEST, JOIN(block, WIDEST),
                     true);
    }
}
