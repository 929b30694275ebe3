/* Quotients of integers, converted where they are divided: the divider is what holds them up. */
#include "kernels/copy/repeat_item.h"

enum {
    QUOTIENTS = 32,           /* of a block: compilers turn fewer bytes into worse code */
    FEW_QUOTIENTS = 8,        /* take less time one by one, */
    FEW_QUOTIENTS_APART = 16, /* and those of elements that would be gathered, or repeated */
};

typedef void divide_block(const char *a, const char *b, double *quotients, ptrdiff_t n);

INLINE void store_quotients(const double quotients[], char *out, ptrdiff_t step, ptrdiff_t n,
                            bool stream)
{
    if (n == QUOTIENTS && step == sizeof(double)) {
        for (ptrdiff_t at = 0; at < QUOTIENTS * (ptrdiff_t)sizeof(double); at += VECTOR_BYTES) {
            vector_float64 v;
            memcpy(&v, (const char *)quotients + at, sizeof v);
            store_float64(out + at, v, stream);
        }
        return;
    }
    for (ptrdiff_t k = 0; k < n; k++) {
        *(double *)(out + k * step) = quotients[k];
    }
}

#if defined(__AVX2__)
/* Compilers unpack small integers step by step, which takes longer than to divide them. */
INLINE __m256d widen_four(const char *from, size_t size, bool is_signed)
{
    int64_t bits = 0;
    memcpy(&bits, from, 4 * size);
    const __m128i four = _mm_cvtsi64_si128(bits);
    if (size == 1) {
        return _mm256_cvtepi32_pd(is_signed ? _mm_cvtepi8_epi32(four) : _mm_cvtepu8_epi32(four));
    }
    return _mm256_cvtepi32_pd(is_signed ? _mm_cvtepi16_epi32(four) : _mm_cvtepu16_epi32(four));
}

INLINE ptrdiff_t divide_fours(const char *a, const char *b, double *quotients, ptrdiff_t n,
                              char kind, size_t size)
{
    ptrdiff_t done = 0;
    for (; kind != 'b' && size <= 2 && done + 4 <= n; done += 4) {
        const ptrdiff_t at = done * (ptrdiff_t)size;
        _mm256_storeu_pd(quotients + done, widen_four(a + at, size, kind == 'i') /
                                               widen_four(b + at, size, kind == 'i'));
    }
    return done;
}
#else
#define divide_fours(a, b, quotients, n, kind, size) 0
#endif

/* Inlined with constant functions. `step`: of the elements of a and b, 0 where one block of them is repeated; `count`:
 * the elements of a first block, to where lines of the output begin. Few quotients are written where they belong, but
 * for those of elements that may lie there themselves. */
INLINE void divide_blocks(divide_block *block, size_t size, const char *const in[],
                          const ptrdiff_t step[], char *out, ptrdiff_t out_step, ptrdiff_t n,
                          ptrdiff_t count, bool stream)
{
    const bool writes_few = size < sizeof(double) && out_step == sizeof(double);
    _Alignas(VECTOR_BYTES) double quotients[QUOTIENTS];
    const char *a = in[0], *b = in[1];
    for (; n > 0; n -= count, count = QUOTIENTS) {
        count = n < count ? n : count;
        if (count == QUOTIENTS) { /* a constant */
            block(a, b, quotients, QUOTIENTS);
            store_quotients(quotients, out, out_step, QUOTIENTS, stream);
        } else if (writes_few) {
            block(a, b, (double *)out, count);
        } else {
            block(a, b, quotients, count);
            store_quotients(quotients, out, out_step, count, stream);
        }
        a += count * step[0];
        b += count * step[1];
        out += count * out_step;
    }
}

