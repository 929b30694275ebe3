/* Products of bool as bit matrices, 64 columns to a word: each set bit of a row of a ORs a row of b into the
 * row of c, until all of its bits are set. */
#include "matmul_kernels.h"

#include "kernels/vector.h"

static ptrdiff_t at_most_64(ptrdiff_t count)
{
    return count < 64 ? count : 64;
}

/* One bit for each of eight bytes, 1 where it is not 0: sets bit 7 of these, then gathers by multiplication. */
INLINE uint64_t eight_true_bits(const char *from)
{
    uint64_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    const uint64_t low = 0x7f7f7f7f7f7f7f7fu;
    bytes = (((bytes & low) + low) | bytes) >> 7 & 0x0101010101010101u;
    return bytes * 0x0102040810204080u >> 56;
}

/* The same for 64 bytes. */
INLINE uint64_t true_bits(const char *from)
{
#if defined(__AVX512BW__)
    const __m512i all = _mm512_loadu_si512(from);
    return _mm512_test_epi8_mask(all, all);
#elif defined(__AVX2__)
    uint64_t bits = 0;
    for (int i = 0; i < 2; i++) {
        const __m256i bytes = _mm256_loadu_si256((const void *)(from + 32 * i));
        const __m256i zeros = _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256());
        bits |= (uint64_t)(uint32_t)~_mm256_movemask_epi8(zeros) << (32 * i);
    }
    return bits;
#elif defined(__x86_64__)
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++) {
        const __m128i bytes = _mm_loadu_si128((const void *)(from + 16 * i));
        const __m128i zeros = _mm_cmpeq_epi8(bytes, _mm_setzero_si128());
        bits |= (uint64_t)(uint16_t)~_mm_movemask_epi8(zeros) << (16 * i);
    }
    return bits;
#else
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) {
        bits |= eight_true_bits(from + 8 * i) << (8 * i);
    }
    return bits;
#endif
}

/* Transposes 64 x 64 bits: swaps the off-diagonal quadrants of ever smaller squares. */
static void transpose_bits(uint64_t words[64])
{
    uint64_t mask = 0x00000000ffffffffu;
    for (int half = 32; half > 0; half /= 2, mask ^= mask << half) {
        for (int row = 0; row < 64; row = (row + half + 1) & ~half) {
            const uint64_t swap = (words[row] >> half ^ words[row + half]) & mask;
            words[row] ^= swap << half;
            words[row + half] ^= swap;
        }
    }
}

static uint64_t few_true_bits(const char *from, ptrdiff_t step, ptrdiff_t count)
{
    uint64_t bits = 0;
    ptrdiff_t i = 0;
    for (; step == 1 && i + 8 <= count; i += 8) {
        bits |= eight_true_bits(from + i) << i;
    }
    if (i > 0 && i < count) {
        return bits | eight_true_bits(from + count - 8) << (count - 8);
    }
    for (; i < count; i++) {
        bits |= (uint64_t)(from[i * step] != 0) << i;
    }
    return bits;
}

