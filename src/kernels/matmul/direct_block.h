/* A block of c, `rows` rows by `vectors` vectors of BLOCK_VECTOR_BYTES, summed in lanes of type LANE;
 * included by direct_template.h once per vector width. */
#define stored_vector JOIN(stored_vector, BLOCK_VECTOR_BYTES)
#define sums JOIN(sum_vector, BLOCK_VECTOR_BYTES)

typedef element stored_vector __attribute__((vector_size(BLOCK_VECTOR_BYTES)));
typedef LANE sums __attribute__((vector_size(BLOCK_VECTOR_BYTES / sizeof(element) * sizeof(LANE))));

/* The last vector begins at byte `last` of the block: it may overlap the one before. */
INLINE void JOIN(block, BLOCK_VECTOR_BYTES)(const struct product *x, ptrdiff_t row, ptrdiff_t at,
                                            int rows, int vectors, ptrdiff_t last)
{
    sums sum[4][8];
#if defined(CROSS_SUMS)
    sums cross[4][8];
#endif
    const char *a = x->a.data + row * x->a.row_step, *b = x->b.data + at;
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
            sum[r][v] = (sums){0};
#if defined(CROSS_SUMS)
            cross[r][v] = (sums){0};
#endif
        }
    }
#pragma GCC unroll 1
    for (ptrdiff_t k = 0; k < x->k; k++) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            stored_vector stored;
            memcpy(&stored, b + (v < vectors - 1 ? v * BLOCK_VECTOR_BYTES : last),
                   BLOCK_VECTOR_BYTES);
#if defined(__x86_64__) && BLOCK_VECTOR_BYTES >= 16
            /* In a register: one unaligned load, not one in the instruction of each row. */
            __asm__("" : "+v"(stored));
#endif
            const sums column = __builtin_convertvector(stored, sums);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) {
                const sums factor = *(const element *)(a + r * x->a.row_step) - (sums){0};
#if defined(CROSS_SUMS)
                sum[r][v] += JOIN(low_products, BLOCK_VECTOR_BYTES)(factor, column);
                cross[r][v] =
                    JOIN(add_cross_products, BLOCK_VECTOR_BYTES)(cross[r][v], factor, column);
#elif defined(FUSED)
                sum[r][v] = JOIN(add_products, BLOCK_VECTOR_BYTES)(sum[r][v], factor, column);
#else
                sum[r][v] += factor * column;
#endif
            }
        }
        a += x->a.column_step;
        b += x->b.row_step;
    }
    const ptrdiff_t c_step = x->c.row_step;
    char *c = x->c.data + row * c_step + at;
    for (int r = 0; r < rows; r++) {
        for (int v = 0; v < vectors; v++) {
#if defined(CROSS_SUMS)
            sum[r][v] += (cross[r][v] + (cross[r][v] >> 32)) << 32;
#endif
            const stored_vector elements = __builtin_convertvector(sum[r][v], stored_vector);
            memcpy(c + (v < vectors - 1 ? v * BLOCK_VECTOR_BYTES : last), &elements,
                   BLOCK_VECTOR_BYTES);
        }
        c += c_step;
    }
}

/* The columns from byte `at` of a row on, two vectors at a time: a row is at least one. The last one ends with the
 * row. */
INLINE void JOIN(compute_rest, BLOCK_VECTOR_BYTES)(const struct product *x, ptrdiff_t row,
                                                   ptrdiff_t at, int rows)
{
    const ptrdiff_t end = x->n * (ptrdiff_t)sizeof(element);
    for (; end - at > BLOCK_VECTOR_BYTES; at += 2 * BLOCK_VECTOR_BYTES) {
        const ptrdiff_t left =
            end - at < 2 * BLOCK_VECTOR_BYTES ? end - at : 2 * BLOCK_VECTOR_BYTES;
        JOIN(block, BLOCK_VECTOR_BYTES)(x, row, at, rows, 2, left - BLOCK_VECTOR_BYTES);
    }
    if (at < end) {
        JOIN(block, BLOCK_VECTOR_BYTES)(x, row, end - BLOCK_VECTOR_BYTES, rows, 1, 0);
    }
}

#if NARROWEST < 16 && BLOCK_VECTOR_BYTES <= 16
/* A row that is shorter than the vector: of two to seven bytes, or if it `has_word`, of 8 to 15. */
INLINE stored_vector JOIN(load_short, BLOCK_VECTOR_BYTES)(const char *from, ptrdiff_t bytes,
                                                          bool has_word)
{
#if BLOCK_VECTOR_BYTES == 8
    (void)has_word;
    return (stored_vector)short_word(from, bytes);
#else
    typedef uint64_t words __attribute__((vector_size(16)));
    const uint64_t first = has_word ? load_word(from) : short_word(from, bytes);
    /* What is not in the first one. */
    const uint64_t last = has_word ? load_word(from + bytes - 8) >> 1 >> (8 * (16 - bytes) - 1) : 0;
    return (stored_vector)(words){first, last};
#endif
}

INLINE void JOIN(store_short, BLOCK_VECTOR_BYTES)(char *to, ptrdiff_t bytes, bool has_word,
                                                  stored_vector row)
{
    char elements[16];
    memcpy(elements, &row, sizeof row);
    if (has_word) {
        copy_ends(8, (size_t)bytes, elements, to);
    } else if (bytes >= 4) {
        copy_ends(4, (size_t)bytes, elements, to);
    } else {
        copy_ends(2, (size_t)bytes, elements, to);
    }
}

/* Of whole rows. */
INLINE void JOIN(short_block, BLOCK_VECTOR_BYTES)(const struct product *x, ptrdiff_t row, int rows,
                                                  bool has_word)
{
    const ptrdiff_t bytes = x->n * (ptrdiff_t)sizeof(element), a_row = x->a.row_step;
    const char *a = x->a.data + row * a_row, *b = x->b.data;
    sums sum[4];
    for (int r = 0; r < rows; r++) {
        sum[r] = (sums){0};
    }
#pragma GCC unroll 2
    for (ptrdiff_t k = 0; k < x->k; k++) {
        const stored_vector stored = JOIN(load_short, BLOCK_VECTOR_BYTES)(b, bytes, has_word);
        const sums column = __builtin_convertvector(stored, sums);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            sum[r] += (*(const element *)(a + r * a_row) - (sums){0}) * column;
        }
        a += x->a.column_step;
        b += x->b.row_step;
    }
    char *c = x->c.data + row * x->c.row_step;
    for (int r = 0; r < rows; r++, c += x->c.row_step) {
        JOIN(store_short, BLOCK_VECTOR_BYTES)
        (c, bytes, has_word, __builtin_convertvector(sum[r], stored_vector));
    }
}
#endif

#undef stored_vector
#undef sums
#undef LANE
#undef BLOCK_VECTOR_BYTES
