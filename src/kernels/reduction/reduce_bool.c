#include <stdint.h>

/* `bool` would be expanded. */
#define DTYPE bool8
#define IS_BOOL 1
typedef uint8_t stored;
typedef uint8_t unsigned_stored;
typedef uint16_t pair;

#include "reduce_integers.h"
