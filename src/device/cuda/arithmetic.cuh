// Arithmetic of the tiled kernel by type: elements in memory, values multiplied, sums.
#pragma once

#include <cuda_fp16.h>
#include <stdint.h>

namespace
{

template <typename T> struct Integer { // 8 and 16 bits are multiplied as 32 bits and truncated
    using Element = T;
    using Value = uint32_t;
    using Sum = uint32_t;
    static constexpr bool IN_SLABS = false;
    static __device__ Value load(Element x)
    {
        return x;
    }
    static __device__ void add_product(Sum &sum, Value a, Value b)
    {
        sum += a * b;
    }
    static __device__ Element store(Sum sum)
    {
        return (Element)sum;
    }
};

struct Integer64 {
    using Element = uint64_t;
    using Value = uint64_t;
    // Products of a low and a high half only affect the high half: a 32-bit sum of their own saves
    // the carries.
    struct Sum {
        uint64_t low;
        uint32_t high;
    };
    static constexpr bool IN_SLABS = false;
    static __device__ Value load(Element x)
    {
        return x;
    }
    static __device__ void add_product(Sum &sum, Value a, Value b)
    {
        const uint32_t a_low = (uint32_t)a, a_high = (uint32_t)(a >> 32);
        const uint32_t b_low = (uint32_t)b, b_high = (uint32_t)(b >> 32);
        sum.low += (uint64_t)a_low * b_low;
        sum.high += a_low * b_high;
        sum.high += a_high * b_low;
    }
    static __device__ Element store(const Sum &sum)
    {
        return sum.low + ((uint64_t)sum.high << 32);
    }
};

struct Boolean {
    using Element = uint8_t;
    using Value = uint32_t;
    using Sum = uint32_t;
    static constexpr bool IN_SLABS = false;
    static __device__ Value load(Element x)
    {
        return x != 0;
    }
    static __device__ void add_product(Sum &sum, Value a, Value b)
    {
        sum |= a & b;
    }
    static __device__ Element store(Sum sum)
    {
        return (Element)sum;
    }
};

template <typename T> struct Real {
    using Element = T;
    using Value = T;
    using Sum = T;
    static constexpr bool IN_SLABS = true;
    static __device__ Value load(Element x)
    {
        return x;
    }
    static __device__ void add_product(Sum &sum, Value a, Value b)
    {
        sum += a * b;
    }
    static __device__ Element store(Sum sum)
    {
        return sum;
    }
    static __device__ Element add(Element so_far, Sum sum)
    {
        return so_far + sum;
    }
};

struct Half {
    using Element = __half;
    using Value = float;
    using Sum = float;
    static constexpr bool IN_SLABS = false;
    static __device__ Value load(Element x)
    {
        return __half2float(x);
    }
    static __device__ void add_product(Sum &sum, Value a, Value b)
    {
        sum += a * b;
    }
    static __device__ Element store(Sum sum)
    {
        return __float2half_rn(sum);
    }
};

template <typename T> struct alignas(2 * sizeof(T)) Pair {
    T real, imaginary;
};

template <typename T> struct Complex {
    using Element = Pair<T>;
    using Value = Pair<T>;
    using Sum = Pair<T>;
    static constexpr bool IN_SLABS = true;
    static __device__ Value load(Element x)
    {
        return x;
    }
    static __device__ void add_product(Sum &sum, Value a, Value b)
    {
        sum.real += a.real * b.real;
        sum.real -= a.imaginary * b.imaginary;
        sum.imaginary += a.real * b.imaginary;
        sum.imaginary += a.imaginary * b.real;
    }
    static __device__ Element store(Sum sum)
    {
        return sum;
    }
    static __device__ Element add(Element so_far, Sum sum)
    {
        return {so_far.real + sum.real, so_far.imaginary + sum.imaginary};
    }
};

} // namespace
