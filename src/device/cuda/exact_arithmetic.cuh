// Arithmetic with NumPy's bits and exceptions. An operation is computed as it is, and its result
// tells whether anything has to be mended or noted: that is rare, and kept out of line.
#pragma once

#include "device/device.h"

#include <cuda_fp16.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define EXACT __host__ __device__

namespace
{

// The NaN of operations without one, which of two NaNs is kept, and when a result is too small: those
// of the processor, not of the GPU.
#if defined(__aarch64__)
constexpr uint64_t NAN_SIGN = 0;
constexpr bool SIGNALING_FIRST = true, TINY_BEFORE_ROUNDING = true;
#else
constexpr uint64_t NAN_SIGN = 1;
constexpr bool SIGNALING_FIRST = false, TINY_BEFORE_ROUNDING = false;
#endif

template <typename T> struct Format;

// SCALE lifts tiny results and their rounding errors into the range of normal numbers. From
// LEAST_EXACT on the error of a product is a number of that format. A sum of a product and a number
// beyond FAR that is rounded to 0 is 0.
template <> struct Format<float> {
    using Bits = uint32_t;
    static constexpr Bits QUIET = 0x00400000, DEFAULT_NAN = (Bits)NAN_SIGN << 31 | 0x7fc00000;
    static constexpr float MOST = FLT_MAX, LEAST_NORMAL = FLT_MIN, SCALE = 0x1p100F,
                           LEAST_EXACT = 0x1p-102F, FAR = FLT_MIN * 0x1p60F;
};
template <> struct Format<double> {
    using Bits = uint64_t;
    static constexpr Bits QUIET = (Bits)1 << 51, DEFAULT_NAN = NAN_SIGN << 63 | (Bits)0x7ff8 << 48;
    static constexpr double MOST = DBL_MAX, LEAST_NORMAL = DBL_MIN, SCALE = 0x1p200,
                            LEAST_EXACT = 0x1p-968, FAR = DBL_MIN * 0x1p120;
};

template <typename T> struct Result {
    T value;
    unsigned raised;
};

template <typename T> EXACT typename Format<T>::Bits bits_of(T x)
{
    typename Format<T>::Bits bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

template <typename T> EXACT T of_bits(typename Format<T>::Bits bits)
{
    T x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

template <typename T> EXACT bool is_nan(T x)
{
    return x != x;
}

template <typename T> EXACT bool is_signaling(T x)
{
    return is_nan(x) && (bits_of(x) & Format<T>::QUIET) == 0;
}

template <typename T> EXACT bool is_finite(T x)
{
    return fabs(x) <= Format<T>::MOST;
}

// Perhaps: rounding may have made it the least normal number.
template <typename T> EXACT bool is_tiny(T x)
{
    return fabs(x) <= Format<T>::LEAST_NORMAL;
}

template <typename T> EXACT T noted(Result<T> result, unsigned &raised)
{
    raised |= result.raised;
    return result.value;
}

// ---- what is rare ----

template <typename T> EXACT T first_nan(T x, T y)
{
    const bool first =
        SIGNALING_FIRST && is_signaling(x) != is_signaling(y) ? is_signaling(x) : is_nan(x);
    return of_bits<T>(bits_of(first ? x : y) | Format<T>::QUIET);
}

template <typename T> EXACT Result<T> nan_result(T x, T y)
{
    if (is_nan(x) || is_nan(y)) {
        return {first_nan(x, y), is_signaling(x) || is_signaling(y) ? RAISED_INVALID : 0U};
    }
    return {of_bits<T>(Format<T>::DEFAULT_NAN), RAISED_INVALID};
}

// Whether a result raises underflow: `scaled` is what it were with SCALE times as large operands,
// `error` how much more than that it really is, as far as the sign goes.
template <typename T> EXACT bool underflows(T result, T scaled, T error)
{
    constexpr T LEAST = Format<T>::LEAST_NORMAL * Format<T>::SCALE;
    const bool is_less = fabs(scaled) < LEAST || (TINY_BEFORE_ROUNDING && fabs(scaled) == LEAST &&
                                                  (scaled > 0 ? error < 0 : error > 0));
    return is_less && (error != 0 || result * Format<T>::SCALE != scaled);
}

template <typename T> EXACT __noinline__ Result<T> rare_sum(T x, T y, T result)
{
    if (is_nan(result)) {
        return nan_result(x, y);
    }
    return {result, is_finite(x) && is_finite(y) ? RAISED_OVERFLOW : 0U};
}

template <typename T> EXACT bool product_underflows(T x, T y, T result)
{
    if (result == 0) {
        return true;
    }
    const T small = (fabs(x) < fabs(y) ? x : y) * Format<T>::SCALE;
    const T large = fabs(x) < fabs(y) ? y : x;
    const T scaled = small * large;
    return underflows(result, scaled, fma(small, large, -scaled));
}

template <typename T> EXACT __noinline__ Result<T> rare_product(T x, T y, T result)
{
    if (is_nan(result)) {
        return nan_result(x, y);
    }
    if (!is_finite(result)) {
        return {result, is_finite(x) && is_finite(y) ? RAISED_OVERFLOW : 0U};
    }
    return {result, product_underflows(x, y, result) ? RAISED_UNDERFLOW : 0U};
}

template <typename T> EXACT bool quotient_underflows(T x, T y, T result)
{
    if (!is_finite(y)) {
        return false;
    }
    if (result == 0) {
        return true;
    }
    const T scaled = x * Format<T>::SCALE / y;
    const T error = fma(-scaled, y, x * Format<T>::SCALE);
    return underflows(result, scaled, y < 0 ? -error : error);
}

template <typename T> EXACT __noinline__ Result<T> rare_quotient(T x, T y, T result)
{
    if (is_nan(result)) {
        return nan_result(x, y);
    }
    if (!is_finite(result)) {
        return {result, !is_finite(x) ? 0U : y == 0 ? RAISED_DIVIDE_BY_ZERO : RAISED_OVERFLOW};
    }
    return {result, quotient_underflows(x, y, result) ? RAISED_UNDERFLOW : 0U};
}

// The sum of x and y, and its rounding error.
template <typename T> EXACT T sum_exactly(T x, T y, T &error)
{
    const T sum = x + y, of_y = sum - x;
    error = (x - (sum - of_y)) + (y - of_y);
    return sum;
}

// What x * y + z is beyond `rounded`; 0 only if it is that.
template <typename T> EXACT T fused_error(T x, T y, T z, T rounded)
{
    T low[4];
    const T product = x * y;
    const T sum = sum_exactly(product, z, low[0]);
    const T rest = sum_exactly(sum, fma(x, y, -product), low[1]) - rounded;
    const T left = sum_exactly(sum_exactly(rest, low[1], low[2]), low[0], low[3]);
    return left + (low[2] + low[3]);
}

template <typename T> EXACT bool fused_underflows(T x, T y, T z, T result)
{
    if (fabs(z) > Format<T>::FAR) {
        return false;
    }
    const T small = (fabs(x) < fabs(y) ? x : y) * Format<T>::SCALE;
    const T large = fabs(x) < fabs(y) ? y : x;
    if (fabs(small * large) < Format<T>::LEAST_EXACT) {
        return fabs(z) < Format<T>::LEAST_NORMAL; /* and more than nothing is added to it */
    }
    const T scaled_z = z * Format<T>::SCALE;
    const T scaled = fma(small, large, scaled_z);
    return underflows(result, scaled, fused_error(small, large, scaled_z, scaled));
}

template <typename T> EXACT __noinline__ Result<T> rare_fused(T x, T y, T z, T result)
{
    if (is_nan(x) || is_nan(y) || is_nan(z)) {
        const T nan = is_nan(x) || is_nan(y) ? first_nan(x, y) : z;
        const bool signals = is_signaling(x) || is_signaling(y) || is_signaling(z);
        return {of_bits<T>(bits_of(nan) | Format<T>::QUIET), signals ? RAISED_INVALID : 0U};
    }
    if (is_nan(result)) {
        return {of_bits<T>(Format<T>::DEFAULT_NAN), RAISED_INVALID};
    }
    if (!is_finite(result)) {
        const bool are_finite = is_finite(x) && is_finite(y) && is_finite(z);
        return {result, are_finite ? RAISED_OVERFLOW : 0U};
    }
    return {result, fused_underflows(x, y, z, result) ? RAISED_UNDERFLOW : 0U};
}

// ---- reals ----

template <typename T> EXACT T add(T x, T y, unsigned &raised)
{
    const T result = x + y;
    return is_finite(result) ? result : noted(rare_sum(x, y, result), raised);
}

template <typename T> EXACT T subtract(T x, T y, unsigned &raised)
{
    const T result = x - y;
    return is_finite(result) ? result : noted(rare_sum(x, y, result), raised);
}

template <typename T> EXACT T multiply(T x, T y, unsigned &raised)
{
    const T result = x * y;
    const bool is_usual = is_finite(result) && !(is_tiny(result) && x != 0 && y != 0);
    return is_usual ? result : noted(rare_product(x, y, result), raised);
}

template <typename T> EXACT T divide(T x, T y, unsigned &raised)
{
    const T result = x / y;
    const bool is_usual = is_finite(result) && !(is_tiny(result) && x != 0);
    return is_usual ? result : noted(rare_quotient(x, y, result), raised);
}

// x * y + z, rounded once.
template <typename T> EXACT T multiply_add(T x, T y, T z, unsigned &raised)
{
    const T result = fma(x, y, z);
    const bool is_usual = is_finite(result) && !(is_tiny(result) && x != 0 && y != 0);
    return is_usual ? result : noted(rare_fused(x, y, z, result), raised);
}

template <int OP, typename T> EXACT T compute_real(T x, T y, unsigned &raised)
{
    if constexpr (OP == ELEMENTWISE_ADD) {
        return add(x, y, raised);
    } else if constexpr (OP == ELEMENTWISE_SUBTRACT) {
        return subtract(x, y, raised);
    } else if constexpr (OP == ELEMENTWISE_MULTIPLY) {
        return multiply(x, y, raised);
    } else {
        return divide(x, y, raised);
    }
}

// ---- halves: computed in float; a result below the normal numbers is judged before it is rounded ----

// Not by the GPU's instruction, which keeps nothing of NaNs.
EXACT inline float float_of_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000U) << 16, magnitude = half & 0x7fffU;
    if (magnitude >= 0x7c00U) {
        return of_bits<float>(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13);
    }
    const float size = (float)(magnitude & 0x3ffU) * 0x1p-24F;
    return of_bits<float>(sign |
                          (magnitude < 0x400U ? bits_of(size) : (magnitude << 13) + (112U << 23)));
}

EXACT inline uint16_t half_of_float(float value, unsigned &raised)
{
    const uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000U;
    const uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) {
        const uint32_t payload = magnitude >> 13 & 0x3ffU;
        return (uint16_t)(sign | 0x7c00U | (payload != 0 ? payload : 1));
    }
    if (magnitude >= 0x477ff000U) { /* 65520 */
        raised |= magnitude < 0x7f800000U ? RAISED_OVERFLOW : 0;
        return (uint16_t)(sign | 0x7c00U);
    }
    if (magnitude >= 0x38800000U) { /* 2^-14 */
        return (uint16_t)(sign | (magnitude - (112U << 23) + 0xfffU + (magnitude >> 13 & 1)) >> 13);
    }
    /* Multiples of 2^-24: added to 0.5, they are its last bits. */
    const float half = of_bits<float>(magnitude) + 0.5F;
    raised |= half - 0.5F != of_bits<float>(magnitude) ? RAISED_UNDERFLOW : 0;
    return (uint16_t)(sign | (bits_of(half) - 0x3f000000U));
}

