/* Products of all types by a tiled kernel: modulo 2^n for integers, OR of ANDs for bool. */
#ifndef NUMC_CUDA_TILED_H
#define NUMC_CUDA_TILED_H

#include "slab.h"

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t tiled_multiply(const struct gemm *gemm, const struct slab *slab, int multiprocessors,
                           cudaStream_t stream);

/* Adds the scratch memory to c; complex numbers only. */
cudaError_t tiled_add(const struct gemm *gemm, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
