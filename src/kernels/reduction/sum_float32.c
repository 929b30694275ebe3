#include <stdint.h>

#define DTYPE float32
typedef float stored, accumulator;
typedef uint32_t accumulator_bits;
enum { PARTS = 1 };

#include "sum_as_stored.h"
#include "sum_kernel.h"
