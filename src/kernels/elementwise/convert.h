/* Conversions of elements to other dtypes, as NumPy casts them. Contiguous ones become loops of
 * vectors, others are gathered first. */

#include "kernels/copy/gather_words.h"
#include "kernels/half_convert.h"
#include "kernels/integer_convert.h"

/* Of contiguous elements, the last block may overlap the one before: a loop of vectors leaves others one by one. Of two
 * elements, GCC 12 would not clean the upper halves of vector registers that it converts from memory. */
enum { GATHERED_ELEMENTS = 256, CONVERTED_BLOCK_BYTES = 32, LEAST_CONVERTED_BLOCK = 4 };

/* Processors may slow down for vectors of 512 bits, for some time: NumPy's loops of scalars, which get the converted
 * elements, took a tenth longer. `python benchmarks/random_calls.py` */
#pragma GCC push_options
#if defined(__AVX512F__)
#pragma GCC target("prefer-vector-width=256")
#endif

/* Whether elements that lie apart are converted four at a time, in registers: else they are gathered before. Compilers
 * make scalars of what becomes complex64. */
INLINE bool converts_quads(size_t size, size_t to_size, char to_kind)
{
    return size == sizeof(uint32_t) && (to_size == 16 || (to_size == 8 && to_kind != 'c'));
}

/* Of integers that halves hold exactly. */
INLINE uint16_t half_of_byte(int x)
{
    const float value = (float)x;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t magnitude = (bits & 0x7fffffffu) >> 13;
    return (uint16_t)((bits >> 16 & 0x8000u) | (x == 0 ? 0 : magnitude - (112u << 10)));
}

/* What is converted to what: DO(source, its kind, its type, target, its kind, its type, value of x, op), where
 * `op` is what the list was given. Kinds are those of dtypes; integers as targets are modulo 2^n. */
#define BYTES_TO(DO, target, to_kind, to_type, of_truth, op)                                       \
    DO(truth, 'b', uint8_t, target, to_kind, to_type, of_truth, op)                                \
    DO(int8, 'i', int8_t, target, to_kind, to_type, x, op)                                         \
    DO(uint8, 'u', uint8_t, target, to_kind, to_type, x, op)
#define SHORTS_TO(DO, target, to_kind, to_type, of_truth, op)                                      \
    BYTES_TO(DO, target, to_kind, to_type, of_truth, op)                                           \
    DO(int16, 'i', int16_t, target, to_kind, to_type, x, op)                                       \
    DO(uint16, 'u', uint16_t, target, to_kind, to_type, x, op)
#define INTEGERS_TO_FLOAT64(DO, op)                                                                \
    SHORTS_TO(DO, float64, 'f', double, truth(x), op)                                              \
    DO(int32, 'i', int32_t, float64, 'f', double, x, op)                                           \
    DO(int64, 'i', int64_t, float64, 'f', double, double_of_int64(x), op)                          \
    DO(uint32, 'u', uint32_t, float64, 'f', double, double_of_uint32(x), op)                       \
    DO(uint64, 'u', uint64_t, float64, 'f', double, double_of_uint64(x), op)
#define TO_FLOAT64(DO, op)                                                                         \
    INTEGERS_TO_FLOAT64(DO, op) DO(float32, 'f', float, float64, 'f', double, x, op)
#define TO_FLOAT32(DO, op) SHORTS_TO(DO, float32, 'f', float, truth(x), op)
#define TO_UINT8(DO, op) DO(truth, 'b', uint8_t, uint8, 'i', uint8_t, x != 0, op)
#define TO_UINT16(DO, op) BYTES_TO(DO, uint16, 'i', uint16_t, x != 0, op)
#define TO_UINT32(DO, op) SHORTS_TO(DO, uint32, 'i', uint32_t, x != 0, op)
#define TO_UINT64(DO, op)                                                                          \
    SHORTS_TO(DO, uint64, 'i', uint64_t, x != 0, op)                                               \
    DO(int32, 'i', int32_t, uint64, 'i', uint64_t, x, op)                                          \
    DO(uint32, 'u', uint32_t, uint64, 'i', uint64_t, x, op)
