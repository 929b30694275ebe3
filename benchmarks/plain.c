/* Plain loops for plain.py: what the compiler makes of a call that NumPy would convert, and of reading. */
#include <stddef.h>
#include <stdint.h>

/* Halves are read as integers: as many bytes, and no instruction that processors lack. */
typedef uint16_t float16;
typedef uint8_t boolean;

#define IN_PARALLEL _Pragma("omp parallel for simd num_threads(threads) schedule(static)")
#define DEFINE_ADD(name, A, B, OUT)                                                                \
    void add_##name(const A *a, const B *b, OUT *out, ptrdiff_t n, int threads)                    \
    {                                                                                              \
        IN_PARALLEL                                                                                \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            out[i] = (OUT)((OUT)a[i] + (OUT)b[i]);                                                 \
        }                                                                                          \
    }

DEFINE_ADD(ff, float, float, float)
DEFINE_ADD(dd, double, double, double)
DEFINE_ADD(fd, float, double, double)
DEFINE_ADD(id, int32_t, double, double)
DEFINE_ADD(ld, int64_t, double, double)
DEFINE_ADD(il, int32_t, int64_t, int64_t)
DEFINE_ADD(fi, float, int32_t, double)
DEFINE_ADD(bi, int8_t, int32_t, int32_t)
DEFINE_ADD(ef, float16, float, float)
DEFINE_ADD(bd, boolean, double, double)

uint64_t read_words(const uint64_t *a, ptrdiff_t n, int threads)
{
    uint64_t all = 0;
#pragma omp parallel for simd num_threads(threads) schedule(static) reduction(| : all)
    for (ptrdiff_t i = 0; i < n; i++) {
        all |= a[i];
    }
    return all;
}
