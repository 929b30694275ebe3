/* Products of halves without packing, for few rows or columns, of which a panel would be mostly padding: sums in
 * ascending order of k. They are separate additions, as in NumPy's loop, and sooner done than fused ones.
 * Included by matmul_half.c. */
#include "product_steps.h"

enum {
    DIRECT_ROWS = 4,
    DOTS = 4,
    LEAST_LANES = 8,
    BLOCK_VECTORS = HALF_BLOCK * sizeof(float) / TILE_BYTES,
};

INLINE float half_value(uint16_t half)
{
#if defined(__F16C__)
    return _cvtsh_ss(half);
#else
    return half_to_float(half);
#endif
}

/* Sums to `columns` elements of c. */
INLINE void round_row(const float sums[HALF_BLOCK], char *c, ptrdiff_t step, ptrdiff_t columns,
                      int *flags)
{
    const ptrdiff_t size = sizeof(uint16_t);
    uint16_t halves[HALF_BLOCK];
    floats_to_halves(sums, halves, flags);
    if (step == size && columns == HALF_BLOCK) {
        memcpy(c, halves, sizeof halves);
        return;
    }
    for (ptrdiff_t i = 0; i < columns; i++) {
        *(uint16_t *)(c + i * step) = halves[i];
    }
}

/* ---- a lane for each column ---- */

/* Lanes without a column have another one's elements: zeros times infinities would raise flags. */
INLINE void gather_row(const char *from, ptrdiff_t step, ptrdiff_t columns, uint16_t to[HALF_BLOCK])
{
    for (ptrdiff_t i = 0; i < HALF_BLOCK; i++) {
        to[i] = *(const uint16_t *)(from + (i < columns ? i : 0) * step);
    }
}

INLINE void lanes_of_columns(const struct product *x, ptrdiff_t row, ptrdiff_t column, int rows,
                             ptrdiff_t columns, bool contiguous, int *flags)
{
    lanes sum[DIRECT_ROWS][BLOCK_VECTORS] = {{{0}}};
    const char *a = x->a.data + row * x->a.row_step, *b = x->b.data + column * x->b.column_step;
    for (ptrdiff_t k = 0; k < x->k; k++) {
        uint16_t gathered[HALF_BLOCK];
        float floats[HALF_BLOCK];
        lanes of_b[BLOCK_VECTORS];
        if (!contiguous) {
            gather_row(b, x->b.column_step, columns, gathered);
        }
        halves_to_floats(contiguous ? (const uint16_t *)b : gathered, floats);
        memcpy(of_b, floats, sizeof of_b);
        for (int r = 0; r < rows; r++) {
            const float of_a = half_value(*(const uint16_t *)(a + r * x->a.row_step));
            for (int v = 0; v < (int)BLOCK_VECTORS; v++) {
                sum[r][v] += of_a * of_b[v];
            }
        }
        a += x->a.column_step;
        b += x->b.row_step;
    }
    for (int r = 0; r < rows; r++) {
        float sums[HALF_BLOCK];
        memcpy(sums, sum[r], sizeof sums);
        round_row(sums, x->c.data + (row + r) * x->c.row_step + column * x->c.column_step,
                  x->c.column_step, columns, flags);
    }
}

INLINE void rows_by_lanes(const struct product *x, ptrdiff_t row, int rows, int *flags)
{
    const bool contiguous = x->b.column_step == sizeof(uint16_t) && x->n >= HALF_BLOCK;
    for (ptrdiff_t column = 0; column < x->n; column += HALF_BLOCK) {
        const ptrdiff_t left = x->n - column;
        if (contiguous) {
            /* The last ones may overlap those before. */
            lanes_of_columns(x, row, left < HALF_BLOCK ? x->n - HALF_BLOCK : column, rows,
                             HALF_BLOCK, true, flags);
        } else {
            lanes_of_columns(x, row, column, rows, left < HALF_BLOCK ? left : HALF_BLOCK, false,
                             flags);
        }
    }
}

/* ---- contiguous k, or few columns: four dots at a time ---- */

typedef float four_floats __attribute__((vector_size(16)));

INLINE void floats_of(const char *from, ptrdiff_t step, ptrdiff_t count, float to[HALF_BLOCK])
{
    if (step == sizeof(uint16_t) && count >= HALF_BLOCK) {
        halves_to_floats((const uint16_t *)from, to);
        return;
    }
#if defined(__AVX512BW__) && defined(__AVX512VL__)
    if (step == sizeof(uint16_t)) {
        const __mmask16 some = (__mmask16)((1u << count) - 1);
        _mm512_storeu_ps(to, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(some, from)));
        return;
    }
