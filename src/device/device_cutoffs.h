/* Where a device begins to pay, and how a product is cut for it. Measured with benchmarks/gpu.py on
 * one H200 with 16 cores; the tables are in docs/decisions/0010-offload.md. */
#ifndef NUMC_DEVICE_CUTOFFS_H
#define NUMC_DEVICE_CUTOFFS_H

#include <stddef.h>

/* ---- placement ---- */

/* Fewer operations than this no device is asked about: even the question would show. */
static const double LEAST_FLOAT_OPERATIONS = 2e6, LEAST_INTEGER_OPERATIONS = 1e6;
/* What the processor does so soon stays there: no device is reached in less. */
static const double LEAST_PROCESSOR_SECONDS = 60e-6;
/* The device must be faster by this factor: predictions are no more exact. */
static const double LEAST_SPEEDUP = 1.1;
/* Products of a stack that are smaller than this are as fast as small ones. */
static const double SMALL_PRODUCT_MULTIPLICATIONS = 128.0 * 128 * 128;
/* Of the result's way back, what the rest of a product does not hide. */
static const double DOWNLOAD_SHARE = 0.25;
/* What the first CUDA call of a process takes, and what is measured then. */
static const double STARTUP_SECONDS = 0.5;

#endif