template <int OP> EXACT __noinline__ Result<uint16_t> rare_half(uint16_t x, uint16_t y)
{
    unsigned raised = 0;
    const float result = compute_real<OP>(float_of_half(x), float_of_half(y), raised);
    const uint16_t rounded = half_of_float(result, raised);
    return {rounded, raised};
}

template <int OP> EXACT uint16_t compute_half(uint16_t x, uint16_t y, unsigned &raised)
{
    unsigned unused = 0;
    __half_raw of_x, of_y;
    of_x.x = x;
    of_y.x = y;
    const float result = compute_real<OP>(__half2float(of_x), __half2float(of_y), unused);
    const float magnitude = fabs(result);
    if ((magnitude >= 0x1p-14F && magnitude < 65520.0F) || result == 0) {
        return __half_raw(__float2half_rn(result)).x;
    }
    return noted(rare_half<OP>(x, y), raised);
}

// ---- complex numbers ----

template <typename T> struct ComplexNumber {
    T real, imaginary;
};

template <typename T, bool FUSES>
EXACT ComplexNumber<T> multiply_complex(ComplexNumber<T> a, ComplexNumber<T> b, unsigned &raised)
{
    const T imaginaries = multiply(a.imaginary, b.imaginary, raised);
    const T crossed = multiply(a.imaginary, b.real, raised);
    if constexpr (FUSES) {
        return {multiply_add(a.real, b.real, -imaginaries, raised),
                multiply_add(a.real, b.imaginary, crossed, raised)};
    } else {
        return {subtract(multiply(a.real, b.real, raised), imaginaries, raised),
                add(multiply(a.real, b.imaginary, raised), crossed, raised)};
    }
}

