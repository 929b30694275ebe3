/* What memory can do on this machine: the limit that benchmarks compare with. */
#include "bandwidth.h"
#include "threads/region.h"
#include "threads/shares.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum { REPETITIONS = 7, ALIGNMENT = 64 };

struct arrays {
    char *a, *b, *out; /* b is NULL for a copy */
    size_t bytes;
    struct shares shares; /* of lines */
};

static void copy(const char *a, char *out, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += sizeof(double)) {
        *(double *)(out + i) = *(const double *)(a + i);
        __asm__ volatile("" ::: "memory"); /* stays a loop of ordinary stores, not memcpy */
    }
}

static void streaming_add(const char *a, const char *b, char *out, size_t bytes)
{
#if defined(__x86_64__)
    for (size_t i = 0; i < bytes; i += 16) {
        const __m128 sum =
            _mm_add_ps(_mm_load_ps((const float *)(a + i)), _mm_load_ps((const float *)(b + i)));
        _mm_stream_ps((float *)(out + i), sum);
    }
    _mm_sfence();
#else
    for (size_t i = 0; i < bytes; i += sizeof(float)) {
        *(float *)(out + i) = *(const float *)(a + i) + *(const float *)(b + i);
    }
#endif
}

static void measure_share(void *context, int index)
{
    struct arrays *arrays = context;
    ptrdiff_t line, end;
    while (shares_take(&arrays->shares, index, &line, &end)) {
        const ptrdiff_t first = line * ALIGNMENT;
        const size_t bytes = (size_t)(end - line) * ALIGNMENT;
        if (arrays->b == NULL) {
            copy(arrays->a + first, arrays->out + first, bytes);
        } else {
            streaming_add(arrays->a + first, arrays->b + first, arrays->out + first, bytes);
        }
    }
}

static double seconds_of_best(struct arrays *arrays, int threads)
{
    static const struct policy policy; /* production's */
    double best = 0;
    for (int i = 0; i < REPETITIONS; i++) {
        struct timespec start, end;
        shares_initialize(&arrays->shares, 0, (ptrdiff_t)(arrays->bytes / ALIGNMENT), 1, 1,
                          threads);
        clock_gettime(CLOCK_MONOTONIC, &start);
        region_run(&policy, threads, measure_share, arrays);
        clock_gettime(CLOCK_MONOTONIC, &end);
        const double seconds =
            (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
        best = i == 0 || seconds < best ? seconds : best;
    }
    return best;
}

double bandwidth_measure(enum bandwidth what, size_t bytes, int threads)
{
    bytes = bytes / ALIGNMENT * ALIGNMENT;
    const size_t operands = what == BANDWIDTH_COPY ? 2 : 3;
    char *memory = bytes == 0 ? MAP_FAILED
                              : mmap(NULL, operands * bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return 0;
    }
    madvise(memory, operands * bytes, MADV_HUGEPAGE);
    memset(memory, 0, operands * bytes);
    struct arrays arrays = {
        .a = memory,
        .b = what == BANDWIDTH_COPY ? NULL : memory + bytes,
        .out = memory + (operands - 1) * bytes,
        .bytes = bytes,
    };
    const double seconds = seconds_of_best(&arrays, threads);
    munmap(memory, operands * bytes);
    return (double)(operands * bytes) / seconds;
}
