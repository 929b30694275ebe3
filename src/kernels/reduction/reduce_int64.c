#include <stdint.h>

#define DTYPE int64
typedef int64_t stored;
typedef uint64_t unsigned_stored;
typedef uint64_t pair;

#include "reduce_integers.h"
