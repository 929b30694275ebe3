#include <stdint.h>

#define DTYPE int8
typedef int8_t stored;
typedef uint8_t unsigned_stored;
typedef uint16_t pair;

#include "reduce_integers.h"
