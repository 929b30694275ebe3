/* Products of bool as bit matrices, 64 columns to a word: each set bit of a row of a ORs a row of b into the
 * row of c, until all of its bits are set. */
#include "matmul_kernels.h"

#include "true_bits.h"

enum {
    FEW_K = 16,    /* that decide most sums where half of the elements are true */
    MANY_DOTS = 8, /* which what comes before the first word takes less time than */
};

/* Transposes 64 x 64 bits, of which the first `rows` rows are wanted: swaps the off-diagonal quadrants of ever smaller
 * squares. */
INLINE void transpose_bits(uint64_t words[64], ptrdiff_t rows)
{
    uint64_t mask = 0x00000000ffffffffu;
    for (int half = 32; half > 0; half /= 2, mask ^= mask << half) {
        const int end = ((int)rows + half - 1) & -half;
        for (int row = 0; row < end; row = (row + half + 1) & ~half) {
            const uint64_t swap = (words[row] >> half ^ words[row + half]) & mask;
            words[row] ^= swap << half;
            words[row + half] ^= swap;
        }
    }
}

/* The packed rows are columns in memory, contiguous across: reads along memory and transposes. */
static void pack_across(uint64_t *bits, ptrdiff_t words, const char *from, ptrdiff_t step,
                        ptrdiff_t rows, ptrdiff_t count)
{
    for (ptrdiff_t word = 0; word < words; word++) {
        const ptrdiff_t height = at_most_64(count - 64 * word);
        for (ptrdiff_t row = 0; row < rows; row += 64) {
            const ptrdiff_t width = at_most_64(rows - row);
            uint64_t square[64] = {0};
            for (ptrdiff_t i = 0; i < height; i++) {
                square[i] = last_true_bits(from + (64 * word + i) * step + row, row, width);
            }
            if (width == 64) { /* a constant: loops of vectors */
                transpose_bits(square, 64);
            } else {
                transpose_bits(square, width);
            }
            for (ptrdiff_t i = 0; i < width; i++) {
                bits[(row + i) * words + word] = square[i];
            }
        }
    }
}

static void pack_bits(uint64_t *bits, ptrdiff_t words, const char *from, ptrdiff_t row,
                      ptrdiff_t step, ptrdiff_t rows, ptrdiff_t count)
{
    if (row == 1 && step != 1) {
        pack_across(bits, words, from, step, rows, count);
        return;
    }
    for (ptrdiff_t i = 0; i < rows; i++) {
        const char *line = from + i * row;
        for (ptrdiff_t word = 0; word < words; word++) {
            const ptrdiff_t before = 64 * word, left = at_most_64(count - before);
            bits[i * words + word] = step == 1 ? last_true_bits(line + before, before, left)
                                               : few_true_bits(line + before * step, step, left);
        }
    }
}

/* ORs the rows of b that one row of a selects into `sum`. Bits past the last column must be set, so that
 * "all bits set" ends the sum early. */
INLINE void or_rows(uint64_t *sum, const uint64_t *a, ptrdiff_t a_words, const uint64_t *b,
                    ptrdiff_t b_words, ptrdiff_t words)
{
    for (ptrdiff_t word = 0; word < a_words; word++) {
        const uint64_t *rows = b + word * 64 * b_words;
        for (uint64_t left = a[word]; left != 0; left &= left - 1) {
            const uint64_t *row = rows + __builtin_ctzll(left) * b_words;
            for (ptrdiff_t i = 0; i < words; i++) {
                sum[i] |= row[i];
            }
            if (words == 1 && sum[0] == ~(uint64_t)0) {
                return;
            }
        }
        uint64_t all = ~(uint64_t)0;
        for (ptrdiff_t i = 0; i < words; i++) {
            all &= sum[i];
        }
        if (all == ~(uint64_t)0) {
            return;
        }
    }
}

