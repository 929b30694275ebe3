/* Never more managed memory than the device has room for: beyond that, pages move in and out at every call. */
#include "device_memory.h"

#include "device/last_use.h"
#include "devices.h"
#include "memory/kept_blocks.h"

#include <pthread.h>
#include <stdio.h>

enum { FIRST = 0 }; /* the device whose memory it is; pinned memory serves all */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static size_t managed; /* bytes that were taken and not given back */
static size_t others;  /* bytes of the device that others had before the first of them */
static char problem[2 * REASON_BYTES];

static _Atomic bool has_ended;
_Atomic bool device_memory_in_use;

/* ---- the source of kept blocks ---- */

/* How much may be managed in all. Pages of ours that lie on the device are not free, those elsewhere are. */
static size_t most_managed(const struct device *device)
{
    const size_t limit = devices_memory_limit();
    const size_t room = device->memory > others ? device->memory - others : 0;
    return limit != 0 && limit < room ? limit : room;
}

/* Under the lock. */
static enum status take_managed(struct device *device, size_t bytes, void **data)
{
    size_t is_free = 0;
    enum status status = device->free_memory(device, &is_free);
    if (status != STATUS_OK) {
        return status;
    }
    if (managed == 0) {
        others = device->memory > is_free ? device->memory - is_free : 0;
    }
    const size_t most = most_managed(device);
    if (bytes > is_free || bytes > most || managed > most - bytes) {
        snprintf(problem, sizeof problem,
                 "%zu bytes do not fit into the device's memory: %zu are free, and %zu are managed "
                 "already of %zu that may be",
                 bytes, is_free, managed, most);
        return STATUS_NO_DEVICE_MEMORY;
    }
    problem[0] = '\0';
    status = device->alloc_managed(device, bytes, data);
    managed += status == STATUS_OK ? bytes : 0;
    return status;
}

/* Under the lock. */
static void explain_failure(struct device *device, enum status status, size_t bytes)
{
    char text[256] = "";
    if (problem[0] != '\0' && status == STATUS_NO_DEVICE_MEMORY) {
        return;
    }
    device->explain(device, text, sizeof text);
    snprintf(problem, sizeof problem, "%zu bytes were refused: %s", bytes, text);
    if (status == STATUS_LOST) {
        device_give_up(FIRST, problem);
    }
}

static void *take(enum kept_kind kind, size_t bytes)
{
    void *data = NULL;
    if (!device_memory_is_there()) {
        return NULL;
    }
    struct device *device = device_of(FIRST);
    const int before = device->enter(device);
    pthread_mutex_lock(&lock);
    problem[0] = '\0';
    const enum status status = kind == KEPT_PINNED ? device->alloc_pinned(device, bytes, &data)
                                                   : take_managed(device, bytes, &data);
    if (status != STATUS_OK) {
        data = NULL;
        explain_failure(device, status, bytes);
    } else if (kind == KEPT_MANAGED) {
        last_use_note(extent_of(data, bytes, 0, NULL, NULL), NULL);
    }
    pthread_mutex_unlock(&lock);
    device->leave(device, before);
    return data;
}

static void give_back(enum kept_kind kind, void *data, size_t bytes)
{
    if (!device_memory_is_there()) {
        return;
    }
    struct device *device = device_of(FIRST);
    const int before = device->enter(device);
    if (kind == KEPT_PINNED) {
        device->release_pinned(device, data);
    } else {
        device->release_managed(device, data);
        pthread_mutex_lock(&lock);
        managed -= bytes;
        pthread_mutex_unlock(&lock);
    }
    device->leave(device, before);
}

/* ---- whether there is any ---- */

static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    managed = 0;
}

static void set_source(void)
{
    static bool is_set;
    static const struct kept_source source = {take, give_back};
    if (!is_set) {
        kept_set_source(&source);
        pthread_atfork(NULL, NULL, after_fork_in_child);
        is_set = true;
    }
}

bool device_memory_start(enum host_memory kind, char *why, size_t size)
{
    enum device_state state;
    why[0] = '\0';
    Py_BEGIN_ALLOW_THREADS;
    state = device_start(FIRST, true);
    Py_END_ALLOW_THREADS;
    if (state != DEVICE_UP) {
        device_reason(FIRST, why, size);
        return false;
    }
    const struct device *device = device_of(FIRST);
    if (kind == HOST_MANAGED && device->no_managed != NULL) {
        snprintf(why, size, "%s", device->no_managed);
        return false;
    }
    set_source();
    return true;
}

bool device_memory_is_there(void)
{
    return device_state(FIRST) == DEVICE_UP && !has_ended;
}

void device_memory_problem(char *why, size_t size)
{
    pthread_mutex_lock(&lock);
    snprintf(why, size, "%s", problem);
    problem[0] = '\0';
    pthread_mutex_unlock(&lock);
}

void device_memory_end(void)
{
    has_ended = true;
}

void device_memory_abandon(void)
{
    kept_release();
    kept_abandon_devices();
    last_use_forget();
    pthread_mutex_lock(&lock);
    managed = 0;
    pthread_mutex_unlock(&lock);
}

enum status device_memory_move(const void *data, size_t bytes, bool to_device, char *why,
                               size_t size)
{
    if (!device_memory_is_there()) {
        device_reason(FIRST, why, size);
        return STATUS_UNAVAILABLE;
    }
    struct device *device = device_of(FIRST);
    struct stream *stream = NULL;
    const int before = device->enter(device);
    enum status status = device->new_stream(device, &stream);
    if (status == STATUS_OK) {
        status = device->move(device, stream, data, bytes, to_device);
    }
    if (status == STATUS_OK) {
        status = device->drain(device, stream);
    }
    if (status == STATUS_OK) {
        last_use_note(extent_of(data, bytes, 0, NULL, NULL), to_device ? device : NULL);
    } else {
        device->explain(device, why, size);
    }
    device->release_stream(device, stream);
    device->leave(device, before);
    return status;
}

void device_memory_finish(void)
{
    if (device_memory_is_there()) {
        struct device *device = device_of(FIRST);
        const int before = device->enter(device);
        device->finish(device); /* after a failure nothing computes any more */
        device->leave(device, before);
    }
}

enum host_memory device_memory_of(const void *data)
{
    const int kind = kept_device_kind(data);
    if (kind != 0) {
        return kind == KEPT_PINNED ? HOST_PINNED : HOST_MANAGED;
    }
    if (!device_memory_is_there()) {
        return HOST_ORDINARY;
    }
    struct device *device = device_of(FIRST);
    const int before = device->enter(device);
    const enum host_memory memory = device->memory_of(device, data);
    device->leave(device, before);
    return memory;
}