// By Smith's method, which keeps the squares of the divisor's parts from overflowing.
template <typename T>
EXACT ComplexNumber<T> divide_complex(ComplexNumber<T> a, ComplexNumber<T> b, unsigned &raised)
{
    const T real = fabs(b.real), imaginary = fabs(b.imaginary);
    if (real == 0 && imaginary == 0) {
        return {divide(a.real, real, raised), divide(a.imaginary, real, raised)};
    }
    if (is_nan(real) || is_nan(imaginary)) {
        raised |= RAISED_INVALID; /* the comparison of both */
    }
    const bool by_real = real >= imaginary;
    const T large = by_real ? b.real : b.imaginary, small = by_real ? b.imaginary : b.real;
    const T ratio = divide(small, large, raised);
    const T scale = divide((T)1, add(large, multiply(small, ratio, raised), raised), raised);
    if (by_real) {
        const T x = add(a.real, multiply(a.imaginary, ratio, raised), raised);
        const T y = subtract(a.imaginary, multiply(a.real, ratio, raised), raised);
        return {multiply(x, scale, raised), multiply(y, scale, raised)};
    }
    const T x = add(multiply(a.real, ratio, raised), a.imaginary, raised);
    const T y = subtract(multiply(a.imaginary, ratio, raised), a.real, raised);
    return {multiply(x, scale, raised), multiply(y, scale, raised)};
}

} // namespace