/* The same of few k, for up to 64 columns: how many bits of a are set would be a guess. */
INLINE uint64_t or_few_rows(uint64_t sum, uint64_t a, const uint64_t *b, ptrdiff_t b_words,
                            ptrdiff_t k)
{
    for (ptrdiff_t i = 0; i < k; i++) {
        sum |= b[i * b_words] & -(a >> i & 1);
    }
    return sum;
}

static bool multiply_bits(const uint64_t *a, ptrdiff_t a_words, const uint64_t *b,
                          ptrdiff_t b_words, const struct product *x, ptrdiff_t first_row,
                          ptrdiff_t rows)
{
    enum { WIDTH = 8 };
    uint64_t all = ~(uint64_t)0;
    for (ptrdiff_t row = first_row; row < first_row + rows; row++) {
        for (ptrdiff_t word = 0; word < b_words; word += WIDTH) {
            const ptrdiff_t width = b_words - word < WIDTH ? b_words - word : WIDTH;
            uint64_t sum[WIDTH] = {0};
            const ptrdiff_t last = x->n - 64 * (word + width - 1);
            sum[width - 1] = last < 64 ? ~(uint64_t)0 << last : 0;
            const uint64_t *bits = a + row * a_words;
            // cppcheck-suppress knownConditionTrueFalse
            if (x->k <= FEW_K && width == 1) {
                sum[0] = or_few_rows(sum[0], bits[0], b + word, b_words, x->k);
                // cppcheck-suppress knownConditionTrueFalse
            } else if (width == WIDTH) {
                or_rows(sum, bits, a_words, b + word, b_words, WIDTH);
                // cppcheck-suppress knownConditionTrueFalse
            } else if (width == 1) {
                or_rows(sum, bits, a_words, b + word, b_words, 1);
            } else {
                or_rows(sum, bits, a_words, b + word, b_words, width);
            }
            char *to = x->c.data + row * x->c.row_step + 64 * word * x->c.column_step;
            for (ptrdiff_t i = 0; i < width; i++) {
                const ptrdiff_t left = x->n - 64 * (word + i);
                unpack_bits(to + 64 * i * x->c.column_step, x->c.column_step, sum[i],
                            left < 64 ? left : 64);
                all &= sum[i];
            }
        }
    }
    return all == ~(uint64_t)0;
}

/* Dot products of few k with up to 16 rows of a: whether they have ended would be a guess. */
static void dots_of_few(const struct product *matrices)
{
    const struct product x = *matrices; /* stores to c, bytes, could alias the struct */
    uint64_t a[MOST_DOT_ROWS];
    for (ptrdiff_t row = 0; row < x.m; row++) {
        a[row] = few_true_bits(x.a.data + row * x.a.row_step, x.a.column_step, x.k);
    }
    for (ptrdiff_t column = 0; column < x.n; column++) {
        const uint64_t bits = few_true_bits(x.b.data + column * x.b.column_step, 1, x.k);
        char *c = x.c.data + column * x.c.column_step;
        for (ptrdiff_t row = 0; row < x.m; row++) {
            c[row * x.c.row_step] = (a[row] & bits) != 0;
        }
    }
}

/* Dot products with up to 16 rows of a, 64 k at a time. Where many elements are true, the first 16 decide nearly
 * every sum: rows of a are packed no further than they are needed; and where the very first one decides most columns,
 * it is looked at before the others. */
