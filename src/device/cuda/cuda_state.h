/* A GPU. A memory pool of its own keeps what calls give back. */
#ifndef NUMC_CUDA_STATE_H
#define NUMC_CUDA_STATE_H

#include "cublas.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

struct cuda_device {
    struct device device;
    int ordinal, capability, multiprocessors;
    cudaMemPool_t pool; /* NULL: it has none */
    const struct cublas *cublas;
    char name[256], model[256], no_cublas[256];
    _Atomic bool tells_pages; /* mincore() knows where managed pages are */
    pthread_mutex_t driver;   /* of calls of the driver that threads of one product make at once */
    pthread_mutex_t lock;     /* of the problem */
    char problem[256];
};

/* Products in a stream go through one handle, made at the first of them. Events are CUDA's. */
struct stream {
    cudaStream_t cuda;
    cublasHandle_t cublas;
};

#endif
