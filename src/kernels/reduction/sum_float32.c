#define DTYPE float32
#define ACCUMULATOR_BYTES 4
typedef float stored, accumulator;
#define PARTS 1

// clang-format off
#define CONVERSIONS \
    FROM('i', int8_t, x) \
    FROM('i', int16_t, x) \
    FROM('u', uint8_t, x) \
    FROM('u', uint16_t, x)
// clang-format on

#include "sum_as_stored.h"
#include "sum_kernel.h"