INLINE void dots_of_rows(const struct product *matrices, uint64_t *a, ptrdiff_t m)
{
    const struct product x = *matrices;
    const ptrdiff_t words = (x.k + 63) / 64;
    const unsigned all = (1u << m) - 1;
    const char *b = x.b.data;
    char *c = x.c.data;
    ptrdiff_t packed = 0, alone = 0; /* columns that the first element decides */
    uint64_t first[MOST_DOT_ROWS];
    unsigned rows_of_first = 0;
    for (ptrdiff_t row = 0; row < m; row++) {
        rows_of_first |= (unsigned)(x.a.data[row * x.a.row_step] != 0) << row;
        first[row] = few_true_bits(x.a.data + row * x.a.row_step, x.a.column_step, FEW_K);
    }
    for (ptrdiff_t column = 0; column < x.n; column++) {
        unsigned found = *b != 0 ? rows_of_first : 0;
        const bool is_rare = alone < column - column / 8;
        alone += found == all;
        if (found != all || is_rare) {
            const uint64_t of_b = few_true_bits(b, 1, FEW_K);
            for (ptrdiff_t row = 0; row < m; row++) {
                found |= (unsigned)((first[row] & of_b) != 0) << row;
            }
        }
        for (ptrdiff_t word = 0; word < words && found != all; word++) {
            const ptrdiff_t before = 64 * word, count = at_most_64(x.k - before);
            uint64_t *const rows = a + word * m;
            if (packed == word) {
                packed++;
                for (ptrdiff_t row = 0; row < m; row++) {
                    rows[row] =
                        few_true_bits(x.a.data + row * x.a.row_step + before * x.a.column_step,
                                      x.a.column_step, count);
                }
            }
            const uint64_t bits =
                count == 64 ? true_bits(b + before) : last_true_bits(b + before, before, count);
            for (ptrdiff_t row = 0; row < m; row++) {
                found |= (unsigned)((rows[row] & bits) != 0) << row;
            }
        }
        for (ptrdiff_t row = 0; row < m; row++) {
            c[row * x.c.row_step] = (char)(found >> row & 1);
        }
        b += x.b.column_step;
        c += x.c.column_step;
    }
}

/* Whether two of n elements are true, as NumPy's loop finds it. */
INLINE bool any_of_first(const char *a, ptrdiff_t a_step, const char *b, ptrdiff_t b_step,
                         ptrdiff_t n)
{
    for (; n > 0; n--, a += a_step, b += b_step) {
        if (*a != 0 && *b != 0) {
            return true;
        }
    }
    return false;
}

/* Computes few dots as NumPy's loop does, which takes less time than what comes before the first word; returns whether
 * the first elements decide all of them. */
static bool end_soon(const struct product *x)
{
    for (ptrdiff_t column = 0; column < x->n; column++) {
        for (ptrdiff_t row = 0; row < x->m; row++) {
            if (!any_of_first(x->a.data + row * x->a.row_step, x->a.column_step,
                              x->b.data + column * x->b.column_step, 1, FEW_K)) {
                return false;
            }
            x->c.data[row * x->c.row_step + column * x->c.column_step] = 1;
        }
    }
    return true;
}

static void dots_of_bits(const struct product *x, uint64_t *a)
{
    if (x->k <= FEW_K) {
        dots_of_few(x);
        return;
    }
    if (x->m * x->n < MANY_DOTS && end_soon(x)) {
        return;
    }
    switch (x->m) {
    case 2:
        dots_of_rows(x, a, 2);
        break;
    case 3:
        dots_of_rows(x, a, 3);
        break;
    case 4:
        dots_of_rows(x, a, 4);
        break;
    default:
        dots_of_rows(x, a, x->m);
    }
}

/* ---- columns of any steps ---- */

enum {
    FEW_COLUMNS = 8,
    MOST_FIRST = 32,
    FIRST_MET = 8,
    GROWTH = 3,
    MOST_MET = 256,
    TOGETHER = 4,
    MOST_UNDECIDED = 256
};

/* Where b has elements that true ones of a row of a meet, in bytes; a multiple of TOGETHER of them, the last of which
 * are repeated: at once, as how many are left would be a guess. */
INLINE ptrdiff_t elements_met(const struct product *x, const char *a, ptrdiff_t from, ptrdiff_t end,
                              ptrdiff_t *met)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t k = from; k < end; k++) {
        met[count] = k * x->b.row_step;
        count += a[k * x->a.column_step] != 0;
    }
    const ptrdiff_t last = count > 0 ? met[count - 1] : 0;
    for (int i = 0; i < TOGETHER - 1; i++) {
        met[count + i] = last;
    }
    return (count + TOGETHER - 1) / TOGETHER * TOGETHER;
}

