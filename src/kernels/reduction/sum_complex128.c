#define DTYPE complex128
#define ACCUMULATOR_BYTES 8
typedef double stored, accumulator;
#define PARTS 2

#define CONVERSIONS FROM('c', float, x)

#include "sum_as_stored.h"
#include "sum_kernel.h"
