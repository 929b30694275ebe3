/* The CUDA device: streams are its queues, and a memory pool of its own keeps what calls give back. */
#ifndef NUMC_CUDA_DEVICE_H
#define NUMC_CUDA_DEVICE_H

#include "cublas.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

struct cuda_device {
    struct device device;
    int ordinal, capability, multiprocessors;
    cudaMemPool_t pool; /* NULL: it has none */
    const struct cublas *cublas;
    char name[256], model[256], no_cublas[256];
    pthread_mutex_t lock; /* of the problem */
    char problem[256];
};

/* What `struct queue` and `struct event` are here. */
struct queue {
    cudaStream_t stream;
    cublasHandle_t handle;
};

/* What their codes mean to callers; what they say is noted, for humans. */
enum status cuda_translate(struct device *device, cudaError_t error, const char *what);
enum status cuda_translate_cublas(struct device *device, cublasStatus_t status);

enum status cuda_multiply(struct device *device, struct queue *queue, const struct gemm *gemm);

/* Fills in the entries of memory, queues, events, copies and products. */
void cuda_set_work_entries(struct device *device);

#endif
