/* The last result stays in a register: NumPy's loops read it back from memory, which takes longer than the
 * operation. One version for all instruction sets: each operation waits for the one before. */
#include "running.h"

#include <string.h>

#define RUNNING(name, type, operator)                                                              \
    static void name(char *const data[], const ptrdiff_t step[], ptrdiff_t n)                      \
    {                                                                                              \
        type last = *(const type *)data[0];                                                        \
        for (ptrdiff_t k = 0; k < n; k++) {                                                        \
            last = last operator*(const type *)(data[1] + k * step[1]);                            \
            *(type *)(data[2] + k * step[2]) = last;                                               \
        }                                                                                          \
    }

/* Both parts at a time. */
#define RUNNING_COMPLEX(name, type)                                                                \
    static void name(char *const data[], const ptrdiff_t step[], ptrdiff_t n)                      \
    {                                                                                              \
        type real = ((const type *)data[0])[0], imaginary = ((const type *)data[0])[1];            \
        for (ptrdiff_t k = 0; k < n; k++) {                                                        \
            const type *in = (const type *)(data[1] + k * step[1]);                                \
            type *out = (type *)(data[2] + k * step[2]);                                           \
            real += in[0];                                                                         \
            imaginary += in[1];                                                                    \
            out[0] = real;                                                                         \
            out[1] = imaginary;                                                                    \
        }                                                                                          \
    }

// clang-format off
RUNNING(add_float, float, +)
RUNNING(add_double, double, +)
RUNNING(multiply_float, float, *)
RUNNING(multiply_double, double, *)
RUNNING_COMPLEX(add_complex_float, float)
RUNNING_COMPLEX(add_complex_double, double)
// clang-format on

static const struct {
    const char *op;
    char kind;
    size_t item_size;
    elementwise_kernel *kernel;
} kernels[] = {
    {"add", 'f', sizeof(float), add_float},
    {"add", 'f', sizeof(double), add_double},
    {"add", 'c', 2 * sizeof(float), add_complex_float},
    {"add", 'c', 2 * sizeof(double), add_complex_double},
    {"multiply", 'f', sizeof(float), multiply_float},
    {"multiply", 'f', sizeof(double), multiply_double},
};

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
