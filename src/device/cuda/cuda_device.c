/* Finding and opening GPUs, and what each supports. */
#include "cuda_device.h"

#include "cuda_managed.h"
#include "cuda_state.h"
#include "cuda_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void explain(struct device *device, char *text, size_t size)
{
    struct cuda_device *cuda = (struct cuda_device *)device;
    pthread_mutex_lock(&cuda->lock);
    snprintf(text, size, "%s", cuda->problem);
    pthread_mutex_unlock(&cuda->lock);
}

/* ---- capabilities ---- */

static bool by_cublas(const struct matmul_task *task)
{
    return task->kernel == GEMM_CUBLAS ||
           (task->kernel == GEMM_AUTO && task->type.kind >= ELEMENT_FLOAT);
}

static bool supports(struct device *device, const struct matmul_task *task, const char **why)
{
    const struct cuda_device *cuda = (struct cuda_device *)device;
    *why = NULL;
    if (task->precision != PRECISION_IEEE && cuda->capability < 80) {
        *why = "this GPU computes with precision='ieee' only: others need compute capability 8.0";
    } else if (by_cublas(task) && task->type.kind <= ELEMENT_INTEGER) {
        *why = "gemm='cublas' is for floating-point numbers: integers need gemm='tiled' or 'auto'";
    } else if (by_cublas(task) && cuda->cublas == NULL) {
        *why = cuda->no_cublas;
    }
    return *why == NULL;
}

static enum host_memory memory_of(struct device *device, const void *data)
{
    struct cudaPointerAttributes attributes;
    (void)device;
    if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
        cudaGetLastError();
        return HOST_ORDINARY;
    }
    return attributes.type == cudaMemoryTypeHost      ? HOST_PINNED
           : attributes.type == cudaMemoryTypeManaged ? HOST_MANAGED
                                                      : HOST_ORDINARY;
}

/* CUDA's current device is per thread, and other libraries use these threads as well: restored by
 * leave(). */
static int enter(struct device *device)
{
    const struct cuda_device *cuda = (struct cuda_device *)device;
    int before = cuda->ordinal;
    cudaGetDevice(&before);
    cudaSetDevice(cuda->ordinal);
    return before;
}

static void leave(struct device *device, int before)
{
    if (before != ((struct cuda_device *)device)->ordinal) {
        cudaSetDevice(before);
    }
}

/* ---- opening ---- */

/* Without a pool, cudaMalloc() is used, which synchronizes with the device. */
static void make_pool(struct cuda_device *cuda)
{
    int has_pools = 0;
    cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, cuda->ordinal);
    if (has_pools == 0) {
        return;
    }
    struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned};
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = cuda->ordinal;
    if (cudaMemPoolCreate(&cuda->pool, &properties) != cudaSuccess) {
        cudaGetLastError();
        cuda->pool = NULL;
        return;
    }
    uint64_t kept =
        cuda->device.memory / 4; /* unused memory beyond this is given back to the driver */
    cudaMemPoolSetAttribute(cuda->pool, cudaMemPoolAttrReleaseThreshold, &kept);
}

static const struct device entries = {
    .supports = supports,
    .memory_of = memory_of,
    .explain = explain,
    .enter = enter,
    .leave = leave,
};

static cudaError_t fill(struct cuda_device *cuda)
{
    size_t unused;
    int major = 0, minor = 0, driver = 0, is_concurrent = 0;
    struct cudaDeviceProp properties;
    cudaError_t error = cudaSetDevice(cuda->ordinal);
    if (error == cudaSuccess) {
        error = cudaMemGetInfo(&unused, &cuda->device.memory);
    }
    if (error == cudaSuccess) {
        error = cudaGetDeviceProperties(&properties, cuda->ordinal);
    }
    if (error == cudaSuccess) {
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, cuda->ordinal);
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, cuda->ordinal);
        cudaDeviceGetAttribute(&cuda->multiprocessors, cudaDevAttrMultiProcessorCount,
                               cuda->ordinal);
        cuda->capability = 10 * major + minor;
        snprintf(cuda->name, sizeof cuda->name, "cuda:%d (%.200s)", cuda->ordinal, properties.name);
        cuda->device.name = cuda->name;
        cudaDriverGetVersion(&driver);
        snprintf(cuda->model, sizeof cuda->model, "%.200s, CUDA driver %d", properties.name,
                 driver);
        cuda->device.model = cuda->model;
        cudaDeviceGetAttribute(&is_concurrent, cudaDevAttrConcurrentManagedAccess, cuda->ordinal);
        cuda->device.no_managed =
            is_concurrent != 0 ? NULL
                               : "this GPU and its driver do not let the processor touch managed "
                                 "memory while the GPU computes (concurrentManagedAccess is 0)";
        make_pool(cuda);
    }
    return error;
}

static enum status open_device(int ordinal, const char *const blas[], struct device **device,
                               char *why, size_t size)
{
    struct cuda_device *cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL) {
        snprintf(why, size, "no memory");
        return STATUS_NO_HOST_MEMORY;
    }
    cuda->device = entries;
    cuda_set_work_entries(&cuda->device);
    cuda_set_managed_entries(&cuda->device);
    cuda->ordinal = ordinal;
    pthread_mutex_init(&cuda->driver, NULL);
    pthread_mutex_init(&cuda->lock, NULL);
    int before = ordinal;
    cudaGetDevice(&before);
    const cudaError_t error = fill(cuda);
    if (before != ordinal) {
        cudaSetDevice(before);
    }
    if (error != cudaSuccess) {
        snprintf(why, size, "%s", cudaGetErrorString(error));
        cudaGetLastError();
        free(cuda);
        return STATUS_UNAVAILABLE;
    }
    char problem[200];
    cuda->cublas = cublas_load(blas, problem, sizeof problem);
    snprintf(cuda->no_cublas, sizeof cuda->no_cublas, "there is no cuBLAS: %s", problem);
    *device = &cuda->device;
    return STATUS_OK;
}

static int count_devices(char *why, size_t size)
{
    int count = 0, driver = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess &&
        driver == 0) {
        snprintf(why, size, "there is no CUDA driver");
        return 0;
    }
    if (error != cudaSuccess) {
        snprintf(why, size, "%s", cudaGetErrorString(error));
        cudaGetLastError();
        return 0;
    }
    snprintf(why, size, "%s", count == 0 ? "no CUDA device" : "");
    return count;
}

static void describe(int ordinal, char *text, size_t size)
{
    struct cudaDeviceProp properties;
    snprintf(text, size, "unknown");
    if (cudaGetDeviceProperties(&properties, ordinal) == cudaSuccess) {
        snprintf(text, size, "%s", properties.name);
    }
}

const struct device_library *numc_cuda_library(int version)
{
    static const struct device_library library = {count_devices, describe, open_device};
    return version == DEVICE_VERSION ? &library : NULL;
}
