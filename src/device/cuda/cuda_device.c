/* The CUDA device: streams are its queues, and a memory pool of its own keeps what calls give back. */
#include "cublas.h"
#include "entry.h"
#include "tiled.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cuda_device {
    struct device device;
    int ordinal, capability, multiprocessors;
    cudaMemPool_t pool; /* NULL: it has none */
    const struct cublas *cublas;
    char name[256], no_cublas[256];
    pthread_mutex_t lock; /* of the problem */
    char problem[256];
};

/* What `struct queue` and `struct event` are here. */
struct queue {
    cudaStream_t stream;
    cublasHandle_t handle;
};

static cudaEvent_t event_of(struct event *event)
{
    return (cudaEvent_t)event;
}

/* ---- errors ---- */

static void note(struct cuda_device *cuda, const char *what, const char *name, const char *text)
{
    pthread_mutex_lock(&cuda->lock);
    snprintf(cuda->problem, sizeof cuda->problem, "%s: %s (%s)", what, text, name);
    pthread_mutex_unlock(&cuda->lock);
}

/* Errors that stay with the context come back from every call. */
static enum status status_after_failure(void)
{
    cudaGetLastError();
    return cudaFree(NULL) == cudaSuccess ? STATUS_FAILED : STATUS_LOST;
}

static enum status translate(struct device *device, cudaError_t error, const char *what)
{
    if (error == cudaSuccess) {
        return STATUS_OK;
    }
    note((struct cuda_device *)device, what, cudaGetErrorName(error), cudaGetErrorString(error));
    if (error == cudaErrorMemoryAllocation) {
        cudaGetLastError(); /* or it would be taken for the next call's */
        return STATUS_NO_DEVICE_MEMORY;
    }
    return status_after_failure();
}

static enum status translate_cublas(struct device *device, cublasStatus_t status)
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

static void explain(struct device *device, char *text, size_t size)
{
    struct cuda_device *cuda = (struct cuda_device *)device;
    pthread_mutex_lock(&cuda->lock);
    snprintf(text, size, "%s", cuda->problem);
    pthread_mutex_unlock(&cuda->lock);
}

/* ---- what it can ---- */

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

static bool is_pinned(struct device *device, const void *data)
{
    struct cudaPointerAttributes attributes;
    (void)device;
    if (cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    return attributes.type == cudaMemoryTypeHost || attributes.type == cudaMemoryTypeManaged;
}

/* Other libraries have a device of their own on the same threads. */
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

/* ---- memory ---- */

static enum status alloc(struct device *device, struct queue *queue, size_t bytes,
                         device_address *address)
{
    const struct cuda_device *cuda = (struct cuda_device *)device;
    void *memory = NULL;
    const cudaError_t error =
        cuda->pool != NULL ? cudaMallocFromPoolAsync(&memory, bytes, cuda->pool, queue->stream)
                           : cudaMalloc(&memory, bytes);
    *address = (device_address)memory;
    return translate(device, error, "allocating device memory");
}

static void release(struct device *device, struct queue *queue, device_address address)
{
    if (address == 0) {
        return;
    }
    if (((struct cuda_device *)device)->pool != NULL) {
        cudaFreeAsync((void *)address, queue->stream);
    } else {
        cudaFree((void *)address);
    }
}

static enum status alloc_pinned(struct device *device, size_t bytes, void **memory)
{
    *memory = NULL;
    const enum status status = translate(
        device, cudaHostAlloc(memory, bytes, cudaHostAllocPortable), "allocating pinned memory");
    return status == STATUS_NO_DEVICE_MEMORY ? STATUS_NO_HOST_MEMORY : status;
}

static void release_pinned(struct device *device, void *memory)
{
    (void)device;
    cudaFreeHost(memory);
}

/* ---- queues and events ---- */

static enum status new_queue(struct device *device, struct queue **made)
{
    struct queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        return STATUS_NO_HOST_MEMORY;
    }
    const enum status status =
        translate(device, cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking),
                  "making a stream");
    if (status != STATUS_OK) {
        free(queue);
        return status;
    }
    *made = queue;
    return STATUS_OK;
}

static void release_queue(struct device *device, struct queue *queue)
{
    if (queue != NULL) {
        cublas_release(((struct cuda_device *)device)->cublas, queue->handle);
        cudaStreamDestroy(queue->stream);
        free(queue);
    }
}

static enum status new_event(struct device *device, struct event **event)
{
    cudaEvent_t made = NULL;
    const enum status status = translate(
        device, cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "making an event");
    *event = (struct event *)made;
    return status;
}

static void release_event(struct device *device, struct event *event)
{
    (void)device;
    if (event != NULL) {
        cudaEventDestroy(event_of(event));
    }
}

static enum status record(struct device *device, struct event *event, struct queue *queue)
{
    return translate(device, cudaEventRecord(event_of(event), queue->stream), "recording an event");
}

