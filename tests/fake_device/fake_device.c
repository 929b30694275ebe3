/* The fake device. */
#include "fake_device.h"

#include "fake_stream.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST_FILLED = 1 << 16 }; /* of given memory, so that nobody takes it for zeros */

/* ---- entries; each that may fail begins with `begin` and ends with `end` ---- */

static enum status begin(struct device *device, struct fake **fake)
{
    *fake = (struct fake *)device;
    pthread_mutex_lock(&(*fake)->lock);
    if (++(*fake)->calls == (*fake)->fail_at) {
        (*fake)->lost = (*fake)->failure == STATUS_LOST;
        return (*fake)->failure;
    }
    return (*fake)->lost ? STATUS_LOST : STATUS_OK;
}

static enum status end(struct fake *fake, enum status status)
{
    pthread_mutex_unlock(&fake->lock);
    return status;
}

static bool supports(struct device *device, const struct matmul_task *task, const char **why)
{
    (void)device;
    *why = "the fake device has no cuBLAS for integers";
    return !(task->kernel == GEMM_CUBLAS && task->type.kind <= ELEMENT_INTEGER);
}

static bool is_within(const char *data, const char *first, size_t bytes)
{
    return first != NULL && data >= first && data < first + bytes;
}

/* Under the lock. */
static struct fake_memory *find_given(const struct fake *fake, const char *data)
{
    struct fake_memory *memory = fake->given;
    while (memory != NULL && !is_within(data, memory->data, memory->bytes)) {
        memory = memory->next;
    }
    return memory;
}

static enum host_memory memory_of(struct device *device, const void *data)
{
    struct fake *fake = (struct fake *)device;
    pthread_mutex_lock(&fake->lock);
    const struct fake_memory *memory = find_given(fake, data);
    const enum host_memory kind = memory != NULL ? memory->kind
                                  : is_within(data, fake->pinned, fake->pinned_bytes)
                                      ? HOST_PINNED
                                      : HOST_ORDINARY;
    pthread_mutex_unlock(&fake->lock);
    return kind;
}

static void explain(struct device *device, char *text, size_t size)
{
    snprintf(text, size, "call %ld of the fake device failed", ((struct fake *)device)->fail_at);
}

static int enter(struct device *device)
{
    (void)device;
    return 0;
}

static void leave(struct device *device, int before)
{
    (void)device, (void)before;
}

static enum status alloc(struct device *device, struct stream *stream, size_t bytes,
                         device_address *address)
{
    struct fake *fake;
    enum status status = begin(device, &fake);
    (void)stream;
    if (status == STATUS_OK && fake->used + bytes > device->memory) {
        fake_run_all(fake);
        status = fake->used + bytes > device->memory ? STATUS_NO_DEVICE_MEMORY : STATUS_OK;
    }
    char *block = status == STATUS_OK ? malloc(bytes + HEADER) : NULL;
    if (block != NULL) {
        memcpy(block, &bytes, sizeof bytes);
        memset(block + HEADER, 0xA5, bytes);
        *address = fake_address(block + HEADER);
        fake->used += bytes;
        fake->alive++;
    } else if (status == STATUS_OK) {
        status = STATUS_NO_DEVICE_MEMORY;
    }
    return end(fake, status);
}

static void release(struct device *device, struct stream *stream, device_address address)
{
    struct fake *fake = (struct fake *)device;
    if (address == 0) {
        return;
    }
    pthread_mutex_lock(&fake->lock);
    const struct operation operation = {.kind = RELEASE, .to = fake_pointer(address)};
    if (fake_put(fake, stream, &operation) != STATUS_OK) {
        fake_run_until(fake, stream, stream->count);
        fake_free(fake, operation.to);
    }
    pthread_mutex_unlock(&fake->lock);
}

static void count_released(struct device *device, const void *what)
{
    struct fake *fake = (struct fake *)device;
    pthread_mutex_lock(&fake->lock);
    fake->alive -= what != NULL;
    pthread_mutex_unlock(&fake->lock);
}

