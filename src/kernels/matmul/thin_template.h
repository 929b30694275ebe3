/* Products of few columns, which read a once. What the file that includes it defines: see direct_template.h. */
#include "matmul_kernels.h"

typedef element thin_vector __attribute__((vector_size(WIDEST)));

/* Accumulators and coefficients that fit the registers: most columns at a time, and most rows of each. */
#if defined(__AVX512F__) || defined(__aarch64__)
enum { THIN_COLUMNS = 8, THIN_ACCUMULATORS = 24, THIN_FACTORS = 32 };
#else
enum { THIN_COLUMNS = 4, THIN_ACCUMULATORS = 8, THIN_FACTORS = 8 };
#endif
enum { THIN_LANES = WIDEST / sizeof(element), THIN_ROWS = 4, THIN_UNROLL = 4 };

INLINE thin_vector thin_load(const char *from)
{
    thin_vector vector;
    memcpy(&vector, from, WIDEST);
    return vector;
}

INLINE thin_vector thin_add(thin_vector sum, thin_vector a, thin_vector b)
{
#if defined(FUSED)
    return JOIN(add_products, WIDEST)(sum, a, b);
#else
    return sum + a * b;
#endif
}

INLINE element thin_add_element(element sum, element a, element b)
{
#if defined(FUSED)
    return add_product(sum, a, b);
#else
    return sum + a * b;
#endif
}

/* The vector that ends there, zeros but for its last `count` lanes. */
INLINE thin_vector thin_load_last(const char *end, ptrdiff_t count)
{
    typedef unsigned char bits __attribute__((vector_size(WIDEST)));
    static const struct {
        unsigned char none[WIDEST], all[WIDEST];
    } masks = {{0},
               {
#define MASK_8 255, 255, 255, 255, 255, 255, 255, 255
#define MASK_16 MASK_8, MASK_8
                   MASK_16,
#if WIDEST > 16
                   MASK_16,
#endif
#if WIDEST > 32
                   MASK_16, MASK_16
#endif
#undef MASK_16
#undef MASK_8
               }};
    bits mask;
    memcpy(&mask, masks.none + count * (ptrdiff_t)sizeof(element), WIDEST);
    return (thin_vector)((bits)thin_load(end - WIDEST) & mask);
}

INLINE element thin_sum(thin_vector vector)
{
    element lane[THIN_LANES];
    memcpy(lane, &vector, WIDEST);
    for (int half = THIN_LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            lane[i] += lane[i + half];
        }
    }
    return lane[0];
}

/* ---- contiguous k ---- */

