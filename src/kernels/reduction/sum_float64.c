#define DTYPE float64
#define ACCUMULATOR_BYTES 8
typedef double stored, accumulator;
#define PARTS 1

// clang-format off
#define CONVERSIONS \
    FROM('i', int8_t, x) \
    FROM('i', int16_t, x) \
    FROM('i', int32_t, x) \
    FROM('i', int64_t, double_of_int64(x)) \
    FROM('u', uint8_t, x) \
    FROM('u', uint16_t, x) \
    FROM('u', uint32_t, x) \
    FROM('u', uint64_t, double_of_uint64(x)) \
    FROM('f', float, x)
// clang-format on

#include "sum_as_stored.h"
#include "sum_kernel.h"
