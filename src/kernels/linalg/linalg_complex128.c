/* Stacks of small matrices of complex128. */
#include <stdint.h>

typedef double element;
typedef int64_t lane_bits;
#define IS_FLOAT 0
#define KIND 'c'
#include "complex_numbers.h"

#include "linalg_template.h"
