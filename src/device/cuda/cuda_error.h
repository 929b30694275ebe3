/* What the codes of CUDA and cuBLAS mean. What they say is noted, for humans. */
#ifndef NUMC_CUDA_ERROR_H
#define NUMC_CUDA_ERROR_H

#include "cuda_state.h"

enum status cuda_translate(struct device *device, cudaError_t error, const char *what);
enum status cuda_translate_cublas(struct device *device, cublasStatus_t status);

#endif
