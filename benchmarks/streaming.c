/* Plain loops for streaming.py: the sum of two arrays with ordinary and with streaming stores. */
#define _GNU_SOURCE
#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { BLOCK = 1 << 19 }; /* elements: 2 MiB of output */

static void add_block(const float *a, const float *b, float *out, ptrdiff_t n, int streaming)
{
    ptrdiff_t i = 0;
    for (; streaming && i + 4 <= n; i += 4) {
        _mm_stream_ps(out + i, _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i)));
    }
    _mm_sfence();
    for (; i + 4 <= n; i += 4) {
        _mm_store_ps(out + i, _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i)));
    }
    for (; i < n; i++) {
        out[i] = a[i] + b[i];
    }
}

/* `out` is aligned to 16 bytes; with `populate` to a page. */
void add(const float *a, const float *b, float *out, ptrdiff_t n, int threads, int streaming,
         int populate)
{
    const ptrdiff_t even = (n / threads + 15) / 16 * 16; /* small arrays: a block for each thread */
    const ptrdiff_t block = even < BLOCK && even > 0 ? even : BLOCK;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (ptrdiff_t first = 0; first < n; first += block) {
        const ptrdiff_t count = n - first < block ? n - first : block;
        if (populate) {
            madvise(out + first, (size_t)count * sizeof(float), 23); /* MADV_POPULATE_WRITE */
        }
        add_block(a + first, b + first, out + first, count, streaming);
    }
}

/* The same into new memory on huge pages, which is returned to the system again. */
int add_new(const float *a, const float *b, ptrdiff_t n, int threads, int streaming, int populate)
{
    const size_t huge = BLOCK * sizeof(float);
    const size_t bytes = (size_t)n * sizeof(float) + huge;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return 1;
    }
    madvise(memory, bytes, MADV_HUGEPAGE);
    char *out = memory + (huge - (uintptr_t)memory % huge) % huge;
    add(a, b, (float *)out, n, threads, streaming, populate);
    munmap(memory, bytes);
    return 0;
}
