/* Stacks of small matrices of complex64. */
#include <stdint.h>

typedef float element;
typedef int32_t lane_bits;
#define IS_FLOAT 1
#define KIND 'c'
#include "complex_numbers.h"

#include "linalg_template.h"