/* Logical operations cast inputs of two dtypes to bools. */
#define SMALL_TO_TRUTH(DO, op)                                                                     \
    DO(int8, 'i', int8_t, truth, 'b', bool, x != 0, op)                                            \
    DO(uint8, 'u', uint8_t, truth, 'b', bool, x != 0, op)                                          \
    DO(int16, 'i', int16_t, truth, 'b', bool, x != 0, op)
#define LARGE_TO_TRUTH(DO, op)                                                                     \
    DO(int32, 'i', int32_t, truth, 'b', bool, x != 0, op)                                          \
    DO(int64, 'i', int64_t, truth, 'b', bool, x != 0, op)                                          \
    DO(float32, 'f', float, truth, 'b', bool, x != 0, op)                                          \
    DO(float64, 'f', double, truth, 'b', bool, x != 0, op)
#define TO_FLOAT16(DO, op)                                                                         \
    DO(truth, 'b', uint8_t, float16, 'f', uint16_t, half_of_byte(truth(x)), op)                    \
    DO(int8, 'i', int8_t, float16, 'f', uint16_t, half_of_byte(x), op)                             \
    DO(uint8, 'u', uint8_t, float16, 'f', uint16_t, half_of_byte(x), op)
#define TO_COMPLEX(DO, op)                                                                         \
    SHORTS_TO(DO, complex64, 'c', float _Complex, truth(x), op)                                    \
    SHORTS_TO(DO, complex128, 'c', double _Complex, truth(x), op)                                  \
    DO(uint32, 'u', uint32_t, complex128, 'c', double _Complex, double_of_uint32(x), op)           \
    DO(uint64, 'u', uint64_t, complex128, 'c', double _Complex, double_of_uint64(x), op)           \
    DO(float32, 'f', float, complex64, 'c', float _Complex, x, op)                                 \
    DO(float32, 'f', float, complex128, 'c', double _Complex, x, op)                               \
    DO(float64, 'f', double, complex128, 'c', double _Complex, x, op)                              \
    DO(int32, 'i', int32_t, complex128, 'c', double _Complex, x, op)                               \
    DO(int64, 'i', int64_t, complex128, 'c', double _Complex, double_of_int64(x), op)              \
    DO(complex64, 'c', float _Complex, complex128, 'c', double _Complex, x, op)
/* Of outputs: NumPy casts to another size of the same kind, unless it is told more. */
#define TO_SMALLER(DO, op)                                                                         \
    DO(float64, 'f', double, float32, 'f', float, x, op)                                           \
    DO(complex128, 'c', double _Complex, complex64, 'c', float _Complex, x, op)                    \
    DO(int64, 'i', int64_t, uint32, 'i', uint32_t, x, op)                                          \
    DO(int64, 'i', int64_t, uint16, 'i', uint16_t, x, op)                                          \
    DO(int64, 'i', int64_t, uint8, 'i', uint8_t, x, op)                                            \
    DO(int32, 'i', int32_t, uint16, 'i', uint16_t, x, op)                                          \
    DO(int32, 'i', int32_t, uint8, 'i', uint8_t, x, op)                                            \
    DO(int16, 'i', int16_t, uint8, 'i', uint8_t, x, op)
#define MOST_CONVERSIONS(DO, op)                                                                   \
    TO_FLOAT64(DO, op)                                                                             \
    TO_FLOAT32(DO, op)                                                                             \
    TO_FLOAT16(DO, op)                                                                             \
    TO_UINT8(DO, op)                                                                               \
    TO_UINT16(DO, op)                                                                              \
    TO_UINT32(DO, op)                                                                              \
    TO_UINT64(DO, op) SMALL_TO_TRUTH(DO, op) TO_COMPLEX(DO, op) TO_SMALLER(DO, op)
