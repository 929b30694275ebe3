#include "complex_rounding.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { SAMPLES = 16 };

#define MODELS(real, name, fma_of)                                                                 \
    static void name##_product(bool fuses, const real a[2], const real b[2], real to[2])           \
    {                                                                                              \
        const real imaginaries = a[1] * b[1], crossed = a[1] * b[0];                               \
        to[0] = fuses ? fma_of(a[0], b[0], -imaginaries) : a[0] * b[0] - imaginaries;              \
        to[1] = fuses ? fma_of(a[0], b[1], crossed) : a[0] * b[1] + crossed;                       \
    }                                                                                              \
                                                                                                   \
    /* Of positive parts. */                                                                       \
    static void name##_quotient(const real a[2], const real b[2], real to[2])                      \
    {                                                                                              \
        const bool by_real = b[0] >= b[1];                                                         \
        const real large = by_real ? b[0] : b[1], small = by_real ? b[1] : b[0];                   \
        const real ratio = small / large, scale = 1 / (large + small * ratio);                     \
        to[0] = by_real ? (a[0] + a[1] * ratio) * scale : (a[0] * ratio + a[1]) * scale;           \
        to[1] = by_real ? (a[1] - a[0] * ratio) * scale : (a[1] * ratio - a[0]) * scale;           \
    }                                                                                              \
                                                                                                   \
    static enum complex_rounding name##_rounding(const struct elementwise *loop, bool divides)     \
    {                                                                                              \
        real a[SAMPLES][2] = {{0}}, b[SAMPLES][2] = {{0}}, result[SAMPLES][2];                     \
        uint32_t random = 1;                                                                       \
        for (int i = 0; i < 4 * SAMPLES; i++) {                                                    \
            random = random * 1664525u + 1013904223u;                                              \
            (i % 2 == 0 ? a : b)[i / 4][i / 2 % 2] = 1 / (1 + (real)(random >> 8));                \
        }                                                                                          \
        char *data[] = {(char *)a, (char *)b, (char *)result};                                     \
        const ptrdiff_t n = SAMPLES, step[] = {sizeof *a, sizeof *a, sizeof *a};                   \
        loop->function(data, &n, step, loop->function_data);                                       \
        bool each = true, fused = !divides;                                                        \
        for (int i = 0; i < SAMPLES; i++) {                                                        \
            real plain[2], once[2];                                                                \
            name##_product(true, a[i], b[i], once);                                                \
            if (divides) {                                                                         \
                name##_quotient(a[i], b[i], plain);                                                \
            } else {                                                                               \
                name##_product(false, a[i], b[i], plain);                                          \
            }                                                                                      \
            each = each && memcmp(plain, result[i], sizeof plain) == 0;                            \
            fused = fused && memcmp(once, result[i], sizeof once) == 0;                            \
        }                                                                                          \
        return each ? ROUNDING_EACH : fused ? ROUNDING_FUSED : ROUNDING_UNKNOWN;                   \
    }

MODELS(float, float, fmaf)
MODELS(double, double, fma)

enum complex_rounding complex_rounding(const struct elementwise *loop, bool divides)
{
    return loop->item_size[0] == 2 * sizeof(float) ? float_rounding(loop, divides)
                                                   : double_rounding(loop, divides);
}
