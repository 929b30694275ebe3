#include <stdint.h>

#define DTYPE float64
typedef double stored, accumulator;
typedef uint64_t accumulator_bits;
enum { PARTS = 1 };

#include "sum_as_stored.h"
#include "sum_kernel.h"
