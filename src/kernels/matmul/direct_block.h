/* Some rows of c and contiguous columns of them, in vectors of FEW_BYTES that are summed in lanes of
 * LANE; included by direct_template.h once per width. */
#define few JOIN(few, FEW_BYTES)
#define sums JOIN(few_sums, FEW_BYTES)

typedef element few __attribute__((vector_size(FEW_BYTES)));
typedef LANE sums __attribute__((vector_size(FEW_BYTES / sizeof(element) * sizeof(LANE))));

INLINE void JOIN(block, FEW_BYTES)(const struct product *x, ptrdiff_t row, ptrdiff_t at, int rows,
                                   int vectors)
{
    sums sum[4][8];
    const char *a = x->a.data + row * x->a.row_step, *b = x->b.data + at;
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            sum[r][v] = (sums){0};
        }
    }
#pragma GCC unroll 1
    for (ptrdiff_t k = 0; k < x->k; k++) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            few stored;
            memcpy(&stored, b + v * FEW_BYTES, FEW_BYTES);
            const sums column = __builtin_convertvector(stored, sums);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) {
                const sums factor = *(const element *)(a + r * x->a.row_step) - (sums){0};
#if defined(FUSED)
                sum[r][v] = JOIN(add_products, FEW_BYTES)(sum[r][v], factor, column);
#else
                sum[r][v] += factor * column;
#endif
            }
        }
        a += x->a.column_step;
        b += x->b.row_step;
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            const few elements = __builtin_convertvector(sum[r][v], few);
            memcpy(x->c.data + (row + r) * x->c.row_step + at + v * FEW_BYTES, &elements,
                   FEW_BYTES);
        }
    }
}

/* The columns from `at` bytes on; the last vector ends with the row, whatever it shares with the one
 * before. */
INLINE void JOIN(rest_by, FEW_BYTES)(const struct product *x, ptrdiff_t row, ptrdiff_t at, int rows)
{
    const ptrdiff_t end = x->n * (ptrdiff_t)sizeof(element);
    for (; at < end; at += FEW_BYTES) {
        JOIN(block, FEW_BYTES)
        (x, row, at + FEW_BYTES <= end ? at : end - FEW_BYTES, rows, 1);
    }
}

#undef few
#undef sums
#undef LANE
#undef FEW_BYTES