static enum status made(struct fake *fake, enum status status, const void *what)
{
    fake->alive += what != NULL;
    return end(fake, status == STATUS_OK && what == NULL ? STATUS_NO_HOST_MEMORY : status);
}

/* A forked child that touches managed memory dies, as with CUDA. */
static enum status give(struct device *device, size_t bytes, enum host_memory kind, void **given)
{
    struct fake *fake;
    const enum status status = begin(device, &fake);
    struct fake_memory *memory = status == STATUS_OK ? calloc(1, sizeof *memory) : NULL;
    void *data = MAP_FAILED;
    if (memory != NULL) {
        data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (data == MAP_FAILED) {
        free(memory);
        *given = NULL;
        return made(fake, status, NULL);
    }
    if (kind == HOST_MANAGED) {
        madvise(data, bytes, MADV_DONTFORK);
    }
    memset(data, 0xA5, bytes < MOST_FILLED ? bytes : MOST_FILLED);
    *memory = (struct fake_memory){fake->given, data, bytes, kind, false};
    fake->given = memory;
    *given = data;
    return made(fake, status, data);
}

static void take_back(struct device *device, void *data)
{
    struct fake *fake = (struct fake *)device;
    if (data == NULL) {
        return;
    }
    pthread_mutex_lock(&fake->lock);
    fake_run_all(fake);
    struct fake_memory **link = &fake->given;
    while ((*link)->data != data) {
        link = &(*link)->next;
    }
    struct fake_memory *memory = *link;
    *link = memory->next;
    fake->used -= memory->is_there ? memory->bytes : 0;
    fake->alive--;
    munmap(data, memory->bytes);
    free(memory);
    pthread_mutex_unlock(&fake->lock);
}

static enum status alloc_pinned(struct device *device, size_t bytes, void **memory)
{
    return give(device, bytes, HOST_PINNED, memory);
}

static enum status alloc_managed(struct device *device, size_t bytes, void **memory)
{
    return give(device, bytes, HOST_MANAGED, memory);
}

static enum status free_memory(struct device *device, size_t *bytes)
{
    struct fake *fake;
    const enum status status = begin(device, &fake);
    *bytes = device->memory > fake->used ? device->memory - fake->used : 0;
    return end(fake, status);
}

/* As a whole. */
static enum status move(struct device *device, struct stream *stream, const void *data,
                        size_t bytes, bool to_device)
{
    struct fake *fake;
    enum status status = begin(device, &fake);
    (void)stream;
    struct fake_memory *memory = find_given(fake, data);
    if (status == STATUS_OK && (memory == NULL || memory->kind != HOST_MANAGED ||
                                (const char *)data + bytes > memory->data + memory->bytes)) {
        status = STATUS_FAILED;
    }
    if (status == STATUS_OK && memory->is_there != to_device) {
        memory->is_there = to_device;
        fake->used = to_device ? fake->used + memory->bytes : fake->used - memory->bytes;
    }
    return end(fake, status);
}

static bool came_back(struct device *device, const void *data, size_t bytes)
{
    struct fake *fake = (struct fake *)device;
    (void)bytes;
    pthread_mutex_lock(&fake->lock);
    const struct fake_memory *memory = find_given(fake, data);
    const bool is_here = memory != NULL && !memory->is_there;
    pthread_mutex_unlock(&fake->lock);
    return is_here;
}

void fake_touch(struct device *device, const void *data)
{
    struct fake *fake = (struct fake *)device;
    pthread_mutex_lock(&fake->lock);
    struct fake_memory *memory = find_given(fake, data);
    if (memory != NULL && memory->is_there) {
        memory->is_there = false;
        fake->used -= memory->bytes;
    }
    pthread_mutex_unlock(&fake->lock);
}

static enum status new_stream(struct device *device, struct stream **made_stream)
{
    struct fake *fake;
    const enum status status = begin(device, &fake);
    struct stream *stream = status == STATUS_OK ? calloc(1, sizeof *stream) : NULL;
    if (stream != NULL) {
        stream->room = 64;
        stream->operations = malloc(stream->room * sizeof *stream->operations);
        if (stream->operations == NULL) {
            free(stream);
            return made(fake, status, NULL);
        }
        stream->next = fake->streams;
        fake->streams = stream;
        *made_stream = stream;
    }
    return made(fake, status, stream);
}

static void release_stream(struct device *device, struct stream *stream)
{
    struct fake *fake = (struct fake *)device;
    if (stream == NULL) {
        return;
    }
    pthread_mutex_lock(&fake->lock);
    fake_run_until(fake, stream, stream->count);
    struct stream **link = &fake->streams;
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    pthread_mutex_unlock(&fake->lock);
    count_released(device, stream);
    free(stream->operations);
    free(stream);
}

static enum status new_event(struct device *device, struct event **event)
{
    struct fake *fake;
    const enum status status = begin(device, &fake);
    struct event *new = status == STATUS_OK ? calloc(1, sizeof *new) : NULL;
    *event = new;
    return made(fake, status, new);
}

static void release_event(struct device *device, struct event *event)
{
    count_released(device, event);
    free(event);
}

static enum status record(struct device *device, struct event *event, struct stream *stream)
{
    struct fake *fake;
    const enum status status = begin(device, &fake);
    if (status == STATUS_OK) {
        event->stream = stream;
        event->ticket = stream->count;
    }
    return end(fake, status);
}

static enum status follow(struct device *device, struct stream *stream, struct event *event)
{
    struct fake *fake;
    enum status status = begin(device, &fake);
    if (status == STATUS_OK && event->stream != NULL) {
        const struct operation operation = {
            .kind = FOLLOW, .stream = event->stream, .ticket = event->ticket};
        status = fake_put(fake, stream, &operation);
    }
    return end(fake, status);
}

static enum status wait(struct device *device, struct event *event)
{
    struct fake *fake;
    const enum status status = begin(device, &fake);
    if (status == STATUS_OK && event->stream != NULL) {
        fake_run_until(fake, event->stream, event->ticket);
    }
    return end(fake, status);
}

static enum status poll(struct device *device, struct event *event, bool *happened)
{
    struct fake *fake;
    const enum status status = begin(device, &fake);
    if (status == STATUS_OK) {
        fake_run_some(fake);
        *happened = event->stream == NULL || event->stream->done >= event->ticket;
    }
    return end(fake, status);
}

static enum status drain(struct device *device, struct stream *stream)
{
    struct fake *fake;
    const enum status status = begin(device, &fake);
    if (status == STATUS_OK) {
        fake_run_until(fake, stream, stream->count);
    }
    return end(fake, status);
}

static enum status finish(struct device *device)
{
    struct fake *fake;
    const enum status status = begin(device, &fake);
    if (status == STATUS_OK) {
        fake_run_all(fake);
    }
    return end(fake, status);
}

static enum status put(struct device *device, struct stream *stream,
                       const struct operation *operation)
{
    struct fake *fake;
    const enum status status = begin(device, &fake);
    return end(fake, status == STATUS_OK ? fake_put(fake, stream, operation) : status);
}

static enum status upload(struct device *device, struct stream *stream, device_address to,
                          const void *from, struct copied_rows rows)
{
    return put(device, stream,
               &(struct operation){.kind = COPY,
                                   .to = fake_pointer(to),
                                   .from = from,
                                   .bytes = rows.bytes,
                                   .rows = rows.count,
                                   .to_step = rows.bytes,
                                   .from_step = rows.step});
}

static enum status download(struct device *device, struct stream *stream, void *to,
                            device_address from, struct copied_rows rows)
{
    return put(device, stream,
               &(struct operation){.kind = COPY,
                                   .to = to,
                                   .from = fake_pointer(from),
                                   .bytes = rows.bytes,
                                   .rows = rows.count,
                                   .to_step = rows.step,
                                   .from_step = rows.bytes});
}

/* What is not aligned to its elements ends a CUDA context. */
static enum status multiply(struct device *device, struct stream *stream, const struct gemm *gemm)
{
    if ((gemm->a.at | gemm->b.at | gemm->c) % gemm->type.size != 0) {
        return STATUS_LOST;
    }
    if (gemm->adds && (gemm->type.kind < ELEMENT_FLOAT || gemm->type.size == 2)) {
        return STATUS_UNSUPPORTED;
    }
    feraiseexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW); /* so may cuBLAS */
    return put(device, stream, &(struct operation){.kind = MULTIPLY, .gemm = *gemm});
}

