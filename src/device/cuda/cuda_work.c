#include "cuda_work.h"

#include "cuda_elementwise.h"
#include "cuda_error.h"
#include "device/slabs.h"
#include "result.h"
#include "threads/spin.h"
#include "tiled.h"

#include <stdlib.h>

static cudaEvent_t event_of(struct event *event)
{
    return (cudaEvent_t)event;
}

/* Between both, a thread has the driver for itself. The driver has a lock of its own in which threads sleep, so
 * long that a product took six times as long after one of NumPy's. */
static void enter_driver(struct device *device)
{
    spin_lock(&((struct cuda_device *)device)->driver);
}

static void leave_driver(struct device *device)
{
    pthread_mutex_unlock(&((struct cuda_device *)device)->driver);
}

/* ---- memory ---- */

static enum status alloc(struct device *device, struct stream *stream, size_t bytes,
                         device_address *address)
{
    const struct cuda_device *cuda = (struct cuda_device *)device;
    void *memory = NULL;
    const cudaError_t error =
        cuda->pool != NULL ? cudaMallocFromPoolAsync(&memory, bytes, cuda->pool, stream->cuda)
                           : cudaMalloc(&memory, bytes);
    *address = (device_address)memory;
    return cuda_translate(device, error, "allocating device memory");
}

static void release(struct device *device, struct stream *stream, device_address address)
{
    if (address == 0) {
        return;
    }
    if (((struct cuda_device *)device)->pool != NULL) {
        cudaFreeAsync((void *)address, stream->cuda);
    } else {
        cudaFree((void *)address);
    }
}

static enum status alloc_pinned(struct device *device, size_t bytes, void **memory)
{
    *memory = NULL;
    const enum status status = cuda_translate(
        device, cudaHostAlloc(memory, bytes, cudaHostAllocPortable), "allocating pinned memory");
    return status == STATUS_NO_DEVICE_MEMORY ? STATUS_NO_HOST_MEMORY : status;
}

static void release_pinned(struct device *device, void *memory)
{
    (void)device;
    cudaFreeHost(memory);
}

static enum status free_memory(struct device *device, size_t *bytes)
{
    size_t all;
    *bytes = 0;
    return cuda_translate(device, cudaMemGetInfo(bytes, &all), "asking for free memory");
}

/* ---- streams and events ---- */

static enum status new_stream(struct device *device, struct stream **made)
{
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        return STATUS_NO_HOST_MEMORY;
    }
    const enum status status = cuda_translate(
        device, cudaStreamCreateWithFlags(&stream->cuda, cudaStreamNonBlocking), "making a stream");
    if (status != STATUS_OK) {
        free(stream);
        return status;
    }
    *made = stream;
    return STATUS_OK;
}

static void release_stream(struct device *device, struct stream *stream)
{
    if (stream != NULL) {
        cublas_release(((struct cuda_device *)device)->cublas, stream->cublas);
        cudaStreamDestroy(stream->cuda);
        free(stream);
    }
}

