/* A range of k that one kernel sums. */
#ifndef NUMC_CUDA_SLAB_H
#define NUMC_CUDA_SLAB_H

#include "device/device.h"

struct slab {
    ptrdiff_t first, k; /* of the products that make an element */
    device_address c;   /* where they go, the rows as close as in the gemm's */
    bool adds;          /* to what is there */
};

#endif
