/* The products of the fake device: plain loops, sums as wide as they can be, no flags raised. */
#include "fake_device.h"

#include <fenv.h>
#include <string.h>

static float float_of_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    const uint32_t exponent = half >> 10 & 31, mantissa = half & 0x3FF;
    if (exponent == 0) {
        const float magnitude = (float)mantissa * 0x1p-24F;
        return sign != 0 ? -magnitude : magnitude;
    }
    const uint32_t bits =
        sign | (exponent == 31 ? 0x7F800000 : (exponent + 112) << 23) | mantissa << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t half_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7FFFFFFF;
    if (bits >= 0x477FF000) { /* 65520 and more */
        return (uint16_t)(sign | 0x7C00 | (bits > 0x7F800000 ? 0x200 : 0));
    }
    if (bits < 0x38800000) { /* subnormal: the sum's last bit is 2^-24 */
        memcpy(&value, &bits, sizeof value);
        value += 0.5F;
        memcpy(&bits, &value, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3F000000));
    }
    bits += 0xFFF + (bits >> 13 & 1);
    return (uint16_t)(sign | (bits - 0x38000000) >> 13);
}

static uint64_t load_integer(const char *at, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, at, size); /* little-endian, as all that has such a device */
    return value;
}

static long double load_real(const char *at, size_t size)
{
    if (size == 2) {
        return float_of_half((uint16_t)load_integer(at, 2));
    }
    float single;
    double wide;
    memcpy(&single, at, sizeof single);
    if (size == 4) {
        return single;
    }
    memcpy(&wide, at, sizeof wide);
    return wide;
}

static void store_real(char *to, size_t size, long double value)
{
    const float single = (float)value;
    const double wide = (double)value;
    if (size == 2) {
        const uint16_t half = half_of_float(single);
        memcpy(to, &half, sizeof half);
    } else if (size == 4) {
        memcpy(to, &single, sizeof single);
    } else {
        memcpy(to, &wide, sizeof wide);
    }
}

/* One element: n products of what lies a_step and b_step bytes apart. */
static void dot(struct element_type type, const char *a, ptrdiff_t a_step, const char *b,
                ptrdiff_t b_step, ptrdiff_t n, bool adds, char *to)
{
    const size_t size = type.size, part = size / 2;
    uint64_t integer = 0;
    long double real = 0, imaginary = 0;
    if (adds) {
        real = load_real(to, type.kind == ELEMENT_FLOAT ? size : part);
        imaginary = type.kind == ELEMENT_FLOAT ? 0 : load_real(to + part, part);
    }
    for (ptrdiff_t i = 0; i < n; i++, a += a_step, b += b_step) {
        if (type.kind == ELEMENT_BOOL) {
            integer |= *a != 0 && *b != 0;
        } else if (type.kind == ELEMENT_INTEGER) {
            integer += load_integer(a, size) * load_integer(b, size);
        } else if (type.kind == ELEMENT_FLOAT) {
            real += load_real(a, size) * load_real(b, size);
        } else {
            const long double ar = load_real(a, part), ai = load_real(a + part, part);
            const long double br = load_real(b, part), bi = load_real(b + part, part);
            real += ar * br - ai * bi;
            imaginary += ar * bi + ai * br;
        }
    }
    if (type.kind <= ELEMENT_INTEGER) {
        memcpy(to, &integer, size);
    } else if (type.kind == ELEMENT_FLOAT) {
        store_real(to, size, real);
    } else {
        store_real(to, part, real);
        store_real(to + part, part, imaginary);
    }
}

static bool is_zero(const char *data, ptrdiff_t bytes)
{
    return bytes == 0 || (data[0] == 0 && memcmp(data, data + 1, (size_t)bytes - 1) == 0);
}

void fake_multiply(const struct gemm *gemm, const char *a, const char *b, char *c)
{
    const ptrdiff_t size = (ptrdiff_t)gemm->type.size;
    const ptrdiff_t m = gemm->m, n = gemm->n, k = gemm->k;
    const ptrdiff_t a_row = gemm->a.transposed ? 1 : gemm_a_row(gemm),
                    a_column = gemm->a.transposed ? m : 1;
    const ptrdiff_t b_row = gemm->b.transposed ? 1 : n, b_column = gemm->b.transposed ? k : 1;
    if (gemm->batch == 1 && gemm->a_row == 0 && !gemm->adds && is_zero(a, m * k * size) &&
        is_zero(b, k * n * size)) {
        memset(c, 0, (size_t)(m * n * size)); /* rates are measured with large matrices of zeros */
        return;
    }
    fenv_t environment;
    feholdexcept(&environment);
    for (ptrdiff_t i = 0; i < gemm->batch; i++) {
        for (ptrdiff_t row = 0; row < m; row++) {
            for (ptrdiff_t column = 0; column < n; column++) {
                /* Below the diagonal in the other order: no product is symmetric by itself. */
                const bool turns = row > column;
                const ptrdiff_t first = turns ? k - 1 : 0, step = turns ? -size : size;
                dot(gemm->type,
                    a + size * (i * gemm->a.batch_step + row * a_row + first * a_column),
                    step * a_column,
                    b + size * (i * gemm->b.batch_step + column * b_column + first * b_row),
                    step * b_row, k, gemm->adds, c + size * ((i * m + row) * n + column));
            }
        }
    }
    fesetenv(&environment);
}

bool fake_is_finite(const struct gemm *gemm, const char *c)
{
    const size_t parts = gemm->type.kind == ELEMENT_COMPLEX ? 2 : 1;
    const size_t size = gemm->type.size / parts;
    const size_t count = (size_t)(gemm->batch * gemm->m * gemm->n) * parts;
    bool is_finite = true;
    for (size_t i = 0; i < count; i++) {
        const long double value = load_real(c + i * size, size);
        is_finite = is_finite && value - value == 0;
    }
    return is_finite;
}

void fake_mirror(const struct gemm *gemm, char *c)
{
    const ptrdiff_t n = gemm->n, size = (ptrdiff_t)gemm->type.size;
    for (ptrdiff_t i = 0; i < gemm->batch; i++, c += n * n * size) {
        for (ptrdiff_t row = 0; row < n; row++) {
            for (ptrdiff_t column = 0; column < row; column++) {
                memcpy(c + (row * n + column) * size, c + (column * n + row) * size,
                       gemm->type.size);
            }
        }
    }
}