/* To branch on each element would be to guess. */
INLINE int any_of_met(const char *b, const ptrdiff_t *met)
{
    return b[met[0]] | b[met[1]] | b[met[2]] | b[met[3]];
}

/* Columns of a row of c in which nothing true has been found so far. */
struct undecided {
    ptrdiff_t count;
    uint16_t column[MOST_UNDECIDED];
};

INLINE void decide(const struct product *x, char *c, struct undecided *undecided,
                   const ptrdiff_t *met, ptrdiff_t count)
{
    ptrdiff_t left = 0;
    for (ptrdiff_t i = 0; i < undecided->count; i++) {
        const uint16_t column = undecided->column[i];
        const char *b = x->b.data + column * x->b.column_step;
        int any = 0;
        for (ptrdiff_t k = 0; k < count && any == 0; k += TOGETHER) {
            any = any_of_met(b, met + k);
        }
        c[column * x->c.column_step] = any != 0;
        undecided->column[left] = column;
        left += any == 0;
    }
    undecided->count = left;
}

/* Up to MOST_UNDECIDED columns of a row of c: looks only at what true elements of a meet. The first few mostly decide:
 * a is read in growing pieces. */
INLINE void columns_of_any(const struct product *x, const char *a, char *c)
{
    const ptrdiff_t c_step = x->c.column_step, b_step = x->b.column_step, k = x->k, n = x->n;
    ptrdiff_t met[MOST_MET + TOGETHER];
    memset(met, 0, TOGETHER * sizeof *met); /* all of it would take longer than few columns */
    ptrdiff_t at = k < FIRST_MET ? k : FIRST_MET, left = 0;
    ptrdiff_t count = elements_met(x, a, 0, at, met);
    const ptrdiff_t first[TOGETHER] = {met[0], met[1], met[2], met[3]};
    const int wanted = count > 0 ? ~0 : 0;
    struct undecided undecided;
    const char *b = x->b.data;
    for (ptrdiff_t column = 0; column < n; column++, b += b_step) {
        const int any = any_of_met(b, first) & wanted;
        c[column * c_step] = any != 0;
        undecided.column[left] = (uint16_t)column;
        left += any == 0;
    }
    undecided.count = left;
    if (count > TOGETHER) {
        decide(x, c, &undecided, met + TOGETHER, count - TOGETHER);
    }
    while (at < k && undecided.count > 0) {
        const ptrdiff_t from = at;
        const ptrdiff_t piece = from < MOST_MET / GROWTH ? from * GROWTH : MOST_MET;
        at = k - at < piece ? k : at + piece;
        count = elements_met(x, a, from, at, met);
        decide(x, c, &undecided, met, count);
    }
}

static void row_of_any(const struct product *x, const char *a, char *c)
{
    struct product part = *x;
    for (ptrdiff_t column = 0; column < x->n; column += part.n) {
        part.n = x->n - column < MOST_UNDECIDED ? x->n - column : MOST_UNDECIDED;
        part.b.data = x->b.data + column * x->b.column_step;
        columns_of_any(&part, a, c + column * x->c.column_step);
    }
}

/* ---- columns together, or dots ---- */

/* All rows of up to 64 columns. A branch on elements of a would be a guess. The first k, which mostly decide, are packed
 * once for all rows, as far as one needs them. */
