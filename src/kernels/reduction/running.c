/* The last result stays in a register: NumPy's loops read it back from memory, which takes longer than the
 * operation. One version for all instruction sets: each operation of floats waits for the one before, one of four of
 * integers does, and in the scans vectors of 16 bytes serve all of them. */
#include "running.h"

#include "in_fours.h"

#include "kernels/copy/copy_items.h"
#include "kernels/sizes.h"
#include "kernels/vector.h"

/* What is around an operation takes longer than it does. */
#define UNROLL _Pragma("GCC unroll 4")

/* `value` is that of `last` and `next`, in a register as wide as `wide`: of narrower integers each operation would
 * extend one anew; as a bool any byte is 0 or 1. */
#define RUNNING(name, type, wide, value)                                                           \
    static void name(char *const data[], const ptrdiff_t step[], ptrdiff_t n)                      \
    {                                                                                              \
        const char *in = data[1];                                                                  \
        char *out = data[2];                                                                       \
        const ptrdiff_t in_step = step[1], out_step = step[2];                                     \
        wide last = *(const type *)data[0];                                                        \
        UNROLL                                                                                     \
        for (ptrdiff_t i = 0; i < n; i++, in += in_step, out += out_step) {                        \
            const wide next = *(const type *)in;                                                   \
            last = (value);                                                                        \
            *(type *)out = (type)last;                                                             \
        }                                                                                          \
    }

/* The same where any order of the operations has the same bits. */
#define RUNNING_IN_FOURS(name, type, wide, value)                                                  \
    INLINE wide name##_load(const char *from)                                                      \
    {                                                                                              \
        return *(const type *)from;                                                                \
    }                                                                                              \
    INLINE wide name##_of(wide last, wide next)                                                    \
    {                                                                                              \
        return (value);                                                                            \
    }                                                                                              \
    INLINE void name##_put(wide result, char *to)                                                  \
    {                                                                                              \
        *(type *)to = (type)result;                                                                \
    }                                                                                              \
    DEFINE_IN_FOURS(name##_run, wide, name##_load, name##_of, name##_put)                          \
    static void name(char *const data[], const ptrdiff_t step[], ptrdiff_t n)                      \
    {                                                                                              \
        name##_run(name##_load(data[0]), data[1], step[1], data[2], step[2], n);                   \
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

/* ---- scans ---- */

/* Zero is neutral to all of them: with `flip`, which XOR applies before and after, the maximum of unsigned integers
 * becomes that of signed ones, or the minimum, and `or` becomes `and`. */
enum scan { SCAN_MAXIMUM, SCAN_OR, SCAN_XOR };

enum { SCAN_BYTES = 16, GATHERED_BYTES = 512, GATHERED_BELOW_ITEM_BYTES = 4 };
typedef uint8_t scan_bytes __attribute__((vector_size(SCAN_BYTES)));

/* Later by so many bytes; zeros precede. */
INLINE scan_bytes shifted(scan_bytes v, int bytes)
{
    const scan_bytes zeros = {0};
    switch (bytes) {
    case 1:
        return __builtin_shufflevector(zeros, v, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
                                       28, 29, 30);
    case 2:
        return __builtin_shufflevector(zeros, v, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
                                       27, 28, 29);
    case 4:
        return __builtin_shufflevector(zeros, v, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
                                       25, 26, 27);
    default:
        return __builtin_shufflevector(zeros, v, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                                       21, 22, 23);
    }
}

#define SCANNED uint8_t
#define LAST 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15
#include "scan_template.h"
#define SCANNED uint16_t
#define LAST 7, 7, 7, 7, 7, 7, 7, 7
#include "scan_template.h"
#define SCANNED uint32_t
#define LAST 3, 3, 3, 3
#include "scan_template.h"

/* name_each() computes what is left, or lies apart. */
#define SCAN(name, type, op, flip, is_bool)                                                        \
    static void name(char *const data[], const ptrdiff_t step[], ptrdiff_t n)                      \
    {                                                                                              \
        ptrdiff_t done = 0;                                                                        \
        const bool gains = step[1] == sizeof(type) || sizeof(type) < GATHERED_BELOW_ITEM_BYTES;    \
        if (step[2] == sizeof(type) && gains) {                                                    \
            done = scan_of_##type(op, (type)(flip), is_bool, data, step[1], n);                    \
        }                                                                                          \
        if (done < n) {                                                                            \
            char *out = data[2] + done * step[2];                                                  \
            char *const left[] = {done > 0 ? out - step[2] : data[0], data[1] + done * step[1],    \
                                  out};                                                            \
            name##_each(left, step, n - done);                                                     \
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
#define RUNNING_EXTREMA(dtype, each)                                                               \
    RUNNING_IN_FOURS(maximum_##dtype##each, dtype##_t, wide_##dtype, next > last ? next : last)    \
    RUNNING_IN_FOURS(minimum_##dtype##each, dtype##_t, wide_##dtype, next < last ? next : last)
#define RUNNING_BITS(dtype, each)                                                                  \
    RUNNING_IN_FOURS(bitwise_or_##dtype##each, dtype##_t, wide_##dtype, last | next)               \
    RUNNING_IN_FOURS(bitwise_and_##dtype##each, dtype##_t, wide_##dtype, last & next)              \
    RUNNING_IN_FOURS(bitwise_xor_##dtype##each, dtype##_t, wide_##dtype, last ^ next)
#define SCANNED_EXTREMA(dtype, type, least)                                                        \
    RUNNING_EXTREMA(dtype, _each)                                                                  \
    SCAN(maximum_##dtype, type, SCAN_MAXIMUM, least, false)                                        \
    SCAN(minimum_##dtype, type, SCAN_MAXIMUM, ~(least), false)
#define SCANNED_BITS(dtype, type)                                                                  \
    RUNNING_BITS(dtype, _each)                                                                     \
    SCAN(bitwise_or_##dtype, type, SCAN_OR, 0, false)                                              \
    SCAN(bitwise_and_##dtype, type, SCAN_OR, ~0U, false)                                           \
    SCAN(bitwise_xor_##dtype, type, SCAN_XOR, 0, false)
SCANNED_EXTREMA(int8, uint8_t, 0x80U)
SCANNED_EXTREMA(uint8, uint8_t, 0U)
SCANNED_EXTREMA(int16, uint16_t, 0x8000U)
SCANNED_EXTREMA(uint16, uint16_t, 0U)
RUNNING_EXTREMA(int32, )
RUNNING_EXTREMA(uint32, )
RUNNING_EXTREMA(int64, )
RUNNING_EXTREMA(uint64, )
SCANNED_BITS(int8, uint8_t)
SCANNED_BITS(uint8, uint8_t)
SCANNED_BITS(int16, uint16_t)
SCANNED_BITS(uint16, uint16_t)
SCANNED_BITS(int32, uint32_t)
SCANNED_BITS(uint32, uint32_t)
RUNNING_BITS(int64, )
RUNNING_BITS(uint64, )
RUNNING_IN_FOURS(or_bool_each, uint8_t, bool, last | next)
RUNNING_IN_FOURS(and_bool_each, uint8_t, bool, last & next)
RUNNING_IN_FOURS(xor_bool_each, uint8_t, bool, last ^ next)
SCAN(or_bool, uint8_t, SCAN_OR, 0, true)
SCAN(and_bool, uint8_t, SCAN_OR, 1, true)
SCAN(xor_bool, uint8_t, SCAN_XOR, 0, true)
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
