/* Memory, queues, events and copies. */
#include "cuda_device.h"

#include <stdlib.h>

static cudaEvent_t event_of(struct event *event)
{
    return (cudaEvent_t)event;
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
    return cuda_translate(device, error, "allocating device memory");
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
    const enum status status = cuda_translate(
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
        cuda_translate(device, cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking),
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

static enum status record(struct device *device, struct event *event, struct queue *queue)
{
    return cuda_translate(device, cudaEventRecord(event_of(event), queue->stream),
                          "recording an event");
}

static enum status follow(struct device *device, struct queue *queue, struct event *event)
{
    return cuda_translate(device, cudaStreamWaitEvent(queue->stream, event_of(event), 0),
                          "waiting for an event");
}

static enum status wait(struct device *device, struct event *event)
{
    return cuda_translate(device, cudaEventSynchronize(event_of(event)), "waiting for the GPU");
}

static enum status poll(struct device *device, struct event *event, bool *happened)
{
    const cudaError_t error = cudaEventQuery(event_of(event));
    *happened = error == cudaSuccess;
    return error == cudaErrorNotReady ? STATUS_OK : cuda_translate(device, error, "asking the GPU");
}

static enum status drain(struct device *device, struct queue *queue)
{
    return cuda_translate(device, cudaStreamSynchronize(queue->stream), "waiting for the GPU");
}

/* ---- copies ---- */

static enum status upload(struct device *device, struct queue *queue, device_address to,
                          const void *from, size_t bytes)
{
    return cuda_translate(
        device, cudaMemcpyAsync((void *)to, from, bytes, cudaMemcpyHostToDevice, queue->stream),
        "copying to the GPU");
}

static enum status download(struct device *device, struct queue *queue, void *to,
                            device_address from, size_t bytes)
{
    return cuda_translate(
        device,
        cudaMemcpyAsync(to, (const void *)from, bytes, cudaMemcpyDeviceToHost, queue->stream),
        "copying from the GPU");
}

void cuda_set_work_entries(struct device *device)
{
    device->alloc = alloc;
    device->release = release;
    device->alloc_pinned = alloc_pinned;
    device->release_pinned = release_pinned;
    device->new_queue = new_queue;
    device->release_queue = release_queue;
    device->new_event = new_event;
    device->release_event = release_event;
    device->record = record;
    device->follow = follow;
    device->wait = wait;
    device->poll = poll;
    device->drain = drain;
    device->upload = upload;
    device->download = download;
    device->multiply = cuda_multiply;
}
