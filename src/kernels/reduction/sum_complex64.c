#define DTYPE complex64
#define ACCUMULATOR_BYTES 4
typedef float stored, accumulator;
#define PARTS 2

#include "sum_as_stored.h"
#include "sum_kernel.h"
