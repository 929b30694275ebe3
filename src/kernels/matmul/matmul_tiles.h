/* Which form each dtype is packed in, and what multiplies it, on the instruction set being compiled;
 * docs/decisions/0009-matmul.md has the reasons. Sums of integers are exact modulo 2^32 or 2^64,
 * of which the result keeps the low bits. */

#if defined(__AVX512F__)
enum { TILE_BYTES = 64, TILE_ROWS = 12, TILE_VECTORS = 2, PAIR_ROWS = 10 };
enum { TWO_SUM_ROWS = 6, TWO_SUM_VECTORS = 2 };
#define MULTIPLY_ADD_PAIRS(a, b) (lanes) _mm512_madd_epi16((__m512i)(a), (__m512i)(b))
#elif defined(__AVX2__)
enum { TILE_BYTES = 32, TILE_ROWS = 6, TILE_VECTORS = 2, PAIR_ROWS = 4, QUAD_ROWS = 4 };
#define MULTIPLY_ADD_PAIRS(a, b) (lanes) _mm256_madd_epi16((__m256i)(a), (__m256i)(b))
#elif defined(__x86_64__)
enum { TILE_BYTES = 16, TILE_ROWS = 5, TILE_VECTORS = 2, TWO_SUM_ROWS = 4, TWO_SUM_VECTORS = 1 };
#define MULTIPLY_ADD_PAIRS(a, b) (lanes) _mm_madd_epi16((__m128i)(a), (__m128i)(b))
#else
enum { TILE_BYTES = 16, TILE_ROWS = 8, TILE_VECTORS = 2 };
#endif

#define AS_IT_IS(e, w) (w)[0] = (e)[0]
#define AS_PAIR(e, w) (w)[0] = (e)[0] | (uint32_t)(e)[1] << 16
#define AS_FOUR(e, w)                                                                              \
    (w)[0] = (e)[0] | (uint32_t)(e)[1] << 8 | (uint32_t)(e)[2] << 16 | (uint32_t)(e)[3] << 24
#define ADD_PLAIN(step, sum, a, b) (sum)[0] += (a)[0] * (b)[0]
#define AS_TWO(e, w) (w)[0] = (e)[0], (w)[1] = (e)[1]
#define AS_TWO_SWAPPED(e, w) (w)[0] = (e)[1], (w)[1] = (e)[0]
#define ADD_PRODUCT_OF_SUMS(step, sum, a, b) (sum)[0] += ((a)[0] + (b)[0]) * ((a)[1] + (b)[1])
#define ADD_PAIRS(step, sum, a, b) (sum)[0] += MULTIPLY_ADD_PAIRS((a)[0], (b)[0])
#define ONLY(sum) (sum)[0]
#if defined(__x86_64__) && !defined(__AVX512F__)
/* From 32 to 8 bits at once, GCC goes lane by lane. */
typedef uint16_t narrowed __attribute__((vector_size(TILE_BYTES / 2)));
#define BY_WAY_OF_16_BITS(total) __builtin_convertvector(total, narrowed)
#endif

/* ---- 8 and 16 bits: pairs or fours in 32-bit lanes; whether they count as signed does not matter
 * modulo 2^8, so that the one unsigned factor of vpdpbusd is no obstacle ---- */
#if defined(__AVX512VNNI__)
#define LANE_8_BITS uint32_t
#define GROUP_8_BITS 4
#define ENCODE_8_BITS AS_FOUR
#define STEP_8_BITS(step, sum, a, b)                                                               \
    (sum)[0] = (lanes)_mm512_dpbusd_epi32((__m512i)(sum)[0], (__m512i)(a)[0], (__m512i)(b)[0])
#define STEP_16_BITS(step, sum, a, b)                                                              \
    (sum)[0] = (lanes)_mm512_dpwssd_epi32((__m512i)(sum)[0], (__m512i)(a)[0], (__m512i)(b)[0])