#endif
    uint16_t gathered[HALF_BLOCK] = {0};
    for (ptrdiff_t i = 0; i < HALF_BLOCK && i < count; i++) {
        gathered[i] = *(const uint16_t *)(from + i * step);
    }
    halves_to_floats(gathered, to);
}

/* Always four: GCC would compute those of two or three in vectors of four, and raise flags for zeros times infinities. A
 * column that is missing is another one. */
INLINE void four_dots(const struct product *x, ptrdiff_t row, ptrdiff_t column, int rows,
                      int *flags)
{
    four_floats sum[DIRECT_ROWS] = {{0}};
    const ptrdiff_t columns = x->n - column < DOTS ? x->n - column : DOTS;
    const char *a = x->a.data + row * x->a.row_step, *b = x->b.data + column * x->b.column_step;
    for (ptrdiff_t at = 0; at < x->k; at += HALF_BLOCK) {
        const ptrdiff_t count = x->k - at < HALF_BLOCK ? x->k - at : HALF_BLOCK;
        float of_a[DIRECT_ROWS][HALF_BLOCK], of_b[DOTS][HALF_BLOCK];
        four_floats across[HALF_BLOCK];
        for (int r = 0; r < rows; r++) {
            floats_of(a + r * x->a.row_step + at * x->a.column_step, x->a.column_step, count,
                      of_a[r]);
        }
        for (int c = 0; c < DOTS; c++) {
            // cppcheck-suppress knownConditionTrueFalse
            if (c < columns) {
                floats_of(b + c * x->b.column_step + at * x->b.row_step, x->b.row_step, count,
                          of_b[c]);
            } else {
                memcpy(of_b[c], of_b[0], sizeof of_b[c]);
            }
        }
        transpose_to_panel((const char *)of_b, sizeof of_b[0], DOTS, DOTS, HALF_BLOCK,
                           (char *)across, sizeof(float));
        for (ptrdiff_t k = 0; k < count; k++) {
            for (int r = 0; r < rows; r++) {
                sum[r] += of_a[r][k] * across[k];
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        float sums[HALF_BLOCK] = {0};
        memcpy(sums, &sum[r], sizeof sum[r]);
        round_row(sums, x->c.data + (row + r) * x->c.row_step + column * x->c.column_step,
                  x->c.column_step, columns, flags);
    }
}

INLINE void rows_by_dots(const struct product *x, ptrdiff_t row, int rows, int *flags)
{
    for (ptrdiff_t column = 0; column < x->n; column += DOTS) {
        four_dots(x, row, column, rows, flags);
    }
}

static void one_dot(const struct product *x, int *flags)
{
    float sum = 0;
    for (ptrdiff_t k = 0; k < x->k; k++) {
        sum += half_value(*(const uint16_t *)(x->a.data + k * x->a.column_step)) *
               half_value(*(const uint16_t *)(x->b.data + k * x->b.row_step));
    }
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    *(uint16_t *)x->c.data = float_to_half(bits, flags);
}

/* ---- the product ---- */

INLINE void direct_rows(const struct product *x, ptrdiff_t row, int rows, int *flags)
{
    const bool has_dots = x->b.row_step == sizeof(uint16_t) && x->k >= HALF_BLOCK;
    if (x->n < LEAST_LANES || (has_dots && x->b.column_step != sizeof(uint16_t))) {
        rows_by_dots(x, row, rows, flags);
    } else {
        rows_by_lanes(x, row, rows, flags);
    }
}

static void compute_directly(const struct product *product)
{
    const struct product x = product->n < product->m ? product_transposed(product) : *product;
    int flags = 0;
    ptrdiff_t row = 0;
    if (x.n == 1) {
        one_dot(&x, &flags);
        row = 1;
    }
    for (; row + DIRECT_ROWS <= x.m; row += DIRECT_ROWS) {
        direct_rows(&x, row, DIRECT_ROWS, &flags);
    }
    if (row + 2 <= x.m) {
        direct_rows(&x, row, 2, &flags);
        row += 2;
    }
    if (row < x.m) {
        direct_rows(&x, row, 1, &flags);
    }
    if (flags != 0) {
        feraiseexcept(flags);
    }
}
