/* The product without packing, for small and thin matrices; included once per dtype.
 *   DTYPE, ELEMENT, WIDE   suffix of the names, the dtype, and the type that computes an element
 *   ADD_PRODUCT(c, a, b)   c + a * b of elements; ADD_PRODUCTS of vectors */

#define few JOIN(few, DTYPE)
#define block JOIN(block, DTYPE)
#define element_sum JOIN(element_sum, DTYPE)
#define row_group JOIN(row_group, DTYPE)
#define by_columns JOIN(by_columns, DTYPE)
#define by_dots JOIN(by_dots, DTYPE)

typedef ELEMENT few __attribute__((vector_size(VECTOR_BYTES)));

INLINE WIDE element_sum(const char *a, const char *b, ptrdiff_t a_k, ptrdiff_t b_k, ptrdiff_t k)
{
    WIDE sum = 0;
    for (ptrdiff_t i = 0; i < k; i++) {
        const WIDE x = *(const ELEMENT *)(a + i * a_k), y = *(const ELEMENT *)(b + i * b_k);
        sum = ADD_PRODUCT(sum, x, y);
    }
    return sum;
}

INLINE void block(const struct matrices *x, ptrdiff_t row, ptrdiff_t at, int rows, int vectors)
{
    few sum[4][8];
    const char *a = x->a + row * x->a_row, *b = x->b + at;
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            sum[r][v] = (few){0};
        }
    }
#pragma GCC unroll 1
    for (ptrdiff_t k = 0; k < x->k; k++) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            few column;
            memcpy(&column, b + v * VECTOR_BYTES, VECTOR_BYTES);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) {
                const few factor = *(const ELEMENT *)(a + r * x->a_row) - (few){0};
                sum[r][v] = ADD_PRODUCTS(sum[r][v], factor, column);
            }
        }
        a += x->a_k;
        b += x->b_k;
    }
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            memcpy(x->c + (row + r) * x->c_row + at + v * VECTOR_BYTES, &sum[r][v], VECTOR_BYTES);
        }
    }
}

INLINE void row_group(const struct matrices *x, ptrdiff_t row, int rows, int vectors)
{
    const ptrdiff_t end = x->n * (ptrdiff_t)sizeof(ELEMENT);
    ptrdiff_t at = 0;
    for (; at + vectors * VECTOR_BYTES <= end; at += vectors * VECTOR_BYTES) {
        block(x, row, at, rows, vectors);
    }
    for (; at + VECTOR_BYTES <= end; at += VECTOR_BYTES) {
        block(x, row, at, rows, 1);
    }
    for (; at < end; at += sizeof(ELEMENT)) {
        for (int r = 0; r < rows; r++) {
            *(ELEMENT *)(x->c + (row + r) * x->c_row + at) =
                (ELEMENT)element_sum(x->a + (row + r) * x->a_row, x->b + at, x->a_k, x->b_k, x->k);
        }
    }
}

static void by_columns(const struct matrices *x)
{
    ptrdiff_t row = 0;
    for (; row + 4 <= x->m; row += 4) {
        row_group(x, row, 4, 2);
    }
    for (; row < x->m; row++) {
        row_group(x, row, 1, 8);
    }
}

/* With constant steps the compiler makes vectors of it where the order allows. */
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
    if (x->b_column == size && x->c_column == size && x->n * size >= VECTOR_BYTES) {
        by_columns(x);
    } else if (x->a_k == size && x->b_k == size) {
        by_dots(x, size, size);
    } else {
        by_dots(x, x->a_k, x->b_k);
    }
}

#undef few
#undef block
#undef element_sum
#undef row_group
#undef by_columns
#undef by_dots
#undef DTYPE
#undef ELEMENT
#undef WIDE
#undef ADD_PRODUCT
#undef ADD_PRODUCTS