#elif defined(__AVX2__) && !defined(__AVX512F__)
/* |a| <= 128 times b with the sign of a: the sum of two such products just fits 16 bits. */
#define LANE_8_BITS uint32_t
#define GROUP_8_BITS 4
#define ROW_WORDS_8_BITS 2
#define ROWS_8_BITS 5
#define MAGNITUDE(e) ((e) < 128 ? (e) : 256u - (e))
#define ENCODE_ROWS_8_BITS(e, w)                                                                   \
    AS_FOUR(e, w);                                                                                 \
    (w)[1] = MAGNITUDE((e)[0]) | MAGNITUDE((e)[1]) << 8 | MAGNITUDE((e)[2]) << 16 |                \
             MAGNITUDE((e)[3]) << 24
#define ENCODE_8_BITS AS_FOUR
#define STEP_8_BITS(step, sum, a, b)                                                               \
    (sum)[0] = (lanes)_mm256_add_epi16(                                                            \
        (__m256i)(sum)[0],                                                                         \
        _mm256_maddubs_epi16((__m256i)(a)[1], _mm256_sign_epi8((__m256i)(b)[0], (__m256i)(a)[0])))
#define TOTAL_8_BITS(sum) BY_WAY_OF_16_BITS((sum)[0] + ((sum)[0] >> 16))
#define STEP_16_BITS ADD_PAIRS
#elif defined(__x86_64__)
#define LANE_8_BITS uint32_t
#define GROUP_8_BITS 2
#define ENCODE_8_BITS AS_PAIR
#define STEP_8_BITS ADD_PAIRS
#define STEP_16_BITS ADD_PAIRS
#if !defined(__AVX512F__)
#define TOTAL_8_BITS(sum) BY_WAY_OF_16_BITS((sum)[0])
#endif
#else
#define LANE_8_BITS uint8_t
#define GROUP_8_BITS 1
#define ENCODE_8_BITS AS_IT_IS
#define STEP_8_BITS ADD_PLAIN
#define STEP_16_BITS ADD_PLAIN
#endif
#if !defined(ROW_WORDS_8_BITS)
#define ROW_WORDS_8_BITS 1
#define ENCODE_ROWS_8_BITS ENCODE_8_BITS
#define ROWS_8_BITS TILE_ROWS
#endif
#if !defined(TOTAL_8_BITS)
#define TOTAL_8_BITS ONLY
#endif
#if defined(__x86_64__)
#define LANE_16_BITS uint32_t
#define GROUP_16_BITS 2
#define ENCODE_16_BITS AS_PAIR
#else
#define LANE_16_BITS uint16_t
#define GROUP_16_BITS 1
#define ENCODE_16_BITS AS_IT_IS
#endif

/* ---- 32 bits: where pairs of 16 bits are multiplied faster than 32 bits, x = 2^16 h + l with signed
 * l, and x y = l l' + 2^16 (l h' + h l'): three pairs for two k ---- */
#if defined(__AVX512VNNI__) || (defined(__x86_64__) && !defined(__AVX2__))
#define GROUP_32_BITS 2
#define WORDS_32_BITS 3
#define SUMS_32_BITS 2
#define ROWS_32_BITS TWO_SUM_ROWS
#define VECTORS_32_BITS TWO_SUM_VECTORS
#define LOW(x) ((x)&0xffff)
#define HIGH(x) (((x) + 0x8000) & 0xffff0000)
#define ENCODE_ROWS_32_BITS(e, w)                                                                  \
    (w)[0] = LOW((e)[0]) | (e)[1] << 16;                                                           \
    (w)[1] = LOW((e)[0]) | HIGH((e)[0]);                                                           \
    (w)[2] = LOW((e)[1]) | HIGH((e)[1])
#define ENCODE_COLUMNS_32_BITS(e, w)                                                               \
    (w)[0] = LOW((e)[0]) | (e)[1] << 16;                                                           \
    (w)[1] = HIGH((e)[0]) >> 16 | (e)[0] << 16;                                                    \
    (w)[2] = HIGH((e)[1]) >> 16 | (e)[1] << 16
#if defined(__AVX512VNNI__)
#define ADD_PAIR(sum, a, b)                                                                        \
    (sum) = (lanes)_mm512_dpwssd_epi32((__m512i)(sum), (__m512i)(a), (__m512i)(b))
