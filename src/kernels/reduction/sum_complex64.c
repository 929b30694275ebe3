/* GCC adds two floats by a vector of four, whose other lanes hold what was in the register: their overflow would
 * be reported. */
#pragma GCC optimize("no-tree-slp-vectorize")

#define DTYPE complex64
#define ACCUMULATOR_BYTES 4
typedef float stored, accumulator;
#define PARTS 2

#include "sum_as_stored.h"
#include "sum_kernel.h"
