/* Eight floats at a time, on several threads, and past the caches. */
#include <immintrin.h>
#include <stdint.h>

#include "adds.h"

enum {
    LANES = 8,
    PART = 1 << 18, /* elements that a thread takes at a time: 1 MiB of each array */
};

/* Unaligned loads and stores: as fast as aligned ones where the address happens to be aligned. */
void add_avx(const float *a, const float *b, float *out, ptrdiff_t n)
{
    ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
        _mm256_storeu_ps(out + i, sum);
    }
    for (; i < n; i++) {
        out[i] = a[i] + b[i];
    }
}

/* Streaming stores need an aligned address: first what lies before one, as ordinary stores. */
static void stream(const float *a, const float *b, float *out, ptrdiff_t n)
{
    ptrdiff_t i = 0;
    for (; i < n && (uintptr_t)(out + i) % sizeof(__m256) != 0; i++) {
        out[i] = a[i] + b[i];
    }
    for (; i + LANES <= n; i += LANES) {
        const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
        _mm256_stream_ps(out + i, sum);
    }
    _mm_sfence(); /* they are not ordered with the stores by which this thread says it is done */
    for (; i < n; i++) {
        out[i] = a[i] + b[i];
    }
}

static ptrdiff_t min(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

void add_threads(const float *a, const float *b, float *out, ptrdiff_t n, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (ptrdiff_t i = 0; i < n; i += PART) {
        add_avx(a + i, b + i, out + i, min(PART, n - i));
    }
}

void add_streaming(const float *a, const float *b, float *out, ptrdiff_t n, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (ptrdiff_t i = 0; i < n; i += PART) {
        stream(a + i, b + i, out + i, min(PART, n - i));
    }
}

static float read_part(const float *a, const float *b, ptrdiff_t n)
{
    __m256 x = _mm256_setzero_ps(), y = x;
    for (ptrdiff_t i = 0; i + LANES <= n; i += LANES) {
        x = _mm256_max_ps(x, _mm256_loadu_ps(a + i));
        y = _mm256_max_ps(y, _mm256_loadu_ps(b + i));
    }
    return _mm256_cvtss_f32(_mm256_max_ps(x, y));
}

float read_inputs(const float *a, const float *b, ptrdiff_t n, int threads)
{
    float largest = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic) reduction(max : largest)
    for (ptrdiff_t i = 0; i < n; i += PART) {
        const float found = read_part(a + i, b + i, min(PART, n - i));
        largest = found > largest ? found : largest;
    }
    return largest;
}