#else
#define ADD_PAIR(sum, a, b) (sum) += MULTIPLY_ADD_PAIRS(a, b)
#endif
#define STEPS_32_BITS 3
#define STEP_32_BITS(step, sum, a, b) ADD_PAIR((sum)[(step) > 0], (a)[0], (b)[0])
#define TOTAL_32_BITS(sum) (sum)[0] + ((sum)[1] << 16)
#elif defined(__AVX2__)
#define PAIRS_32_BITS 1
#define GROUP_32_BITS 2
#define WORDS_32_BITS 2
#define STEPS_32_BITS 1
#define SUMS_32_BITS 1
#define ROWS_32_BITS PAIR_ROWS
#define VECTORS_32_BITS TILE_VECTORS
#define ENCODE_ROWS_32_BITS AS_TWO
#define ENCODE_COLUMNS_32_BITS AS_TWO_SWAPPED
#define STEP_32_BITS ADD_PRODUCT_OF_SUMS
#define TOTAL_32_BITS ONLY
#else
#define GROUP_32_BITS 1
#define WORDS_32_BITS 1
#define STEPS_32_BITS 1
#define SUMS_32_BITS 1
#define ROWS_32_BITS TILE_ROWS
#define VECTORS_32_BITS TILE_VECTORS
#define ENCODE_ROWS_32_BITS AS_IT_IS
#define ENCODE_COLUMNS_32_BITS AS_IT_IS
#define STEP_32_BITS ADD_PLAIN
#define TOTAL_32_BITS ONLY
#endif
#if !defined(PAIRS_32_BITS)
#define PAIRS_32_BITS 0
#endif

/* ---- 64 bits: without a multiplication of their own, l l' in full plus 2^32 (l h' + h l') ---- */
#if defined(__AVX2__)
#define PAIRS_64_BITS 1
#define GROUP_64_BITS 2
#define WORDS_64_BITS 2
#define ENCODE_ROWS_64_BITS AS_TWO
#define ENCODE_COLUMNS_64_BITS AS_TWO_SWAPPED
#define ROWS_64_BITS PAIR_ROWS
#if defined(__AVX512DQ__)
#define SUMS_64_BITS 1
#define VECTORS_64_BITS TILE_VECTORS
#define STEP_64_BITS ADD_PRODUCT_OF_SUMS
#define TOTAL_64_BITS ONLY
#else
/* Both products of the cross term at once, in the two halves of each lane. */
#define SUMS_64_BITS 2
#define VECTORS_64_BITS 1
#define STEP_64_BITS(step, sum, a, b)                                                              \
    const __m256i x = (__m256i)((a)[0] + (b)[0]), y = (__m256i)((a)[1] + (b)[1]);                  \
    (sum)[0] += (lanes)_mm256_mul_epu32(x, y);                                                     \
    (sum)[1] = (lanes)_mm256_add_epi32((__m256i)(sum)[1],                                          \
                                       _mm256_mullo_epi32(x, _mm256_shuffle_epi32(y, 0xb1)))
#define TOTAL_64_BITS(sum) (sum)[0] + (((sum)[1] + ((sum)[1] >> 32)) << 32)
#endif
#elif defined(__x86_64__)
#define PAIRS_64_BITS 0
#define GROUP_64_BITS 1
#define WORDS_64_BITS 2
#define ENCODE_ROWS_64_BITS(e, w) (w)[0] = (e)[0], (w)[1] = (e)[0] >> 32
#define ENCODE_COLUMNS_64_BITS ENCODE_ROWS_64_BITS
#define SUMS_64_BITS 2
#define ROWS_64_BITS TWO_SUM_ROWS
#define VECTORS_64_BITS TWO_SUM_VECTORS
#define STEP_64_BITS(step, sum, a, b)                                                              \
    (sum)[0] += (lanes)_mm_mul_epu32((__m128i)(a)[0], (__m128i)(b)[0]);                            \
    (sum)[1] += (lanes)_mm_mul_epu32((__m128i)(a)[0], (__m128i)(b)[1]);                            \
    (sum)[1] += (lanes)_mm_mul_epu32((__m128i)(a)[1], (__m128i)(b)[0])
