/* cuBLAS, loaded at run time. */
#ifndef NUMC_CUDA_CUBLAS_H
#define NUMC_CUDA_CUBLAS_H

#include "slab.h"

#include <cublas_v2.h>

struct cublas;

/* NULL if no path is a usable cuBLAS; `why` then has the reason. */
const struct cublas *cublas_load(const char *const paths[], char *why, size_t size);

/* Products in `stream` go through one handle, made at the first of them. */
cublasStatus_t cublas_handle(const struct cublas *cublas, cudaStream_t stream,
                             cublasHandle_t *handle);
void cublas_release(const struct cublas *cublas, cublasHandle_t handle);

cublasStatus_t cublas_multiply(const struct cublas *cublas, cublasHandle_t handle,
                               const struct gemm *gemm, const struct slab *slab);

#endif