static enum status scan(struct device *device, struct stream *stream, struct element_type type,
                        device_address at, ptrdiff_t count, bool *nonfinite)
{
    const struct gemm gemm = {.type = type, .batch = 1, .m = 1, .n = count, .c = at};
    return put(device, stream,
               &(struct operation){.kind = SCAN, .gemm = gemm, .nonfinite = nonfinite});
}

static enum status mirror(struct device *device, struct stream *stream, const struct gemm *gemm)
{
    return put(device, stream, &(struct operation){.kind = MIRROR, .gemm = *gemm});
}

/* Whether the device can use all addresses: not those of ordinary memory. Under the lock. */
static bool reaches_all(const struct fake *fake, const struct elementwise_work *work)
{
    for (int op = 0; op < ELEMENTWISE_OPERANDS; op++) {
        const char *data = fake_pointer(work->at[op]);
        if (work->at[op] != 0 && fake_address(data) != work->at[op] &&
            find_given(fake, data) == NULL && !is_within(data, fake->pinned, fake->pinned_bytes)) {
            return false;
        }
    }
    return true;
}

static enum status compute(struct device *device, struct stream *stream,
                           const struct elementwise_work *work, uint32_t raised[RAISED_WORDS])
{
    struct fake *fake = (struct fake *)device;
    pthread_mutex_lock(&fake->lock);
    const bool reaches = reaches_all(fake, work);
    pthread_mutex_unlock(&fake->lock);
    if (!reaches) {
        return STATUS_LOST;
    }
    return put(device, stream,
               &(struct operation){.kind = COMPUTE, .work = *work, .raised = raised});
}

