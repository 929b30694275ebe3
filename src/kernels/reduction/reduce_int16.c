#include <stdint.h>

#define DTYPE int16
typedef int16_t stored;
typedef uint16_t unsigned_stored;
typedef uint32_t pair;

#include "reduce_integers.h"