#define ALL_CONVERSIONS(DO, op) MOST_CONVERSIONS(DO, op) LARGE_TO_TRUTH(DO, op)

#define DEFINE(source, kind, type, target, to_kind, to_type, value, op)                            \
    INLINE void convert_vectors_##source##_##target(const type *from, to_type *restrict to,        \
                                                    ptrdiff_t n)                                   \
    {                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            const type x = from[i];                                                                \
            to[i] = (to_type)(value);                                                              \
        }                                                                                          \
    }
MOST_CONVERSIONS(DEFINE, )
#if !defined(__x86_64__) || defined(__AVX512BW__)
LARGE_TO_TRUTH(DEFINE, )
#else
/* Masks of four elements, set where these are 0. Compilers narrow masks as if they were any numbers. */
INLINE __m128i zeros_of_int32(const int32_t *from)
{
    return _mm_cmpeq_epi32(_mm_loadu_si128((const void *)from), _mm_setzero_si128());
}
INLINE __m128i zeros_of_int64(const int64_t *from)
{
    const __m128 low = _mm_loadu_ps((const void *)from);
    const __m128 high = _mm_loadu_ps((const void *)(from + 2));
    const __m128i lower_halves = _mm_castps_si128(_mm_shuffle_ps(low, high, 0x88));
    const __m128i upper_halves = _mm_castps_si128(_mm_shuffle_ps(low, high, 0xdd));
    return _mm_cmpeq_epi32(_mm_or_si128(lower_halves, upper_halves), _mm_setzero_si128());
}
INLINE __m128i zeros_of_float32(const float *from)
{
    return _mm_castps_si128(_mm_cmpeq_ps(_mm_loadu_ps(from), _mm_setzero_ps()));
}
INLINE __m128i zeros_of_float64(const double *from)
{
    const __m128d low = _mm_cmpeq_pd(_mm_loadu_pd(from), _mm_setzero_pd());
    const __m128d high = _mm_cmpeq_pd(_mm_loadu_pd(from + 2), _mm_setzero_pd());
    return _mm_castps_si128(_mm_shuffle_ps(_mm_castpd_ps(low), _mm_castpd_ps(high), 0x88));
}
#define DEFINE_BY_MASKS(source, kind, type, target, to_kind, to_type, value, op)                   \
    INLINE void convert_vectors_##source##_##target(const type *from, to_type *restrict to,        \
                                                    ptrdiff_t n)                                   \
    {                                                                                              \
        ptrdiff_t i = 0;                                                                           \
        for (; i + 16 <= n; i += 16) {                                                             \
            const __m128i first =                                                                  \
                _mm_packs_epi32(zeros_of_##source(from + i), zeros_of_##source(from + i + 4));     \
            const __m128i second = _mm_packs_epi32(zeros_of_##source(from + i + 8),                \
                                                   zeros_of_##source(from + i + 12));              \
            const __m128i truths = _mm_add_epi8(_mm_packs_epi16(first, second), _mm_set1_epi8(1)); \
            _mm_storeu_si128((void *)(to + i), truths);                                            \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            const type x = from[i];                                                                \
            to[i] = (to_type)(value);                                                              \
        }                                                                                          \
    }
LARGE_TO_TRUTH(DEFINE_BY_MASKS, )
#undef DEFINE_BY_MASKS
#endif
#undef DEFINE

#define DEFINE(source, kind, type, target, to_kind, to_type, value, op)                            \
    SCALAR static void convert_each_##source##_##target(const char *from, ptrdiff_t step,          \
                                                        to_type *to, ptrdiff_t n)                  \
    {                                                                                              \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            to[i] = (to_type) * (const type *)(from + i * step);                                   \
        }                                                                                          \
    }                                                                                              \
    static void convert_##source##_##target(const char *from, ptrdiff_t step, void *to,            \
                                            ptrdiff_t n)                                           \
    {                                                                                              \
        to_type *next = to;                                                                        \
        if (step == sizeof(type)) {                                                                \
            enum {                                                                                 \
                FITTING = CONVERTED_BLOCK_BYTES / sizeof(type),                                    \
                BLOCK = FITTING < LEAST_CONVERTED_BLOCK ? LEAST_CONVERTED_BLOCK : FITTING,         \
            };                                                                                     \
            const type *items = (const type *)from;                                                \
            const ptrdiff_t rest = n >= BLOCK ? n % BLOCK : 0;                                     \
            convert_vectors_##source##_##target(items, next, n - rest);                            \
            if (rest > 0) {                                                                        \
                convert_vectors_##source##_##target(items + n - BLOCK, next + n - BLOCK, BLOCK);   \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (; converts_quads(sizeof(type), sizeof(to_type), to_kind) && n >= 4; n -= 4) {         \
            const quad32 quad = gather_quad(from, step);                                           \
            type four[4];                                                                          \
            memcpy(four, &quad, sizeof four);                                                      \
            convert_vectors_##source##_##target(four, next, 4);                                    \
            from += 4 * step;                                                                      \
            next += 4;                                                                             \
        }                                                                                          \
        if (sizeof(type) == SCALAR_CONVERSION_SIZE) {                                              \
            convert_each_##source##_##target(from, step, next, n);                                 \
            return;                                                                                \
        }                                                                                          \
        type gathered[GATHERED_ELEMENTS];                                                          \
        for (ptrdiff_t count; n > 0; n -= count, next += count) {                                  \
            count = n < GATHERED_ELEMENTS ? n : GATHERED_ELEMENTS;                                 \
            gather_words(from, step, sizeof(type), count, (char *)gathered);                       \
            from += count * step;                                                                  \
            convert_vectors_##source##_##target(gathered, next, count);                            \
        }                                                                                          \
    }
ALL_CONVERSIONS(DEFINE, )
#undef DEFINE

/* ---- half precision ---- */

/* NumPy converts bits, which keeps signaling NaNs and raises nothing; instructions do neither. */
INLINE bool has_signaling(const uint16_t half[HALF_BLOCK])
{
    unsigned any = 0;
    for (int i = 0; i < HALF_BLOCK; i++) {
        any |= (half[i] & 0x7e00u) == 0x7c00u && (half[i] & 0x1ffu) != 0;
    }
    return any != 0;
}

INLINE double half_to_double(uint16_t half)
{
    if ((half & 0x7c00u) != 0x7c00u) {
        return half_to_float(half);
    }
    const uint64_t bits =
        (uint64_t)(half & 0x8000u) << 48 | 0x7ffULL << 52 | (uint64_t)(half & 0x3ffu) << 42;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The halves of one block: where they lie, or followed by zeros. */
INLINE const uint16_t *block_of(const uint16_t *from, uint16_t padded[HALF_BLOCK], ptrdiff_t n)
{
    if (n == HALF_BLOCK) {
        return from;
    }
    memset(padded, 0, HALF_BLOCK * sizeof padded[0]);
    for (ptrdiff_t i = 0; i < n; i++) {
        padded[i] = from[i];
    }
    return padded;
}

/* `target` and its conversion from half. Strided halves are gathered for many blocks: a vector that is loaded
 * waits for what has just been stored in pieces. */
#define DEFINE(target, to_type, of_half)                                                           \
    static void convert_halves_##target(const uint16_t *from, to_type *next, ptrdiff_t n)          \
    {                                                                                              \
        for (ptrdiff_t count; n > 0; n -= count, next += count, from += count) {                   \
            uint16_t padded[HALF_BLOCK];                                                           \
            float single[HALF_BLOCK];                                                              \
            count = n < HALF_BLOCK ? n : HALF_BLOCK;                                               \
            const uint16_t *half = block_of(from, padded, count);                                  \
            if (has_signaling(half)) {                                                             \
                for (ptrdiff_t i = 0; i < count; i++) {                                            \
                    next[i] = of_half(half[i]);                                                    \
                }                                                                                  \
                continue;                                                                          \
            }                                                                                      \
            halves_to_floats(half, single);                                                        \
            for (ptrdiff_t i = 0; count == HALF_BLOCK && i < HALF_BLOCK; i++) {                    \
                next[i] = single[i];                                                               \
            }                                                                                      \
            for (ptrdiff_t i = 0; count < HALF_BLOCK && i < count; i++) {                          \
                next[i] = single[i];                                                               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void convert_float16_##target(const char *from, ptrdiff_t step, void *to, ptrdiff_t n)  \
    {                                                                                              \
        uint16_t gathered[GATHERED_ELEMENTS];                                                      \
        to_type *next = to;                                                                        \
        if (step == sizeof(uint16_t)) {                                                            \
            convert_halves_##target((const uint16_t *)from, next, n);                              \
            return;                                                                                \
        }                                                                                          \
        for (ptrdiff_t count; n > 0; n -= count, next += count, from += count * step) {            \
            count = n < GATHERED_ELEMENTS ? n : GATHERED_ELEMENTS;                                 \
            gather_words(from, step, sizeof(uint16_t), count, (char *)gathered);                   \
            convert_halves_##target(gathered, next, count);                                        \
        }                                                                                          \
    }
DEFINE(float32, float, half_to_float)
DEFINE(float64, double, half_to_double)
DEFINE(complex64, float _Complex, half_to_float)
DEFINE(complex128, double _Complex, half_to_double)
#undef DEFINE

#pragma GCC pop_options
#define ROW(source, kind, type, target, to_kind, to_type, value, op)                               \
    {kind, sizeof(type), to_kind, sizeof(to_type), convert_##source##_##target},
static const struct element_conversion conversions[] = {
    ALL_CONVERSIONS(ROW, ){'f', 2, 'f', 4, convert_float16_float32},
    {'f', 2, 'f', 8, convert_float16_float64},
    {'f', 2, 'c', 8, convert_float16_complex64},
    {'f', 2, 'c', 16, convert_float16_complex128},
    {0, 0, 0, 0, NULL},
};
#undef ROW

/* ---- what kernels of mixed dtypes convert ---- */

/* Vectors of 16 bytes hold few elements that are put together one by one: pieces took a fraction of the time. */
#if defined(__AVX2__) && defined(__F16C__)
#define HAS_MIXED
#endif

#define MIXED_FLOAT32(DO, op)                                                                      \
    TO_FLOAT32(DO, op) DO(float16, 'f', uint16_t, float32, 'f', float, half_to_float(x), op)
#define MIXED_FLOAT64(DO, op)                                                                      \
    TO_FLOAT64(DO, op) DO(float16, 'f', uint16_t, float64, 'f', double, half_to_float(x), op)

#define EITHER_FIRST(DO, a, a_type, b, b_type, op)                                                 \
    DO(a, a_type, b, b_type, op) DO(b, b_type, a, a_type, op)
#define PAIRS_UINT16(DO, op) EITHER_FIRST(DO, int8, int8_t, uint8, uint8_t, op)
#define PAIRS_UINT32(DO, op) EITHER_FIRST(DO, int16, int16_t, uint16, uint16_t, op)
#define PAIRS_UINT64(DO, op) EITHER_FIRST(DO, int32, int32_t, uint32, uint32_t, op)
#define PAIRS_FLOAT64(DO, op)                                                                      \
    EITHER_FIRST(DO, int32, int32_t, float32, float, op)                                           \
    EITHER_FIRST(DO, int64, int64_t, float32, float, op)                                           \
    EITHER_FIRST(DO, uint32, uint32_t, float32, float, op)