/* ---- making one ---- */

struct device *fake_new(size_t memory)
{
    static _Atomic uint64_t devices; /* no two execute their streams alike */
    struct fake *fake = calloc(1, sizeof *fake);
    if (fake == NULL) {
        return NULL;
    }
    pthread_mutex_init(&fake->lock, NULL);
    fake->random = devices++ * 0x9E3779B97F4A7C15;
    fake->device = (struct device){
        .name = "fake",
        .model = "fake",
        .memory = memory,
        .supports = supports,
        .memory_of = memory_of,
        .explain = explain,
        .enter = enter,
        .leave = leave,
        .alloc = alloc,
        .release = release,
        .alloc_pinned = alloc_pinned,
        .release_pinned = take_back,
        .alloc_managed = alloc_managed,
        .release_managed = take_back,
        .free_memory = free_memory,
        .new_stream = new_stream,
        .release_stream = release_stream,
        .new_event = new_event,
        .release_event = release_event,
        .record = record,
        .follow = follow,
        .wait = wait,
        .poll = poll,
        .drain = drain,
        .finish = finish,
        .upload = upload,
        .download = download,
        .move = move,
        .came_back = came_back,
        .multiply = multiply,
        .scan = scan,
        .mirror = mirror,
        .compute = compute,
    };
    return &fake->device;
}

void fake_delete(struct device *device)
{
    if (device != NULL) {
        pthread_mutex_destroy(&((struct fake *)device)->lock);
        free(device);
    }
}

void fake_fail(struct device *device, long call, enum status status)
{
    struct fake *fake = (struct fake *)device;
    pthread_mutex_lock(&fake->lock);
    fake->fail_at = call > 0 ? fake->calls + call : 0;
    fake->failure = status;
    fake->lost = false;
    pthread_mutex_unlock(&fake->lock);
}

long fake_calls(const struct device *device)
{
    return ((const struct fake *)device)->calls;
}

long fake_alive(const struct device *device)
{
    return ((const struct fake *)device)->alive;
}

void fake_pin(struct device *device, const void *data, size_t bytes)
{
    struct fake *fake = (struct fake *)device;
    fake->pinned = data;
    fake->pinned_bytes = bytes;
}
