#define DTYPE float64
#define ACCUMULATOR_BYTES 8
typedef double stored, accumulator;
#define PARTS 1

// clang-format off
#define CONVERSIONS \
    FROM('i', int8_t) \
    FROM('i', int16_t) \
    FROM('i', int32_t) \
    FROM('i', int64_t) \
    FROM('u', uint8_t) \
    FROM('u', uint16_t) \
    FROM('u', uint32_t) \
    FROM('u', uint64_t) \
    FROM('f', float)
// clang-format on

#include "sum_as_stored.h"
#include "sum_kernel.h"