/* `unroll` vectors of k at a time have accumulators of their own: one sum would wait for each addition. */
INLINE void thin_dots_block(const struct thin_product *x, ptrdiff_t row, ptrdiff_t column, int rows,
                            int columns, int unroll)
{
    thin_vector sum[THIN_UNROLL][THIN_ROWS][THIN_COLUMNS];
    const char *a = x->a + row * x->a_step, *b = x->b + column * x->b_step;
    const ptrdiff_t bytes = x->k * (ptrdiff_t)sizeof(element);
    for (int u = 0; u < unroll; u++) {
        for (int r = 0; r < rows; r++) {
            for (int c = 0; c < columns; c++) {
                sum[u][r][c] = (thin_vector){0};
            }
        }
    }
    ptrdiff_t at = 0;
#pragma GCC unroll 1
    for (; at + unroll * WIDEST <= bytes; at += unroll * WIDEST) {
#pragma GCC unroll 4
        for (int u = 0; u < unroll; u++) {
            thin_vector of_a[THIN_ROWS];
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) {
                of_a[r] = thin_load(a + r * x->a_step + at + u * WIDEST);
            }
#pragma GCC unroll 8
            for (int c = 0; c < columns; c++) {
                const thin_vector of_b = thin_load(b + c * x->b_step + at + u * WIDEST);
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++) {
                    sum[u][r][c] = thin_add(sum[u][r][c], of_a[r], of_b);
                }
            }
        }
    }
    for (; at < bytes; at += WIDEST) {
        const ptrdiff_t left = bytes - at;
        const ptrdiff_t count = left < WIDEST ? left / (ptrdiff_t)sizeof(element) : THIN_LANES;
        const ptrdiff_t end = at + count * (ptrdiff_t)sizeof(element);
        for (int c = 0; c < columns; c++) {
            const thin_vector of_b = thin_load_last(b + c * x->b_step + end, count);
            for (int r = 0; r < rows; r++) {
                sum[0][r][c] =
                    thin_add(sum[0][r][c], thin_load_last(a + r * x->a_step + end, count), of_b);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        element *to = (element *)(x->sums + (row + r) * x->sums_step) + column;
        for (int c = 0; c < columns; c++) {
            for (int u = 1; u < unroll; u++) {
                sum[0][r][c] += sum[u][r][c];
            }
            const element total = thin_sum(sum[0][r][c]);
            to[c] = x->accumulate ? to[c] + total : total;
        }
    }
}

/* All rows of `columns` columns, a constant. */
INLINE void thin_dots_columns(const struct thin_product *x, ptrdiff_t column, int columns)
{
    const int rows = 4 * columns <= THIN_ACCUMULATORS   ? 4
                     : 2 * columns <= THIN_ACCUMULATORS ? 2
                                                        : 1;
    const int unroll = rows * columns >= 8 ? 1 : 2;
    ptrdiff_t row = 0;
    for (; row + rows <= x->rows; row += rows) {
        thin_dots_block(x, row, column, rows, columns, unroll);
    }
    for (; row < x->rows; row++) {
        thin_dots_block(x, row, column, 1, columns, columns == 1 ? 4 : columns < 4 ? 2 : 1);
    }
}

/* Column groups of about the same size: eight and one would read a twice for the sake of one. */
INLINE ptrdiff_t thin_group(ptrdiff_t columns)
{
    const ptrdiff_t groups = (columns + THIN_COLUMNS - 1) / THIN_COLUMNS;
    return (columns + groups - 1) / groups;
}

#define THIN_CASES(function)                                                                       \
    switch (columns) {                                                                             \
    case 1:                                                                                        \
        function(x, column, 1);                                                                    \
        break;                                                                                     \
    case 2:                                                                                        \
        function(x, column, 2);                                                                    \
        break;                                                                                     \
    case 3:                                                                                        \
        function(x, column, 3);                                                                    \
        break;                                                                                     \
    case 4:                                                                                        \
        function(x, column, 4);                                                                    \
        break;                                                                                     \
        THIN_MORE_CASES(function)                                                                  \
    }
#if defined(__AVX512F__) || defined(__aarch64__)
#define THIN_MORE_CASES(function)                                                                  \
    case 5:                                                                                        \
        function(x, column, 5);                                                                    \
        break;                                                                                     \
    case 6:                                                                                        \
        function(x, column, 6);                                                                    \
        break;                                                                                     \
    case 7:                                                                                        \
        function(x, column, 7);                                                                    \
        break;                                                                                     \
    case 8:                                                                                        \
        function(x, column, 8);                                                                    \
        break;
#else
#define THIN_MORE_CASES(function)
#endif

static void thin_dots(const struct thin_product *x)
{
    const ptrdiff_t group = thin_group(x->columns);
    for (ptrdiff_t column = 0; column < x->columns; column += group) {
        const ptrdiff_t columns = x->columns - column < group ? x->columns - column : group;
        THIN_CASES(thin_dots_columns)
    }
}

/* ---- contiguous rows ---- */

/* Adds the products of `group` k to a vector of rows of `columns` columns, from those in `before` on. */
INLINE void thin_sums_vector(const struct thin_product *x, const char *a, int group, int columns,
                             element factor[8][THIN_COLUMNS], const thin_vector before[],
                             bool accumulate, char *sums)
{
    thin_vector sum[THIN_COLUMNS];
#pragma GCC unroll 8
    for (int c = 0; c < columns; c++) {
        sum[c] = (thin_vector){0};
    }
#pragma GCC unroll 8
    for (int g = 0; g < group; g++) {
        /* The next rows: each is too short for the processor to see where they are going. */
        __builtin_prefetch(a + (g + group) * x->a_step);
        const thin_vector of_a = thin_load(a + g * x->a_step);
#pragma GCC unroll 8
        for (int c = 0; c < columns; c++) {
            sum[c] = thin_add(sum[c], of_a, factor[g][c] - (thin_vector){0});
        }
    }
#pragma GCC unroll 8
    for (int c = 0; c < columns; c++) {
        if (accumulate) {
            sum[c] += before[c];
        }
        memcpy(sums + c * x->sums_step, &sum[c], WIDEST);
    }
}

INLINE void thin_load_sums(const struct thin_product *x, const char *sums, int columns,
                           thin_vector loaded[])
{
#pragma GCC unroll 8
    for (int c = 0; c < columns; c++) {
        loaded[c] = thin_load(sums + c * x->sums_step);
    }
}

/* Adds the products of `group` k to all rows of `columns` columns. The last vector ends with the rows: it writes some
 * of what the one before it has written once more. */
INLINE void thin_sums_block(const struct thin_product *x, ptrdiff_t k, ptrdiff_t column, int group,
                            int columns, bool accumulate)
{
    const char *a = x->a + k * x->a_step;
    element factor[8][THIN_COLUMNS];
    for (int c = 0; c < columns; c++) {
        for (int g = 0; g < group; g++) {
            factor[g][c] = ((const element *)(x->b + (column + c) * x->b_step))[k + g];
        }
    }
    char *sums = x->sums + column * x->sums_step;
    const ptrdiff_t bytes = x->rows * (ptrdiff_t)sizeof(element), last = bytes - WIDEST;
    thin_vector before[THIN_COLUMNS], before_last[THIN_COLUMNS];
    ptrdiff_t at = 0;
    if (accumulate && last >= 0) {
        thin_load_sums(x, sums + last, columns, before_last);
    }
#pragma GCC unroll 1
    for (; at <= last; at += WIDEST) {
        if (accumulate) {
            thin_load_sums(x, sums + at, columns, before);
        }
        thin_sums_vector(x, a + at, group, columns, factor, before, accumulate, sums + at);
    }
    if (at < bytes && last >= 0) {
        thin_sums_vector(x, a + last, group, columns, factor, before_last, accumulate, sums + last);
        return;
    }
    for (; at < bytes; at += (ptrdiff_t)sizeof(element)) {
        for (int c = 0; c < columns; c++) {
            element *to = (element *)(sums + c * x->sums_step + at), sum = 0;
            for (int g = 0; g < group; g++) {
                sum =
                    thin_add_element(sum, *(const element *)(a + g * x->a_step + at), factor[g][c]);
            }
            *to = accumulate ? *to + sum : sum;
        }
    }
}

INLINE void thin_sums_columns(const struct thin_product *x, ptrdiff_t column, int columns)
{
    const int group = columns == 1 ? 8 : THIN_FACTORS / columns >= 8 ? 8 : THIN_FACTORS / columns;
    ptrdiff_t k = 0;
    if (x->k >= group) {
        thin_sums_block(x, 0, column, group, columns, x->accumulate);
        k = group;
    } else {
        thin_sums_block(x, 0, column, 1, columns, x->accumulate);
        k = 1;
    }
    for (; k + group <= x->k; k += group) {
        thin_sums_block(x, k, column, group, columns, true);
    }
    for (; k < x->k; k++) {
        thin_sums_block(x, k, column, 1, columns, true);
    }
}

static void thin_sums(const struct thin_product *x)
{
    const ptrdiff_t group = thin_group(x->columns);
    for (ptrdiff_t column = 0; column < x->columns; column += group) {
        const ptrdiff_t columns = x->columns - column < group ? x->columns - column : group;
        THIN_CASES(thin_sums_columns)
    }
}

/* ---- complex numbers ---- */

/* Along contiguous k: a.re b.re - a.im b.im is the dot of a's parts and (b.re, -b.im), and the imaginary part
 * that of (b.im, b.re). Along rows both parts of b are factors by themselves. */
static void thin_pack_complex(const struct thin_complex *x, char *to_)
{
    for (ptrdiff_t j = 0; j < x->columns; j++) {
        element *first = (element *)(to_ + 2 * j * x->step);
        element *second = (element *)(to_ + (2 * j + 1) * x->step);
        const char *from = x->from + j * x->column_step;
        for (ptrdiff_t k = 0; k < x->k; k++, from += x->k_step) {
            const element re = ((const element *)from)[0], part = ((const element *)from)[1];
            const element im = x->conjugated ? -part : part;
            if (x->for_dots) {
                first[2 * k] = re;
                first[2 * k + 1] = x->conjugates_a ? im : -im;
                second[2 * k] = im;
                second[2 * k + 1] = x->conjugates_a ? -re : re;
            } else {
                first[k] = re;
                second[k] = im;
            }
        }
    }
}

static void thin_combine(const char *by_re_, const char *by_im_, bool conjugates_a, ptrdiff_t rows,
                         char *c, ptrdiff_t c_step)
{
    const element *by_re = (const element *)by_re_, *by_im = (const element *)by_im_;
    for (ptrdiff_t i = 0; i < rows; i++, c += c_step) {
        const element crossed = by_im[2 * i + 1], turned = by_re[2 * i + 1];
        ((element *)c)[0] = conjugates_a ? by_re[2 * i] + crossed : by_re[2 * i] - crossed;
        ((element *)c)[1] = conjugates_a ? by_im[2 * i] - turned : by_im[2 * i] + turned;
    }
}

static void thin_add_sums(char *to, const char *from, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        ((element *)to)[i] += ((const element *)from)[i];
    }
}

static const struct thin_kernels thin_kernel = {
    .item_size = sizeof(element),
    .least_k = THIN_LANES,
    .dots = thin_dots,
    .sums = thin_sums,
    .pack_complex = thin_pack_complex,
    .combine = thin_combine,
    .add = thin_add_sums,
};
