/* Managed memory, and where its pages are. The driver tells nobody; but a page that is on the GPU is not mapped
 * for the processor, as mincore() finds in less than a microsecond. */
#include "cuda_managed.h"

#include "cuda_error.h"
#include "cuda_state.h"

#include <sys/mman.h>
#include <unistd.h>

/* Of more pages than PAGES_ASKED two are asked for, in the two halves of what lies between the ends, which are read for
 * other reasons, to be printed: what reads half of the memory is found out. Each call asks for pages elsewhere. */
enum {
    PAGES_ASKED = 16,
    SAMPLES = 2,
    END = 16,           /* an end is this part of the pages */
    PLACES = 1 << 16,   /* in a half */
    NEXT_PLACE = 40503, /* their golden section: far from the places before */
};

static bool any_is_mapped(uintptr_t first, size_t pages, size_t page_bytes)
{
    unsigned char mapped[PAGES_ASKED];
    bool any = false;
    if (mincore((void *)first, pages * page_bytes, mapped) == 0) {
        for (size_t i = 0; i < pages; i++) {
            any = any || (mapped[i] & 1) != 0;
        }
    }
    return any;
}

static bool is_with_processor(const void *data, size_t bytes)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)data / page_bytes * page_bytes;
    const size_t pages = ((uintptr_t)data + bytes - first + page_bytes - 1) / page_bytes;
    if (pages <= PAGES_ASKED) {
        return any_is_mapped(first, pages, page_bytes);
    }
    static _Atomic unsigned calls;
    const size_t part = (pages - 2 * (pages / END)) / SAMPLES;
    const size_t place = calls++ * (unsigned)NEXT_PLACE % PLACES;
    bool any = false;
    for (size_t i = 0; i < SAMPLES && !any; i++) {
        const size_t page = pages / END + i * part + part * place / PLACES;
        any = any_is_mapped(first + page * page_bytes, 1, page_bytes);
    }
    return any;
}

static bool came_back(struct device *device, const void *data, size_t bytes)
{
    return ((struct cuda_device *)device)->tells_pages && is_with_processor(data, bytes);
}

static cudaError_t prefetch(const struct device *device, const void *data, size_t bytes,
                            bool to_device, cudaStream_t stream)
{
    const int ordinal = ((const struct cuda_device *)device)->ordinal;
#if CUDART_VERSION >= 13000
    const struct cudaMemLocation to = {
        .type = to_device ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost,
        .id = to_device ? ordinal : 0,
    };
    return cudaMemPrefetchAsync(data, bytes, to, 0, stream);
#else
    return cudaMemPrefetchAsync(data, bytes, to_device ? ordinal : cudaCpuDeviceId, stream);
#endif
}

static enum status move(struct device *device, struct stream *stream, const void *data,
                        size_t bytes, bool to_device)
{
    return cuda_translate(device, prefetch(device, data, bytes, to_device, stream->cuda),
                          "moving managed memory");
}

/* Where the GPU's memory is memory of the system, pages stay mapped wherever they are. Tried with memory that
 * nobody uses yet. */
static bool tells_pages(const struct device *device, void *memory)
{
    cudaStream_t stream;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) {
        cudaGetLastError();
        return false;
    }
    *(volatile char *)memory = 0;
    const bool was_here = is_with_processor(memory, 1);
    cudaError_t error = prefetch(device, memory, 1, true, stream);
    if (error == cudaSuccess) {
        error = cudaStreamSynchronize(stream);
    }
    if (error != cudaSuccess) {
        cudaGetLastError();
    }
    cudaStreamDestroy(stream);
    return error == cudaSuccess && was_here && !is_with_processor(memory, 1);
}

static enum status alloc_managed(struct device *device, size_t bytes, void **memory)
{
    struct cuda_device *cuda = (struct cuda_device *)device;
    *memory = NULL;
    const cudaError_t error = cudaMallocManaged(memory, bytes, cudaMemAttachGlobal);
    if (error == cudaSuccess && !cuda->tells_pages) {
        cuda->tells_pages = tells_pages(device, *memory);
    }
    return cuda_translate(device, error, "allocating managed memory");
}

static void release_managed(struct device *device, void *memory)
{
    (void)device;
    cudaFree(memory);
}

void cuda_set_managed_entries(struct device *device)
{
    device->alloc_managed = alloc_managed;
    device->release_managed = release_managed;
    device->move = move;
    device->came_back = came_back;
}
