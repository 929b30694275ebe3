/* Parts that are added as they are stored: for float and double. */
#ifndef NUMC_SUM_AS_STORED_H
#define NUMC_SUM_AS_STORED_H

#include "reduction_kernels.h"

typedef accumulator vector __attribute__((vector_size(VECTOR_BYTES)));

INLINE vector load_vector(const char *from)
{
    vector loaded;
    memcpy(&loaded, from, sizeof loaded);
    return loaded;
}

INLINE accumulator widen(stored x)
{
    return x;
}

INLINE stored narrow(accumulator x)
{
    return x;
}

INLINE vector round_vector(vector x)
{
    return x;
}

#endif
