/* A range of k that one kernel sums. */
#ifndef NUMC_CUDA_SLAB_H
#define NUMC_CUDA_SLAB_H

#include "device/device.h"

struct slab {
    ptrdiff_t first, k; /* the range of k */
    device_address c;   /* the output, laid out as the gemm's */
    bool adds;          /* adds to c instead of overwriting it */
};

#endif
