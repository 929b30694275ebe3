/* The last result stays in a register: NumPy's loops read it back from memory, which takes longer than the
 * operation. One version for all instruction sets: each operation waits for the one before. */
#include "running.h"

#include <string.h>

/* `value` is that of `last` and `next`, in a register as wide as `wide`: of narrower integers each operation would
 * extend one anew; as a bool any byte is 0 or 1. */
#define RUNNING(name, type, wide, value)                                                           \
    static void name(char *const data[], const ptrdiff_t step[], ptrdiff_t n)                      \
    {                                                                                              \
        const char *in = data[1];                                                                  \
        char *out = data[2];                                                                       \
        const ptrdiff_t in_step = step[1], out_step = step[2];                                     \
        wide last = *(const type *)data[0];                                                        \
        for (; n > 0; n--, in += in_step, out += out_step) {                                       \
            const wide next = *(const type *)in;                                                   \
            last = (value);                                                                        \
            *(type *)out = (type)last;                                                             \
        }                                                                                          \
    }

/* Both parts at a time. */
#define RUNNING_COMPLEX(name, type)                                                                \
    static void name(char *const data[], const ptrdiff_t step[], ptrdiff_t n)                      \
    {                                                                                              \
        const char *from = data[1];                                                                \
        char *to = data[2];                                                                        \
        const ptrdiff_t in_step = step[1], out_step = step[2];                                     \
        type real = ((const type *)data[0])[0], imaginary = ((const type *)data[0])[1];            \
        for (; n > 0; n--, from += in_step, to += out_step) {                                      \
            const type *in = (const type *)from;                                                   \
            type *out = (type *)to;                                                                \
            real += in[0];                                                                         \
            imaginary += in[1];                                                                    \
            out[0] = real;                                                                         \
            out[1] = imaginary;                                                                    \
        }                                                                                          \
    }

// clang-format off
RUNNING(add_float, float, float, last + next)
RUNNING(add_double, double, double, last + next)
RUNNING(multiply_float, float, float, last * next)
RUNNING(multiply_double, double, double, last * next)
RUNNING_COMPLEX(add_complex_float, float)
RUNNING_COMPLEX(add_complex_double, double)
typedef int32_t wide_int8, wide_int16, wide_int32, wide_uint8, wide_uint16;
typedef uint32_t wide_uint32;
typedef int64_t wide_int64;
typedef uint64_t wide_uint64;
#define INTEGERS(DO) DO(int8) DO(int16) DO(int32) DO(int64) DO(uint8) DO(uint16) DO(uint32) DO(uint64)
#define RUNNING_INTEGERS(dtype)                                                                    \
    RUNNING(maximum_##dtype, dtype##_t, wide_##dtype, next > last ? next : last)                   \
    RUNNING(minimum_##dtype, dtype##_t, wide_##dtype, next < last ? next : last)                   \
    RUNNING(bitwise_or_##dtype, dtype##_t, wide_##dtype, last | next)                              \
    RUNNING(bitwise_and_##dtype, dtype##_t, wide_##dtype, last & next)                             \
    RUNNING(bitwise_xor_##dtype, dtype##_t, wide_##dtype, last ^ next)
INTEGERS(RUNNING_INTEGERS)
RUNNING(or_bool, uint8_t, bool, last | next)
RUNNING(and_bool, uint8_t, bool, last & next)
RUNNING(xor_bool, uint8_t, bool, last ^ next)
// clang-format on

static const struct {
    const char *op;
    char kind;
    size_t item_size;
    elementwise_kernel *kernel;
} kernels[] = {{"add", 'f', sizeof(float), add_float},
               {"add", 'f', sizeof(double), add_double},
               {"add", 'c', 2 * sizeof(float), add_complex_float},
               {"add", 'c', 2 * sizeof(double), add_complex_double},
               {"multiply", 'f', sizeof(float), multiply_float},
               {"multiply", 'f', sizeof(double), multiply_double},
               {"maximum", 'b', 1, or_bool},
               {"fmax", 'b', 1, or_bool},
               {"bitwise_or", 'b', 1, or_bool},
               {"logical_or", 'b', 1, or_bool},
               {"minimum", 'b', 1, and_bool},
               {"fmin", 'b', 1, and_bool},
               {"bitwise_and", 'b', 1, and_bool},
               {"logical_and", 'b', 1, and_bool},
               {"bitwise_xor", 'b', 1, xor_bool},
#define KIND(dtype) ((dtype##_t) - 1 < 0 ? 'i' : 'u')
#define OF_INTEGERS(dtype)                                                                         \
    {"maximum", KIND(dtype), sizeof(dtype##_t), maximum_##dtype},                                  \
        {"fmax", KIND(dtype), sizeof(dtype##_t), maximum_##dtype},                                 \
        {"minimum", KIND(dtype), sizeof(dtype##_t), minimum_##dtype},                              \
        {"fmin", KIND(dtype), sizeof(dtype##_t), minimum_##dtype},                                 \
        {"bitwise_or", KIND(dtype), sizeof(dtype##_t), bitwise_or_##dtype},                        \
        {"bitwise_and", KIND(dtype), sizeof(dtype##_t), bitwise_and_##dtype},                      \
        {"bitwise_xor", KIND(dtype), sizeof(dtype##_t), bitwise_xor_##dtype},
               INTEGERS(OF_INTEGERS)};

elementwise_kernel *running_kernel_find(const char *op, char kind, size_t item_size)
{
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernels[i].op, op) == 0 && kernels[i].kind == kind &&
            kernels[i].item_size == item_size) {
            return kernels[i].kernel;
        }
    }
    return NULL;
}
