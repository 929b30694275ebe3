/* The vector width of the instruction set being compiled, and its cache-bypassing store. */
#ifndef NUMC_VECTOR_H
#define NUMC_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    LINE_BYTES = 64,
    /* From this size on it pays to align the output, so that each iteration writes one whole
     * cache line: stores that alternate between two lines cost Intel up to 1.6 times. */
    ALIGNED_FROM_BYTES = 1024,
};

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))
#if defined(__clang__)
#define SCALAR __attribute__((noinline))
#else
#define SCALAR __attribute__((noinline, optimize("no-tree-vectorize", "no-tree-slp-vectorize")))
#endif
#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define STRING_(text) #text
#define STRING(text) STRING_(text)

/* 1 or 0: compilers make a branch of a comparison, which is mispredicted as often as not. */
INLINE int truth(uint8_t x)
{
    return (int)((0U - x) >> 31);
}

INLINE uint64_t load_word(const char *from)
{
    uint64_t bytes;
    memcpy(&bytes, from, sizeof bytes);
    return bytes;
}

/* Two to seven bytes. */
INLINE uint64_t short_word(const char *from, ptrdiff_t count)
{
    if (count < 4) {
        uint16_t first, last;
        memcpy(&first, from, sizeof first);
        memcpy(&last, from + count - 2, sizeof last);
        return first | (uint64_t)last << 8 * (count - 2);
    }
    uint32_t first, last;
    memcpy(&first, from, sizeof first);
    memcpy(&last, from + count - 4, sizeof last);
    return first | (uint64_t)last << 8 * (count - 4);
}

/* `half` to twice as many bytes: the first and the last `half` of them. */
INLINE void copy_ends(size_t half, size_t bytes, const char *from, char *to)
{
    memcpy(to, from, half);
    memcpy(to + bytes - half, from + bytes - half, half);
}

/* 32 bytes for AVX-512 machines too: at 64, Cascade Lake lowers its clock, and NumPy's arrays, which
 * are aligned to 16, make every access cross a cache line. */
#if defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#if defined(__x86_64__)
#define CAN_STREAM 1
/* Writes 16 or 32 bytes to where they are aligned. */
INLINE void stream_vector(char *out, const void *vector, size_t bytes)
{
#if defined(__AVX2__)
    if (bytes == 32) {
        _mm256_stream_si256((void *)out, _mm256_loadu_si256(vector));
        return;
    }
#endif
    (void)bytes;
    _mm_stream_si128((void *)out, _mm_loadu_si128(vector));
}
/* Streamed stores are weakly ordered: without the fence another thread could see them late. */
INLINE void stream_fence(void)
{
    _mm_sfence();
}
#else
/* C cannot ask for stnp, and aarch64 cores detect full-line writes by themselves. */
#define CAN_STREAM 0
INLINE void stream_vector(char *out, const void *vector, size_t bytes)
{
    memcpy(out, vector, bytes);
}
INLINE void stream_fence(void)
{
}
#endif

#endif
