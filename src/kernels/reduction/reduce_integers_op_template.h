/* The reductions of one integer dtype by one operation; for reduce_integers.h. Parameters:
 *   OP  its name, OF the function that applies it to strided elements, MASKED reduce_masked()
 *   VALUE(a, b) */
#define name(what) JOIN(what, OP)

static void name(reduce_each)(const struct reduction_kernel *kernel, const char *data,
                              ptrdiff_t step, ptrdiff_t n, ptrdiff_t next, ptrdiff_t count,
                              bool from_memory, void *sums)
{
    (void)kernel, (void)from_memory;
    uint64_t *result = sums;
    for (ptrdiff_t k = 0; k < count; k++) {
        result[k] = OF(data + k * next, step, n);
    }
}

/* Two rows at a time, after the first or the first two. */
INLINE void name(add_rows)(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next,
                           ptrdiff_t columns, bool onto, uint64_t *restrict result)
{
    ptrdiff_t row = onto ? 0 : 2 - rows % 2;
    if (onto && rows % 2 != 0) {
        for (ptrdiff_t column = 0; column < columns; column++) {
            result[column] = VALUE(result[column], value_at(data + column * next));
        }
        row = 1;
    } else if (!onto && rows % 2 != 0) {
        for (ptrdiff_t column = 0; column < columns; column++) {
            result[column] = value_at(data + column * next);
        }
    } else if (!onto) {
        for (ptrdiff_t column = 0; column < columns; column++) {
            const char *element = data + column * next;
            result[column] = VALUE(value_at(element), value_at(element + step));
        }
    }
    for (; row < rows; row += 2) {
        for (ptrdiff_t column = 0; column < columns; column++) {
            const char *element = data + row * step + column * next;
            const uint64_t both = VALUE(value_at(element), value_at(element + step));
            result[column] = VALUE(result[column], both);
        }
    }
}

/* Not inlined, or the compiler would fuse it with the next row. */
NOINLINE void name(add_row)(const char *data, ptrdiff_t columns, uint64_t *restrict result)
{
#pragma GCC unroll 4
    for (ptrdiff_t column = 0; column < columns; column++) {
        result[column] = VALUE(result[column], value_at(data + column * (ptrdiff_t)sizeof(stored)));
    }
}

/* Few columns: each in its turn, in blocks of rows that stay in the cache. */
static void name(reduce_few_columns)(const char *data, ptrdiff_t step, ptrdiff_t rows,
                                     ptrdiff_t next, ptrdiff_t columns, bool onto, uint64_t *result)
{
    for (ptrdiff_t row = 0; row < rows; row += FEW_COLUMNS_ROWS) {
        const ptrdiff_t n = rows - row < FEW_COLUMNS_ROWS ? rows - row : FEW_COLUMNS_ROWS;
        for (ptrdiff_t column = 0; column < columns; column++) {
            const uint64_t value = OF(data + row * step + column * next, step, n);
            result[column] = onto || row > 0 ? VALUE(result[column], value) : value;
        }
    }
}

static void name(reduce_rows)(const struct reduction_kernel *kernel, const char *data,
                              ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next, ptrdiff_t columns,
                              bool from_memory, bool onto, void *sums)
{
    (void)kernel;
    if (columns <= FEW_COLUMNS) {
        name(reduce_few_columns)(data, step, rows, next, columns, onto, sums);
        return;
    }
    const bool is_contiguous = next == sizeof(stored);
    const bool one_by_one =
        from_memory && step > VERY_SHORT_ROW_BYTES &&
        (is_contiguous ? columns * (ptrdiff_t)sizeof(uint64_t) <= SHORT_ROW_BYTES
                       : columns * labs(next) <= SHORT_STRIDED_ROW_BYTES);
    for (ptrdiff_t at = 0; at < columns; at += ROW_COLUMNS) {
        const ptrdiff_t left = columns - at, n = left < ROW_COLUMNS ? left : ROW_COLUMNS;
        uint64_t *result = (uint64_t *)sums + at;
        if (one_by_one) {
            name(add_rows)(data + at * next, step, 1, next, n, onto, result);
            for (ptrdiff_t row = 1; row < rows; row++) {
                const char *from = data + row * step + at * next;
                if (is_contiguous) {
                    name(add_row)(from, n, result);
                } else {
                    name(add_rows)(from, step, 1, next, n, true, result);
                }
            }
        } else if (is_contiguous) {
            name(add_rows)(data + at * next, step, rows, sizeof(stored), n, onto, result);
        } else {
            name(add_rows)(data + at * next, step, rows, next, n, onto, result);
        }
    }
}

static void name(reduce_segments)(const struct reduction_kernel *kernel, const char *data,
                                  ptrdiff_t step, const ptrdiff_t bounds[], ptrdiff_t count,
                                  bool from_memory, char *out, ptrdiff_t out_step, size_t out_size)
{
    (void)kernel, (void)from_memory;
    for (ptrdiff_t k = 0; k < count; k++) {
        const char *first = data + bounds[k] * step;
        const ptrdiff_t n = bounds[k + 1] - bounds[k];
        store_one(n > 1 ? OF(first, step, n) : value_at(first), out + k * out_step, out_size);
    }
}

static void name(combine)(const struct reduction_kernel *kernel, void *into, const void *later,
                          size_t bytes)
{
    (void)kernel;
    uint64_t *result = into;
    const uint64_t *other = later;
    for (size_t i = 0; i < bytes / sizeof *result; i++) {
        result[i] = VALUE(result[i], other[i]);
    }
}

static void name(store)(const struct reduction_kernel *kernel, const void *sums, ptrdiff_t n,
                        char *out, ptrdiff_t step, size_t out_size, bool onto)
{
    (void)kernel;
    const uint64_t *result = sums;
    if (step == sizeof *result && out_size == sizeof *result && !onto) {
        memcpy(out, sums, (size_t)n * sizeof *result);
        return;
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        char *to = out + k * step;
        store_one(onto ? VALUE(load_one(to, out_size), result[k]) : result[k], to, out_size);
    }
}

DEFINE_IN_FOURS(name(run), uint64_t, value_at, VALUE, put_value)

static void name(accumulate)(const char *before, const char *in, ptrdiff_t in_step, char *out,
                             ptrdiff_t out_step, ptrdiff_t n)
{
    name(run)(value_at(before), in, in_step, out, out_step, n);
}

const struct reduction_kernel REDUCTION(OP, DTYPE) = {
    .op = STRING(OP),
    .kind = IS_BOOL     ? 'b'
            : IS_SIGNED ? 'i'
                        : 'u',
    .item_size = sizeof(stored),
    .sum_size = sizeof(uint64_t),
    .any_order = true,
    .final = -1,
    .reduce_each = name(reduce_each),
    .reduce_masked = MASKED,
    .reduce_rows = name(reduce_rows),
    .reduce_segments = name(reduce_segments),
    .combine = name(combine),
    .store = name(store),
    .accumulate = name(accumulate),
};

#undef name
#undef OP
#undef OF
#undef MASKED
#undef VALUE