static enum status follow(struct device *device, struct queue *queue, struct event *event)
{
    return translate(device, cudaStreamWaitEvent(queue->stream, event_of(event), 0),
                     "waiting for an event");
}

static enum status wait(struct device *device, struct event *event)
{
    return translate(device, cudaEventSynchronize(event_of(event)), "waiting for the GPU");
}

static enum status poll(struct device *device, struct event *event, bool *happened)
{
    const cudaError_t error = cudaEventQuery(event_of(event));
    *happened = error == cudaSuccess;
    return error == cudaErrorNotReady ? STATUS_OK : translate(device, error, "asking the GPU");
}

static enum status drain(struct device *device, struct queue *queue)
{
    return translate(device, cudaStreamSynchronize(queue->stream), "waiting for the GPU");
}

/* ---- copies and products ---- */

static enum status upload(struct device *device, struct queue *queue, device_address to,
                          const void *from, size_t bytes)
{
    return translate(
        device, cudaMemcpyAsync((void *)to, from, bytes, cudaMemcpyHostToDevice, queue->stream),
        "copying to the GPU");
}

static enum status download(struct device *device, struct queue *queue, void *to,
                            device_address from, size_t bytes)
{
    return translate(
        device,
        cudaMemcpyAsync(to, (const void *)from, bytes, cudaMemcpyDeviceToHost, queue->stream),
        "copying from the GPU");
}

static enum status multiply(struct device *device, struct queue *queue, const struct gemm *gemm)
{
    const struct cuda_device *cuda = (struct cuda_device *)device;
    const bool tiled = gemm->kernel == GEMM_TILED || gemm->type.kind <= ELEMENT_INTEGER;
    if (tiled) {
        return translate(device, tiled_multiply(gemm, cuda->multiprocessors, queue->stream),
                         "starting a kernel");
    }
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (queue->handle == NULL) {
        status = cublas_handle(cuda->cublas, queue->stream, &queue->handle);
    }
    return translate_cublas(device, status == CUBLAS_STATUS_SUCCESS
                                        ? cublas_multiply(cuda->cublas, queue->handle, gemm)
                                        : status);
}

/* ---- making one ---- */

/* Without a pool, memory is allocated by a call that waits for the device. */
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
    uint64_t kept = cuda->device.memory / 4; /* the rest goes back when nobody uses it */
    cudaMemPoolSetAttribute(cuda->pool, cudaMemPoolAttrReleaseThreshold, &kept);
}

static const struct device entries = {
    .latency = 100e-6,
    .transfer_rate = 20e9,
    .supports = supports,
    .is_pinned = is_pinned,
    .explain = explain,
    .enter = enter,
    .leave = leave,
    .alloc = alloc,
    .release = release,
    .alloc_pinned = alloc_pinned,
    .release_pinned = release_pinned,
    .new_queue = new_queue,
    .release_queue = release_queue,
    .new_event = new_event,
    .release_event = release_event,
    .record = record,
    .follow = follow,
    .wait = wait,
    .poll = poll,
    .drain = drain,
    .upload = upload,
    .download = download,
    .multiply = multiply,
};

/* Conservative rates, from what the device says of itself. */
static void estimate_rates(struct cuda_device *cuda, int kilohertz)
{
    const double cycles = 1e3 * kilohertz * cuda->multiprocessors;
    /* Data center GPUs have half as many units for double; others a sixty-fourth. */
    const bool data_center =
        cuda->capability == 80 || cuda->capability == 90 || cuda->capability == 100;
    cuda->device.float_rate = cycles * 2 * 64 * 0.5;
    cuda->device.double_rate =
        data_center ? cuda->device.float_rate / 2 : cuda->device.float_rate / 32;
    cuda->device.integer_rate = cuda->device.float_rate / 2;
}

static cudaError_t fill(struct cuda_device *cuda)
{
    size_t unused;
    int major = 0, minor = 0, kilohertz = 0;
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
        cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, cuda->ordinal);
        cuda->capability = 10 * major + minor;
        snprintf(cuda->name, sizeof cuda->name, "cuda:%d (%.200s)", cuda->ordinal, properties.name);
        cuda->device.name = cuda->name;
        estimate_rates(cuda, kilohertz);
        make_pool(cuda);
    }
    return error;
}

static enum status open_device(int ordinal, const char *const cublas[], struct device **device,
                               char *why, size_t size)
{
    struct cuda_device *cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL) {
        snprintf(why, size, "no memory");
        return STATUS_NO_HOST_MEMORY;
    }
    cuda->device = entries;
    cuda->ordinal = ordinal;
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
    cuda->cublas = cublas_load(cublas, problem, sizeof problem);
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

const struct cuda_library *numc_cuda_library(int version)
{
    static const struct cuda_library library = {count_devices, describe, open_device};
    return version == DEVICE_VERSION ? &library : NULL;
}
