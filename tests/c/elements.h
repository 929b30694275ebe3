/* Elements of matrix kernels as plain numbers: a kernel of a new kind is told apart here. */
#ifndef NUMC_TEST_ELEMENTS_H
#define NUMC_TEST_ELEMENTS_H

#include "half.h"
#include "kernels/matmul/matmul_kernels.h"

#include <float.h>
#include <string.h>

enum { LARGEST_ELEMENT = 16 };

/* The bytes that count: x87's long doubles are padded. */
static inline size_t element_bytes(const struct matmul_kernel *kernel)
{
    const bool is_x87 =
        kernel->kind == 'f' && kernel->item_size == sizeof(long double) && LDBL_MANT_DIG == 64;
    return is_x87 ? 10 : kernel->item_size;
}

/* `value` is one that the dtype has, or a sum that is rounded to one. */
static inline void write_element(const struct matmul_kernel *kernel, char *at, double value)
{
    const int64_t integer = (int64_t)value;
    const uint16_t half = half_of_float((float)value);
    const float single = (float)value;
    const long double extended = value;
    memcpy(at,
           kernel->kind == 'i'                   ? (const void *)&integer
           : kernel->kind == 'e'                 ? (const void *)&half
           : kernel->item_size == sizeof(float)  ? (const void *)&single
           : kernel->item_size == sizeof(double) ? (const void *)&value
                                                 : (const void *)&extended,
           element_bytes(kernel));
}

/* No integers: 64 bits of one are more than a double has. */
static inline double read_element(const struct matmul_kernel *kernel, const char *at)
{
    uint16_t half;
    float single;
    double twice;
    long double extended = 0;
    if (kernel->kind == 'e') {
        memcpy(&half, at, sizeof half);
        return (double)float_of_half(half);
    }
    if (kernel->item_size == sizeof single) {
        memcpy(&single, at, sizeof single);
        return (double)single;
    }
    if (kernel->item_size == sizeof twice) {
        memcpy(&twice, at, sizeof twice);
        return twice;
    }
    memcpy(&extended, at, element_bytes(kernel));
    return (double)extended;
}

#endif
