/* Truth values, bytes that are 0 or not, to bits and back. */
#ifndef NUMC_TRUE_BITS_H
#define NUMC_TRUE_BITS_H

#include "kernels/vector.h"

static inline ptrdiff_t at_most_64(ptrdiff_t count)
{
    return count < 64 ? count : 64;
}

/* 1 or 0 for each of eight bytes: bit 7 is set of those that are not 0. */
INLINE uint64_t truths_of_word(uint64_t bytes)
{
    const uint64_t low = 0x7f7f7f7f7f7f7f7fu;
    return (((bytes & low) + low) | bytes) >> 7 & 0x0101010101010101u;
}

/* The same as one bit each, gathered by multiplication. */
INLINE uint64_t true_bits_of_word(uint64_t bytes)
{
    return truths_of_word(bytes) * 0x0102040810204080u >> 56;
}

INLINE uint64_t eight_true_bits(const char *from)
{
    return true_bits_of_word(load_word(from));
}

/* One bit for each of as many bytes as a vector has. */
#if defined(__AVX2__)
enum { TRUE_BITS = 32 };
INLINE uint64_t vector_true_bits(const char *from)
{
    const __m256i bytes = _mm256_loadu_si256((const void *)from);
    const __m256i zeros = _mm256_cmpeq_epi8(bytes, _mm256_setzero_si256());
    return (uint32_t)~_mm256_movemask_epi8(zeros);
}
#elif defined(__x86_64__)
enum { TRUE_BITS = 16 };
INLINE uint64_t vector_true_bits(const char *from)
{
    const __m128i bytes = _mm_loadu_si128((const void *)from);
    const __m128i zeros = _mm_cmpeq_epi8(bytes, _mm_setzero_si128());
    return (uint16_t)~_mm_movemask_epi8(zeros);
}
#else
enum { TRUE_BITS = 8 };
#define vector_true_bits eight_true_bits
#endif

/* The same for 64 bytes. */
INLINE uint64_t true_bits(const char *from)
{
#if defined(__AVX512BW__)
    const __m512i all = _mm512_loadu_si512(from);
    return _mm512_test_epi8_mask(all, all);
#else
    uint64_t bits = 0;
    for (int i = 0; i < 64; i += TRUE_BITS) {
        bits |= vector_true_bits(from + i) << i;
    }
    return bits;
#endif
}

/* The same of eight bytes that lie apart. */
INLINE uint64_t eight_true_bits_apart(const char *from, ptrdiff_t step)
{
    uint64_t bytes = 0;
    for (int i = 0; i < 8; i++) {
        bytes |= (uint64_t)(uint8_t)from[i * step] << 8 * i;
    }
    return true_bits_of_word(bytes);
}

static inline uint64_t few_true_bits(const char *from, ptrdiff_t step, ptrdiff_t count)
{
    uint64_t bits = 0;
    ptrdiff_t i = 0;
#if defined(__AVX512BW__)
    if (step == 1 && count > 0) {
        const __m512i all = _mm512_maskz_loadu_epi8(~(uint64_t)0 >> (64 - count), from);
        return _mm512_test_epi8_mask(all, all);
    }
#endif
    for (; step == 1 && i + TRUE_BITS <= count; i += TRUE_BITS) {
        bits |= vector_true_bits(from + i) << i;
    }
    if (i > 0) {
        return bits | vector_true_bits(from + count - TRUE_BITS) << (count - TRUE_BITS);
    }
    for (; step == 1 && i + 8 <= count; i += 8) {
        bits |= eight_true_bits(from + i) << i;
    }
    if (i > 0 && i < count) {
        return bits | eight_true_bits(from + count - 8) << (count - 8);
    }
    if (step == 1 && i == 0 && count > 1) {
        return true_bits_of_word(short_word(from, count));
    }
    for (; step != 1 && i + 8 <= count; i += 8) {
        bits |= eight_true_bits_apart(from + i * step, step) << i;
    }
    for (; i < count; i++) {
        bits |= (uint64_t)(from[i * step] != 0) << i;
    }
    return bits;
}

/* A bit for each of 1 to 64 contiguous bytes, in places that depend on their number. */
INLINE uint64_t scattered_true_bits(const char *from, ptrdiff_t count)
{
#if !defined(__AVX512BW__)
    if (count < 8) {
        return truths_of_word(count > 1 ? short_word(from, count) : (uint8_t)*from);
    }
#endif
    return few_true_bits(from, 1, count);
}

/* `count` <= 64 bytes of a contiguous row; may read some of the `before` bytes in front of them. */
static inline uint64_t last_true_bits(const char *from, ptrdiff_t before, ptrdiff_t count)
{
    return before + count < 64 || count == 0 ? few_true_bits(from, 1, count)
                                             : true_bits(from + count - 64) >> (64 - count);
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

static inline void unpack_bits(char *to, ptrdiff_t step, uint64_t bits, ptrdiff_t count)
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

#endif
