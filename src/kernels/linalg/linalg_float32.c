/* Stacks of small matrices of float32. */
#include <stdint.h>

typedef float element;
typedef int32_t lane_bits;
#define IS_FLOAT 1
#define KIND 'f'
#include "real_numbers.h"

#include "linalg_template.h"
