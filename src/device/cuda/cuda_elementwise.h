/* Element-wise work of all types. */
#ifndef NUMC_CUDA_ELEMENTWISE_H
#define NUMC_CUDA_ELEMENTWISE_H

#include "device/device.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t cuda_elementwise(const struct elementwise_work *work, uint32_t raised[RAISED_WORDS],
                             cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
