#include <stdint.h>

#define DTYPE complex128
typedef double stored, accumulator;
typedef uint64_t accumulator_bits;
enum { PARTS = 2 };

#include "sum_as_stored.h"
#include "sum_kernel.h"