/* `count` <= 64 bytes of a contiguous row; may read some of the `before` bytes in front of them. */
static uint64_t last_true_bits(const char *from, ptrdiff_t before, ptrdiff_t count)
{
    return before + count < 64 || count == 0 ? few_true_bits(from, 1, count)
                                             : true_bits(from + count - 64) >> (64 - count);
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
            transpose_bits(square);
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

/* Eight bits to eight bytes of 0 or 1: byte i keeps bit i of a copy and moves it to bit 0. */
INLINE uint64_t eight_bytes(uint64_t bits)
{
    const uint64_t bytes = (bits & 0xff) * 0x0101010101010101u & 0x8040201008040201u;
    return (bytes + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
}

INLINE void unpack_64_bits(char *to, uint64_t bits)
{
#if defined(__AVX512BW__)
    _mm512_storeu_si512(to, _mm512_maskz_set1_epi8(bits, 1));
#elif defined(__AVX2__)
    const __m256i byte_of =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit_of = _mm256_set1_epi64x((long long)0x8040201008040201u);
    for (int i = 0; i < 2; i++) {
        const __m256i bytes = _mm256_set1_epi32((int)(bits >> (32 * i)));
        const __m256i kept = _mm256_and_si256(_mm256_shuffle_epi8(bytes, byte_of), bit_of);
        const __m256i ones = _mm256_min_epu8(kept, _mm256_set1_epi8(1));
        _mm256_storeu_si256((void *)(to + 32 * i), ones);
    }
#else
    for (int i = 0; i < 8; i++) {
        const uint64_t bytes = eight_bytes(bits >> (8 * i));
        memcpy(to + 8 * i, &bytes, sizeof bytes);
    }
#endif
}

static void unpack_bits(char *to, ptrdiff_t step, uint64_t bits, ptrdiff_t count)
{
    if (step == 1 && count == 64) {
        unpack_64_bits(to, bits);
        return;
    }
    ptrdiff_t i = 0;
    for (; step == 1 && i + 8 <= count; i += 8) {
        const uint64_t bytes = eight_bytes(bits >> i);
        memcpy(to + i, &bytes, sizeof bytes);
    }
    if (i > 0 && i < count) {
        const uint64_t bytes = eight_bytes(bits >> (count - 8));
        memcpy(to + count - 8, &bytes, sizeof bytes);
        return;
    }
    for (; i < count; i++) {
        to[i * step] = (char)(bits >> i & 1);
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

static void multiply_bits(const uint64_t *a, ptrdiff_t a_words, const uint64_t *b,
                          ptrdiff_t b_words, const struct product *x, ptrdiff_t first_row,
                          ptrdiff_t rows)
{
    enum { WIDTH = 8 };
    for (ptrdiff_t row = first_row; row < first_row + rows; row++) {
        for (ptrdiff_t word = 0; word < b_words; word += WIDTH) {
            const ptrdiff_t width = b_words - word < WIDTH ? b_words - word : WIDTH;
            uint64_t sum[WIDTH] = {0};
            const ptrdiff_t last = x->n - 64 * (word + width - 1);
            sum[width - 1] = last < 64 ? ~(uint64_t)0 << last : 0;
            const uint64_t *bits = a + row * a_words;
            // cppcheck-suppress knownConditionTrueFalse
            if (width == WIDTH) {
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
            }
        }
    }
}

/* Dot products with up to 16 rows of a, 64 k at a time. Rows of a are packed on demand: sums mostly end early. */
INLINE void dots_of_rows(const struct product *matrices, uint64_t *a, ptrdiff_t m)
{
    /* A local copy: stores to c, bytes, could alias the struct. */
    const struct product x = *matrices;
    const ptrdiff_t words = (x.k + 63) / 64;
    const unsigned all = (1u << m) - 1;
    const char *b = x.b.data;
    char *c = x.c.data;
    ptrdiff_t packed = 0;
    /* k = 0 by itself: where most elements are true, it decides, as in NumPy's loop. */
    unsigned first = 0;
    for (ptrdiff_t row = 0; row < m && x.k > 0; row++) {
        first |= (unsigned)(x.a.data[row * x.a.row_step] != 0) << row;
    }
    for (ptrdiff_t column = 0; column < x.n; column++) {
        unsigned found = x.k > 0 && *b != 0 ? first : 0;
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

static void dots_of_bits(const struct product *x, uint64_t *a)
{
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

/* NumPy's loop: each sum ends at the first true product. */
static void by_elements_bool(const struct product *x, ptrdiff_t from_column)
{
    for (ptrdiff_t row = 0; row < x->m; row++) {
        const char *a = x->a.data + row * x->a.row_step;
        for (ptrdiff_t column = from_column; column < x->n; column++) {
            const char *b = x->b.data + column * x->b.column_step;
            char any = 0;
            for (ptrdiff_t k = 0; k < x->k && !any; k++) {
                any = a[k * x->a.column_step] != 0 && b[k * x->b.row_step] != 0;
            }
            x->c.data[row * x->c.row_step + column * x->c.column_step] = any;
        }
    }
}

/* A dot product of contiguous elements, the first eight one by one, then 64 at a time. */
static char any_product(const char *a, const char *b, ptrdiff_t k)
{
    ptrdiff_t at = 0;
    for (; at < k && at < 8; at++) {
        if (a[at] != 0 && b[at] != 0) {
            return 1;
        }
    }
    for (; at + 64 <= k; at += 64) {
        if ((true_bits(a + at) & true_bits(b + at)) != 0) {
            return 1;
        }
    }
    return (few_true_bits(a + at, 1, k - at) & few_true_bits(b + at, 1, k - at)) != 0;
}

static void direct_bool(const struct product *x)
{
    if (x->a.column_step == 1 && x->b.row_step == 1) {
        for (ptrdiff_t row = 0; row < x->m; row++) {
            for (ptrdiff_t column = 0; column < x->n; column++) {
                x->c.data[row * x->c.row_step + column * x->c.column_step] = any_product(
                    x->a.data + row * x->a.row_step, x->b.data + column * x->b.column_step, x->k);
            }
        }
        return;
    }
    ptrdiff_t column = 0;
    for (; x->b.column_step == 1 && column + 64 <= x->n; column += 64) {
        for (ptrdiff_t row = 0; row < x->m; row++) {
            const char *a = x->a.data + row * x->a.row_step, *b = x->b.data + column;
            uint64_t sum = 0;
            for (ptrdiff_t k = 0; k < x->k && sum != ~(uint64_t)0; k++) {
                sum |= a[k * x->a.column_step] != 0 ? true_bits(b + k * x->b.row_step) : 0;
            }
            unpack_bits(x->c.data + row * x->c.row_step + column * x->c.column_step,
                        x->c.column_step, sum, 64);
        }
    }
    by_elements_bool(x, column);
}

static const struct matmul_bits truth_values = {
    .pack = pack_bits,
    .multiply = multiply_bits,
    .dots = dots_of_bits,
    .direct = direct_bool,
};

const struct matmul_kernel KERNEL = {.kind = 'b', .item_size = 1, .bits = &truth_values};
