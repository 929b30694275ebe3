/* What remains to be done with a product that lies on the device. */
#ifndef NUMC_CUDA_RESULT_H
#define NUMC_CUDA_RESULT_H

#include "device/device.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stores true, in pinned memory, if one of the floats is infinite or a NaN. */
cudaError_t result_scan(struct element_type type, device_address at, ptrdiff_t count,
                        bool *nonfinite, cudaStream_t stream);

/* Copies what is above the diagonals to below them. */
cudaError_t result_mirror(const struct gemm *gemm, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