INLINE void or_of_rows(const struct product *x, ptrdiff_t b_step, ptrdiff_t column,
                       ptrdiff_t columns)
{
    enum { MOST_PACKED = 256 };
    const uint64_t past = columns < 64 ? ~(uint64_t)0 << columns : 0;
    const char *b = x->b.data + column * b_step;
    uint64_t packed[MOST_PACKED];
    ptrdiff_t count = 0;
    for (ptrdiff_t row = 0; row < x->m; row++) {
        const char *a = x->a.data + row * x->a.row_step;
        uint64_t sum = past;
        ptrdiff_t k = 0;
        for (; k < count && sum != ~(uint64_t)0; k++) {
            sum |= packed[k] & -(uint64_t)(a[k * x->a.column_step] != 0);
        }
        for (; k < x->k && sum != ~(uint64_t)0; k++) {
            const char *from = b + k * x->b.row_step;
            const uint64_t bits = columns == 64 && b_step == 1
                                      ? true_bits(from)
                                      : few_true_bits(from, b_step, columns);
            if (k < MOST_PACKED) {
                packed[k] = bits;
                count = k + 1;
            }
            sum |= bits & -(uint64_t)(a[k * x->a.column_step] != 0);
        }
        unpack_bits(x->c.data + row * x->c.row_step + column * x->c.column_step, x->c.column_step,
                    sum, columns);
    }
}

/* A row of two to seven contiguous columns, as bytes: mostly the first k decide, and where they do not, there are few
 * true elements to look for. */
static void narrow_row(const struct product *x, const char *a, char *c)
{
    const uint64_t decided = 0x0101010101010101u >> 8 * (8 - x->n);
    const ptrdiff_t first = x->k < FEW_K ? x->k : FEW_K;
    uint64_t sum = 0;
    for (ptrdiff_t k = 0; k < first && sum != decided; k++) {
        sum |= short_word(x->b.data + k * x->b.row_step, x->n) &
               -(uint64_t)(a[k * x->a.column_step] != 0);
    }
    if (first < x->k && sum != decided) {
        row_of_any(x, a, c);
        return;
    }
    for (ptrdiff_t column = 0; column < x->n; column++) {
        c[column * x->c.column_step] = (sum >> 8 * column & 0xff) != 0;
    }
}

INLINE uint64_t products_of_words(uint64_t a, uint64_t b)
{
    return truths_of_word(a) & truths_of_word(b);
}

/* Whether two of 2 to 16 contiguous elements are true, in words that overlap: without a branch that would be a guess. */
INLINE char any_product_of_few(const char *a, const char *b, ptrdiff_t k)
{
    if (k < 8) {
        return products_of_words(short_word(a, k), short_word(b, k)) != 0;
    }
    const ptrdiff_t last = k - 8;
    return (products_of_words(load_word(a), load_word(b)) |
            products_of_words(load_word(a + last), load_word(b + last))) != 0;
}

/* Whether two contiguous elements are true, 64 at a time. */
INLINE char any_product(const char *a, const char *b, ptrdiff_t k)
{
    ptrdiff_t at = 0;
    for (; at + 64 <= k; at += 64) {
        if ((true_bits(a + at) & true_bits(b + at)) != 0) {
            return 1;
        }
    }
    const ptrdiff_t left = k - at;
    return (last_true_bits(a + at, at, left) & last_true_bits(b + at, at, left)) != 0;
}

INLINE void row_of_dots(const struct product *x, const char *a, char *c)
{
    const char *b = x->b.data;
    if (x->k > 0 && x->k <= 64) {
        const uint64_t bits = scattered_true_bits(a, x->k);
        for (ptrdiff_t column = 0; column < x->n; column++, b += x->b.column_step) {
            c[column * x->c.column_step] = (scattered_true_bits(b, x->k) & bits) != 0;
        }
        return;
    }
    for (ptrdiff_t column = 0; column < x->n; column++, b += x->b.column_step) {
        c[column * x->c.column_step] = any_product(a, b, x->k);
    }
}

/* One column: looks at the first elements of each row, which mostly decide, as NumPy's loop does. What is around
 * row_of_any() takes longer. */
static void one_column(const struct product *x, ptrdiff_t first)
{
    const ptrdiff_t a_step = x->a.column_step, a_next = x->a.row_step, b_step = x->b.row_step;
    const ptrdiff_t c_next = x->c.row_step;
    const char *a = x->a.data, *const b = x->b.data;
    char *c = x->c.data;
    for (ptrdiff_t row = x->m; row > 0; row--, a += a_next, c += c_next) {
        if (any_of_first(a, a_step, b, b_step, first)) {
            *c = 1;
        } else {
            row_of_any(x, a, c);
        }
    }
}

