/* Error codes of CUDA and cuBLAS as enum status; their texts are kept for explain(). */
#ifndef NUMC_CUDA_ERROR_H
#define NUMC_CUDA_ERROR_H

#include "cuda_state.h"

enum status cuda_translate(struct device *device, cudaError_t error, const char *what);
enum status cuda_translate_cublas(struct device *device, cublasStatus_t status);

#endif
