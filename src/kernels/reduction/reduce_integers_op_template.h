/* The reductions of one integer dtype by one operation; for reduce_integers.h. Parameters:
 *   OP  its name, OF the function that applies it to strided elements, IDENTITY its neutral element
 *   VALUE(a, b) */
#define name(what) JOIN(what, OP)

/* One accumulator is enough; the others are neutral. */
static void name(reduce)(const char *data, ptrdiff_t step, ptrdiff_t n, void *accumulators)
{
    uint64_t *accumulator = accumulators;
    accumulator[0] = OF(data, step, n);
    for (size_t i = 1; i < ACCUMULATORS_BYTES / sizeof *accumulator; i++) {
        accumulator[i] = IDENTITY;
    }
}

static void name(reduce_each)(const char *data, ptrdiff_t step, ptrdiff_t n, ptrdiff_t next,
                              ptrdiff_t count, void *sums)
{
    uint64_t *result = sums;
    for (ptrdiff_t k = 0; k < count; k++) {
        result[k] = OF(data + k * next, step, n);
    }
}

/* Two rows at a time, after the first or the first two. */
INLINE void name(add_rows)(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next,
                           ptrdiff_t columns, uint64_t *restrict result)
{
    if (rows % 2 != 0) {
        for (ptrdiff_t column = 0; column < columns; column++) {
            result[column] = value_at(data + column * next);
        }
    } else {
        for (ptrdiff_t column = 0; column < columns; column++) {
            const char *element = data + column * next;
            result[column] = VALUE(value_at(element), value_at(element + step));
        }
    }
    for (ptrdiff_t row = 2 - rows % 2; row < rows; row += 2) {
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

static void name(reduce_rows)(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next,
                              ptrdiff_t columns, bool from_memory, void *scratch, void *sums)
{
    (void)scratch;
    const bool one_by_one = from_memory && next == sizeof(stored) && step > VERY_SHORT_ROW_BYTES &&
                            columns * (ptrdiff_t)sizeof(uint64_t) <= SHORT_ROW_BYTES;
    for (ptrdiff_t at = 0; at < columns; at += ROW_COLUMNS) {
        const ptrdiff_t left = columns - at, n = left < ROW_COLUMNS ? left : ROW_COLUMNS;
        uint64_t *result = (uint64_t *)sums + at;
        if (one_by_one) {
            name(add_rows)(data + at * next, step, 1, next, n, result);
            for (ptrdiff_t row = 1; row < rows; row++) {
                name(add_row)(data + row * step + at * next, n, result);
            }
        } else if (next == sizeof(stored)) {
            name(add_rows)(data + at * next, step, rows, sizeof(stored), n, result);
        } else {
            name(add_rows)(data + at * next, step, rows, next, n, result);
        }
    }
}

static void name(combine)(void *into, const void *later, size_t bytes)
{
    uint64_t *result = into;
    const uint64_t *other = later;
    for (size_t i = 0; i < bytes / sizeof *result; i++) {
        result[i] = VALUE(result[i], other[i]);
    }
}

static void name(fold)(const void *accumulators, void *sum_)
{
    const uint64_t *accumulator = accumulators;
    uint64_t result = IDENTITY;
    for (size_t i = 0; i < ACCUMULATORS_BYTES / sizeof *accumulator; i++) {
        result = VALUE(result, accumulator[i]);
    }
    *(uint64_t *)sum_ = result;
}

static void name(store)(const void *sums, ptrdiff_t n, char *out, ptrdiff_t step, size_t out_size,
                        bool onto)
{
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

static void name(accumulate)(uint64_t carry, const char *in, ptrdiff_t in_step, char *out,
                             ptrdiff_t out_step, ptrdiff_t n)
{
    for (ptrdiff_t k = 0; k < n; k++) {
        carry = VALUE(carry, value_at(in + k * in_step));
        *(unsigned_stored *)(out + k * out_step) = (unsigned_stored)carry;
    }
}

const struct reduction_kernel REDUCTION(OP, DTYPE) = {
    .op = STRING(OP),
    .kind = IS_SIGNED ? 'i' : 'u',
    .item_size = sizeof(stored),
    .sum_size = sizeof(uint64_t),
    .leaf = 1024 / sizeof(stored),
    .reduce = name(reduce),
    .reduce_each = name(reduce_each),
    .reduce_rows = name(reduce_rows),
    .combine = name(combine),
    .fold = name(fold),
    .store = name(store),
    .accumulate = name(accumulate),
};

#undef name
#undef OP
#undef OF
#undef IDENTITY
#undef VALUE