#define TOTAL_64_BITS(sum) (sum)[0] + ((sum)[1] << 32)
#else
#define PAIRS_64_BITS 0
#define GROUP_64_BITS 1
#define WORDS_64_BITS 1
#define ENCODE_ROWS_64_BITS AS_IT_IS
#define ENCODE_COLUMNS_64_BITS AS_IT_IS
#define SUMS_64_BITS 1
#define ROWS_64_BITS TILE_ROWS
#define VECTORS_64_BITS TILE_VECTORS
#define STEP_64_BITS ADD_PLAIN
#define TOTAL_64_BITS ONLY
#endif

/* ---- floats: fused where the instruction set can ---- */
#if defined(__AVX512F__)
#define STEP_FLOAT(step, sum, a, b)                                                                \
    (sum)[0] = (lanes)_mm512_fmadd_ps((__m512)(a)[0], (__m512)(b)[0], (__m512)(sum)[0])
#elif defined(__FMA__)
#define STEP_FLOAT(step, sum, a, b)                                                                \
    (sum)[0] = (lanes)_mm256_fmadd_ps((__m256)(a)[0], (__m256)(b)[0], (__m256)(sum)[0])
#elif defined(__aarch64__)
#define STEP_FLOAT(step, sum, a, b)                                                                \
    (sum)[0] = (lanes)vfmaq_f32((float32x4_t)(sum)[0], (float32x4_t)(a)[0], (float32x4_t)(b)[0])
#else
#define STEP_FLOAT ADD_PLAIN
#endif
#if defined(__FMA__) || defined(__aarch64__)
#define ADD_PRODUCT_FLOAT(c, a, b) __builtin_fmaf(a, b, c)
#define ADD_PRODUCT_DOUBLE(c, a, b) __builtin_fma(a, b, c)
#else
#define ADD_PRODUCT_FLOAT(c, a, b) (c) + (a) * (b)
#define ADD_PRODUCT_DOUBLE(c, a, b) (c) + (a) * (b)
#endif
/* The longest vectors of small products. */
#if defined(__AVX512F__)
#define WIDEST_FLOAT 64
#else
#define WIDEST_FLOAT VECTOR_BYTES
#endif
#if defined(__FMA__)
#define DEFINE_FUSED(name, type, bytes, intrinsic, raw)                                            \
    typedef type name##_vector __attribute__((vector_size(bytes)));                                \
    INLINE name##_vector name(name##_vector c, name##_vector a, name##_vector b)                   \
    {                                                                                              \
        return (name##_vector)intrinsic((raw)a, (raw)b, (raw)c);                                   \
    }
DEFINE_FUSED(fused_floats_16, float, 16, _mm_fmadd_ps, __m128)
DEFINE_FUSED(fused_floats_32, float, 32, _mm256_fmadd_ps, __m256)
DEFINE_FUSED(fused_doubles_16, double, 16, _mm_fmadd_pd, __m128d)
DEFINE_FUSED(fused_doubles_32, double, 32, _mm256_fmadd_pd, __m256d)
#if defined(__AVX512F__)
DEFINE_FUSED(fused_floats_64, float, 64, _mm512_fmadd_ps, __m512)
DEFINE_FUSED(fused_doubles_64, double, 64, _mm512_fmadd_pd, __m512d)
#define OR_OF_64_BYTES(name) , name##_64_vector : name##_64
#else
#define OR_OF_64_BYTES(name)
#endif
#undef DEFINE_FUSED
#define ADD_PRODUCTS_OF(name, c, a, b)                                                             \
    _Generic((c), name##_16_vector                                                                 \
             : name##_16, name##_32_vector                                                         \
             : name##_32 OR_OF_64_BYTES(name))(c, a, b)
#define ADD_PRODUCTS_FLOAT(c, a, b) ADD_PRODUCTS_OF(fused_floats, c, a, b)
#define ADD_PRODUCTS_DOUBLE(c, a, b) ADD_PRODUCTS_OF(fused_doubles, c, a, b)
#elif defined(__aarch64__)
#define ADD_PRODUCTS_FLOAT(c, a, b)                                                                \
    (few) vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b))
#define ADD_PRODUCTS_DOUBLE(c, a, b)                                                               \
    (few) vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b))
#else
#define ADD_PRODUCTS_FLOAT(c, a, b) (c) + (a) * (b)
#define ADD_PRODUCTS_DOUBLE(c, a, b) (c) + (a) * (b)
#endif