static enum status new_event(struct device *device, struct event **event)
{
    cudaEvent_t made = NULL;
    const enum status status = cuda_translate(
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

static enum status record(struct device *device, struct event *event, struct stream *stream)
{
    enter_driver(device);
    const cudaError_t error = cudaEventRecord(event_of(event), stream->cuda);
    leave_driver(device);
    return cuda_translate(device, error, "recording an event");
}

static enum status follow(struct device *device, struct stream *stream, struct event *event)
{
    enter_driver(device);
    const cudaError_t error = cudaStreamWaitEvent(stream->cuda, event_of(event), 0);
    leave_driver(device);
    return cuda_translate(device, error, "waiting for an event");
}

static enum status poll(struct device *device, struct event *event, bool *happened)
{
    enter_driver(device);
    const cudaError_t error = cudaEventQuery(event_of(event));
    leave_driver(device);
    *happened = error == cudaSuccess;
    return error == cudaErrorNotReady ? STATUS_OK : cuda_translate(device, error, "asking the GPU");
}

/* For 2 ms in a loop of our own: threads that the driver lets sleep wake up late, too. */
static enum status wait(struct device *device, struct event *event)
{
    enum { POLLS = 2000, PAUSES = 20 };
    bool happened = false;
    enum status status = STATUS_OK;
    for (int i = 0; i < POLLS && status == STATUS_OK && !happened; i++) {
        status = poll(device, event, &happened);
        for (int j = 0; j < PAUSES && !happened; j++) {
            spin_pause();
        }
    }
    return status != STATUS_OK || happened
               ? status
               : cuda_translate(device, cudaEventSynchronize(event_of(event)),
                                "waiting for the GPU");
}

static enum status drain(struct device *device, struct stream *stream)
{
    return cuda_translate(device, cudaStreamSynchronize(stream->cuda), "waiting for the GPU");
}

static enum status finish(struct device *device)
{
    return cuda_translate(device, cudaDeviceSynchronize(), "waiting for the GPU");
}

/* ---- copies ---- */

static enum status upload(struct device *device, struct stream *stream, device_address to,
                          const void *from, struct copied_rows rows)
{
    const enum cudaMemcpyKind kind = cudaMemcpyHostToDevice;
    enter_driver(device);
    const cudaError_t error =
        rows.count == 1 ? cudaMemcpyAsync((void *)to, from, rows.bytes, kind, stream->cuda)
                        : cudaMemcpy2DAsync((void *)to, rows.bytes, from, rows.step, rows.bytes,
                                            rows.count, kind, stream->cuda);
    leave_driver(device);
    return cuda_translate(device, error, "copying to the GPU");
}

static enum status download(struct device *device, struct stream *stream, void *to,
                            device_address from, struct copied_rows rows)
{
    const enum cudaMemcpyKind kind = cudaMemcpyDeviceToHost;
    enter_driver(device);
    const cudaError_t error =
        rows.count == 1 ? cudaMemcpyAsync(to, (const void *)from, rows.bytes, kind, stream->cuda)
                        : cudaMemcpy2DAsync(to, rows.step, (const void *)from, rows.bytes,
                                            rows.bytes, rows.count, kind, stream->cuda);
    leave_driver(device);
    return cuda_translate(device, error, "copying from the GPU");
}

/* ---- products ---- */

static enum status multiply_slab(struct device *device, struct stream *stream,
                                 const struct gemm *gemm, const struct slab *slab)
{
    const struct cuda_device *cuda = (struct cuda_device *)device;
    if (gemm->kernel == GEMM_TILED || gemm->type.kind <= ELEMENT_INTEGER) {
        return cuda_translate(device,
                              tiled_multiply(gemm, slab, cuda->multiprocessors, stream->cuda),
                              "starting a kernel");
    }
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    if (stream->cublas == NULL) {
        status = cublas_handle(cuda->cublas, stream->cuda, &stream->cublas);
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = cublas_multiply(cuda->cublas, stream->cublas, gemm, slab);
    }
    return cuda_translate_cublas(device, status);
}

static enum status multiply(struct device *device, struct stream *stream, const struct gemm *gemm)
{
    const ptrdiff_t longest = slab_length(gemm->type, gemm->k), k = gemm->k;
    const ptrdiff_t together = gemm->spare != 0 ? SLABS_TOGETHER * longest : k;
    enum status status = STATUS_OK;
    for (ptrdiff_t first = 0; first < k && status == STATUS_OK; first += longest) {
        const ptrdiff_t end = k - first < longest ? k : first + longest;
        const bool apart = gemm->spare != 0 && (gemm->adds || first >= together);
        const struct slab slab = {first, end - first, apart ? gemm->spare : gemm->c,
                                  first % together != 0 || (gemm->adds && !apart)};
        enter_driver(device);
        status = multiply_slab(device, stream, gemm, &slab);
        if (status == STATUS_OK && apart && (end == k || end % together == 0)) {
            status = cuda_translate(device, tiled_add(gemm, stream->cuda), "starting a kernel");
        }
        leave_driver(device);
    }
    return status;
}

static enum status scan(struct device *device, struct stream *stream, struct element_type type,
                        device_address at, ptrdiff_t count, bool *nonfinite)
{
    enter_driver(device);
    const cudaError_t error = result_scan(type, at, count, nonfinite, stream->cuda);
    leave_driver(device);
    return cuda_translate(device, error, "starting a kernel");
}

static enum status mirror(struct device *device, struct stream *stream, const struct gemm *gemm)
{
    enter_driver(device);
    const cudaError_t error = result_mirror(gemm, stream->cuda);
    leave_driver(device);
    return cuda_translate(device, error, "starting a kernel");
}

/* ---- element-wise work ---- */

static enum status compute(struct device *device, struct stream *stream,
                           const struct elementwise_work *work, uint32_t raised[RAISED_WORDS])
{
    enter_driver(device);
    const cudaError_t error = cuda_elementwise(work, raised, stream->cuda);
    leave_driver(device);
    return cuda_translate(device, error, "starting a kernel");
}

void cuda_set_work_entries(struct device *device)
{
    device->alloc = alloc;
    device->release = release;
    device->alloc_pinned = alloc_pinned;
    device->release_pinned = release_pinned;
    device->free_memory = free_memory;
    device->new_stream = new_stream;
    device->release_stream = release_stream;
    device->new_event = new_event;
    device->release_event = release_event;
    device->record = record;
    device->follow = follow;
    device->wait = wait;
    device->poll = poll;
    device->drain = drain;
    device->finish = finish;
    device->upload = upload;
    device->download = download;
    device->multiply = multiply;
    device->scan = scan;
    device->mirror = mirror;
    device->compute = compute;
}
