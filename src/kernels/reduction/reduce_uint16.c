#include <stdint.h>

#define DTYPE uint16
typedef uint16_t stored;
typedef uint16_t unsigned_stored;
typedef uint32_t pair;

#include "reduce_integers.h"
