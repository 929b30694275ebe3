#include <stdint.h>

#define DTYPE complex64
typedef float stored, accumulator;
typedef uint32_t accumulator_bits;
enum { PARTS = 2 };

#include "sum_as_stored.h"
#include "sum_kernel.h"
