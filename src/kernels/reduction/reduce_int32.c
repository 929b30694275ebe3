#include <stdint.h>

#define DTYPE int32
typedef int32_t stored;
typedef uint32_t unsigned_stored;
typedef uint64_t pair;

#include "reduce_integers.h"
