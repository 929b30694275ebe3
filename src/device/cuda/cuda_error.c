#include "cuda_error.h"

#include <stdio.h>

static void note(struct cuda_device *cuda, const char *what, const char *name, const char *text)
{
    pthread_mutex_lock(&cuda->lock);
    snprintf(cuda->problem, sizeof cuda->problem, "%s: %s (%s)", what, text, name);
    pthread_mutex_unlock(&cuda->lock);
}

/* Sticky errors of the CUDA context are returned by every later call: the device is lost. */
static enum status status_after_failure(void)
{
    cudaGetLastError();
    return cudaFree(NULL) == cudaSuccess ? STATUS_FAILED : STATUS_LOST;
}

enum status cuda_translate(struct device *device, cudaError_t error, const char *what)
{
    if (error == cudaSuccess) {
        return STATUS_OK;
    }
    note((struct cuda_device *)device, what, cudaGetErrorName(error), cudaGetErrorString(error));
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError(); /* clears it: else the next call would return it */
        return STATUS_NO_DEVICE_MEMORY;
    }
    return status_after_failure();
}

enum status cuda_translate_cublas(struct device *device, cublasStatus_t status)
{
    char number[32];
    if (status == CUBLAS_STATUS_SUCCESS) {
        return STATUS_OK;
    }
    snprintf(number, sizeof number, "status %d", (int)status);
    note((struct cuda_device *)device, "cuBLAS", number, "a product failed");
    if (status == CUBLAS_STATUS_ALLOC_FAILED) {
        cudaGetLastError();
        return STATUS_NO_DEVICE_MEMORY;
    }
    return status_after_failure();
}