/* Operands that are not contiguous are gathered some blocks at a time, and one block of repeated ones. */
INLINE void divide(divide_block *block, size_t size, char *const data[], const ptrdiff_t step[],
                   ptrdiff_t n, bool stream)
{
    _Alignas(VECTOR_BYTES) char gathered[2][GATHERED_ELEMENTS * sizeof(uint64_t)];
    const ptrdiff_t item = (ptrdiff_t)size;
    const bool is_aligned = step[2] == sizeof(double) &&
                            (stream || n * (ptrdiff_t)sizeof(double) >= ALIGNED_FROM_BYTES);
    const ptrdiff_t before = (ptrdiff_t)(-(uintptr_t)data[2] % LINE_BYTES / sizeof(double));
    const char *in[] = {data[0], data[1]};
    ptrdiff_t in_step[] = {item, item}, first = is_aligned ? before : QUOTIENTS;
    bool gathers = false;
    for (int i = 0; i < 2; i++) {
        gathers = gathers || (step[i] != item && step[i] != 0);
        if (step[i] == 0) {
            in[i] = gathered[i];
            in_step[i] = 0;
            repeat_item(data[i], size, QUOTIENTS, gathered[i]);
        }
    }
    if (!gathers) {
        divide_blocks(block, size, in, in_step, data[2], step[2], n, first, stream);
        return;
    }
    for (ptrdiff_t done = 0, count; done < n; done += count, first = QUOTIENTS) {
        count = n - done < GATHERED_ELEMENTS ? n - done
                : is_aligned && done == 0    ? GATHERED_ELEMENTS - QUOTIENTS + before
                                             : GATHERED_ELEMENTS;
        for (int i = 0; i < 2; i++) {
            if (step[i] == item) {
                in[i] = data[i] + done * item;
            } else if (step[i] != 0) {
                gather_words(data[i] + done * step[i], step[i], size, count, gathered[i]);
                in[i] = gathered[i];
            }
        }
        divide_blocks(block, size, in, in_step, data[2] + done * step[2], step[2], count, first,
                      stream);
    }
}

INLINE bool are_few_quotients(const ptrdiff_t step[], ptrdiff_t item, ptrdiff_t n)
{
    const bool are_contiguous = step[0] == item && step[1] == item;
    return n <= (are_contiguous ? FEW_QUOTIENTS : FEW_QUOTIENTS_APART);
}

#define DEFINE(source, kind, type, target, to_kind, to_type, value, op)                            \
    INLINE double double_##source(type x)                                                          \
    {                                                                                              \
        return value;                                                                              \
    }                                                                                              \
    INLINE void divide_block_##source(const char *a, const char *b, double *restrict quotients,    \
                                      ptrdiff_t n)                                                 \
    {                                                                                              \
        for (ptrdiff_t i = divide_fours(a, b, quotients, n, kind, sizeof(type)); i < n; i++) {     \
            quotients[i] =                                                                         \
                double_##source(((const type *)a)[i]) / double_##source(((const type *)b)[i]);     \
        }                                                                                          \
    }                                                                                              \
    NOINLINE void divide_cached_##source(char *const data[], const ptrdiff_t step[], ptrdiff_t n)  \
    {                                                                                              \
        divide(divide_block_##source, sizeof(type), data, step, n, false);                         \
    }                                                                                              \
    SCALAR static void divide_##source(char *const data[], const ptrdiff_t step[], ptrdiff_t n)    \
    {                                                                                              \
        if (!are_few_quotients(step, sizeof(type), n)) {                                           \
            divide_cached_##source(data, step, n);                                                 \
            return;                                                                                \
        }                                                                                          \
        const char *a = data[0], *b = data[1];                                                     \
        char *out = data[2];                                                                       \
        for (; n > 0; n--) {                                                                       \
            *(double *)out =                                                                       \
                double_##source(*(const type *)a) / double_##source(*(const type *)b);             \
            a += step[0];                                                                          \
            b += step[1];                                                                          \
            out += step[2];                                                                        \
        }                                                                                          \
    }                                                                                              \
    static void divide_streaming_##source(char *const data[], const ptrdiff_t step[], ptrdiff_t n) \
    {                                                                                              \
        divide(divide_block_##source, sizeof(type), data, step, n, CAN_STREAM);                    \
    }
INTEGERS_TO_FLOAT64(DEFINE, )

#define ROW(source, kind, type, target, to_kind, to_type, value, op)                               \
    {"divide", kind, sizeof(type), divide_##source, CAN_STREAM ? divide_streaming_##source : NULL, \
     NULL},
static const struct kernel rows_quotients[] = {
    INTEGERS_TO_FLOAT64(ROW, ){NULL, 0, 0, NULL, NULL, NULL}};
#undef ROW
#undef DEFINE
