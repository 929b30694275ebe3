#include <stdint.h>

#define DTYPE uint64
typedef uint64_t stored;
typedef uint64_t unsigned_stored;
typedef uint64_t pair;

#include "reduce_integers.h"
