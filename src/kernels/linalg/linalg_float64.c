/* Stacks of small matrices of float64. */
#include <stdint.h>

typedef double element;
typedef int64_t lane_bits;
#define IS_FLOAT 0
#define KIND 'f'
#include "real_numbers.h"

#include "linalg_template.h"