/* A row of several columns: looks at what the first true elements of a meet, before. */
static void some_columns(const struct product *x, const char *a, char *c, ptrdiff_t first)
{
    ptrdiff_t met[FIRST_MET + TOGETHER] = {0};
    const bool meets = elements_met(x, a, 0, first < FIRST_MET ? first : FIRST_MET, met) > 0;
    struct product rest = *x;
    for (; rest.n > 0; rest.n--, rest.b.data += x->b.column_step, c += x->c.column_step) {
        if (!(meets && any_of_met(rest.b.data, met) != 0) &&
            !any_of_first(a, x->a.column_step, rest.b.data, x->b.row_step, first)) {
            row_of_any(&rest, a, c);
            return;
        }
        *c = 1;
    }
}

/* All rows of few columns. */
NOINLINE void rows_of_few(const struct product *x)
{
    const ptrdiff_t first = x->k < MOST_FIRST ? x->k : MOST_FIRST;
    if (x->n == 1) {
        one_column(x, first);
        return;
    }
    for (ptrdiff_t row = 0; row < x->m; row++) {
        some_columns(x, x->a.data + row * x->a.row_step, x->c.data + row * x->c.row_step, first);
    }
}

INLINE void direct_one(const struct product *x)
{
    if (x->b.column_step == 1 && x->n >= 8) {
        ptrdiff_t column = 0;
        for (; column + 64 <= x->n; column += 64) {
            or_of_rows(x, 1, column, 64);
        }
        if (column < x->n) {
            or_of_rows(x, 1, column, x->n - column);
        }
        return;
    }
    const bool is_contiguous = x->a.column_step == 1 && x->b.row_step == 1;
    if (x->m > MOST_DOT_ROWS && x->n >= 8 && !is_contiguous) {
        for (ptrdiff_t column = 0; column < x->n; column += 64) {
            or_of_rows(x, x->b.column_step, column, at_most_64(x->n - column));
        }
        return;
    }
    const bool is_narrow = x->b.column_step == 1 && x->n > 1;
    if (x->n <= FEW_COLUMNS && !is_narrow && !is_contiguous) {
        rows_of_few(x);
        return;
    }
    for (ptrdiff_t row = 0; row < x->m; row++) {
        const char *a = x->a.data + row * x->a.row_step;
        char *c = x->c.data + row * x->c.row_step;
        if (is_narrow) {
            narrow_row(x, a, c);
        } else if (is_contiguous) {
            row_of_dots(x, a, c);
        } else {
            row_of_any(x, a, c);
        }
    }
}

/* Dots by themselves take less time than what surrounds them. */
NOINLINE void stack_of_dots(const struct product *x)
{
    const char *a = x->a.data, *b = x->b.data;
    char *c = x->c.data;
    const bool is_short = x->k >= 2 && x->k <= 16;
    for (ptrdiff_t i = 0; i < x->batch; i++) {
        *c = is_short ? any_product_of_few(a, b, x->k) : any_product(a, b, x->k);
        a += x->a.batch_step;
        b += x->b.batch_step;
        c += x->c.batch_step;
    }
}

static void direct_bool(const struct product *stack)
{
    if (stack->m == 1 && stack->n == 1 && stack->a.column_step == 1 && stack->b.row_step == 1) {
        stack_of_dots(stack);
        return;
    }
    struct product x = *stack;
    for (ptrdiff_t i = 0; i < x.batch; i++) {
        direct_one(&x);
        x.a.data += x.a.batch_step;
        x.b.data += x.b.batch_step;
        x.c.data += x.c.batch_step;
    }
}

static const struct matmul_bits truth_values = {
    .pack = pack_bits,
    .multiply = multiply_bits,
    .dots = dots_of_bits,
    .direct = direct_bool,
};

const struct matmul_kernel KERNEL = {.kind = 'b', .item_size = 1, .bits = &truth_values};
