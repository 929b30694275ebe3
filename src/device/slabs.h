/* Floating-point sums are cut into slabs of k, which one kernel each sums. That bounds the rounding error, which grows
 * with the length of a slab and the number of slabs. */
#ifndef NUMC_SLABS_H
#define NUMC_SLABS_H

#include "device.h"
#include "device_cutoffs.h"

/* Halves have one slab: c would be rounded to float16 after each. */
static inline ptrdiff_t slab_length(struct element_type type, ptrdiff_t k)
{
    switch (type.kind) {
    case ELEMENT_FLOAT:
        return type.size == 2 ? k : type.size == 4 ? SLAB_SINGLE : SLAB_DOUBLE;
    case ELEMENT_COMPLEX:
        return type.size == 8 ? SLAB_COMPLEX_SINGLE : SLAB_COMPLEX_DOUBLE;
    default:
        return k; /* exact */
    }
}

/* A sum over k may be continued from a multiple of this on without any change of its bits; k: it may not. */
static inline ptrdiff_t slabs_together(struct element_type type, ptrdiff_t k)
{
    return gemm_has_spare(type, k) ? SLABS_TOGETHER * slab_length(type, k) : slab_length(type, k);
}

#endif
