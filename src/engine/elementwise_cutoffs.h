/* From which sizes element-wise calls are computed otherwise. */
#ifndef NUMC_ELEMENTWISE_CUTOFFS_H
#define NUMC_ELEMENTWISE_CUTOFFS_H

enum {
    /* Outputs of more bytes than so many sixteenths of the last-level cache are stored past it.
     * Measured again by: python benchmarks/compare.py */
    STREAMING_SIXTEENTHS_OF_CACHE = 16,
};

#endif
