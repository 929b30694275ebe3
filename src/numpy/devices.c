/* A device is started by the first call that needs it. */
#include "devices.h"

#include "cuda_library.h"
#include "numpy_api.h"

#include <pthread.h>
#include <stdio.h>

static struct device_entry {
    _Atomic int state;
    struct device *device;
    struct pipeline *pipeline;
    char reason[REASON_BYTES];
} entries[MOST_DEVICES];

/* Of all entries but their states. Nobody waits for the GIL under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t memory_limit;
static _Atomic bool cuda_in_use;

enum device_state device_state(int ordinal)
{
    return (enum device_state)entries[ordinal].state;
}

static int count_devices(const struct cuda_library *library, char *why, size_t size)
{
    pthread_mutex_lock(&lock);
    cuda_in_use = true;
    const int count = library->count(why, size);
    pthread_mutex_unlock(&lock);
    return count < MOST_DEVICES ? count : MOST_DEVICES;
}

static void explain_number(int ordinal, int count, char *why, size_t size)
{
    snprintf(why, size, "there %s only %d CUDA device%s, the last one is 'cuda:%d', not 'cuda:%d'",
             count == 1 ? "is" : "are", count, count == 1 ? "" : "s", count - 1, ordinal);
}

/* Under the lock. */
static void set_reason(struct device_entry *entry, enum device_state state, const char *reason)
{
    snprintf(entry->reason, sizeof entry->reason, "%s", reason);
    entry->state = (int)state;
}

static bool has_device(int ordinal)
{
    pthread_mutex_lock(&lock);
    const bool has = entries[ordinal].device != NULL;
    pthread_mutex_unlock(&lock);
    return has;
}

/* Under the lock. `library` may be NULL if the device was open when the caller looked. */
static void open_device(int ordinal, const struct cuda_library *library,
                        const struct cublas_paths *paths)
{
    struct device_entry *entry = &entries[ordinal];
    char why[REASON_BYTES] = "";
    if (entry->device == NULL && library == NULL) {
        set_reason(entry, DEVICE_UNAVAILABLE, "it was taken away");
        return;
    }
    if (entry->device == NULL &&
        library->open(ordinal, paths->list, &entry->device, why, sizeof why) != STATUS_OK) {
        entry->device = NULL;
        set_reason(entry, DEVICE_UNAVAILABLE, why);
        return;
    }
    if (entry->pipeline == NULL) {
        entry->pipeline = pipeline_new(entry->device, memory_limit);
    }
    if (entry->pipeline != NULL) {
        entry->state = DEVICE_UP;
    } else {
        set_reason(entry, DEVICE_UNAVAILABLE, "out of host memory");
    }
}

/* Whether there is such a device; otherwise `why` says why not, or is "" with an exception. */
static bool find_device(int ordinal, const struct cuda_library **library,
                        struct cublas_paths *paths, char *why, size_t size)
{
    *library = cuda_library_load(why, size);
    const int count = *library != NULL ? count_devices(*library, why, size) : 0;
    if (count > 0 && count <= ordinal) {
        explain_number(ordinal, count, why, size);
    }
    return count > ordinal && cuda_library_find_cublas(paths);
}

enum device_state device_start(int ordinal, bool again)
{
    struct device_entry *entry = &entries[ordinal];
    const enum device_state state = device_state(ordinal);
    if (state == DEVICE_UP || state == DEVICE_GONE || (state == DEVICE_UNAVAILABLE && !again)) {
        return state;
    }
    const struct cuda_library *library = NULL;
    struct cublas_paths paths;
    char why[REASON_BYTES] = "";
    const bool found =
        has_device(ordinal) || find_device(ordinal, &library, &paths, why, sizeof why);
    pthread_mutex_lock(&lock);
    if (entry->state == (int)state) { /* no other thread has changed it */
        if (found) {
            open_device(ordinal, library, &paths);
        } else if (why[0] != '\0') {
            set_reason(entry, DEVICE_UNAVAILABLE, why);
        }
    }
    pthread_mutex_unlock(&lock);
    return device_state(ordinal);
}

struct pipeline *device_pipeline(int ordinal)
{
    return entries[ordinal].pipeline;
}

struct device *device_of(int ordinal)
{
    return entries[ordinal].device;
}

void device_reason(int ordinal, char *reason, size_t size)
{
    pthread_mutex_lock(&lock);
    snprintf(reason, size, "%s", entries[ordinal].reason);
    pthread_mutex_unlock(&lock);
}

bool device_give_up(int ordinal, const char *reason)
{
    pthread_mutex_lock(&lock);
    const bool first = entries[ordinal].state == DEVICE_UP;
    if (first) {
        set_reason(&entries[ordinal], DEVICE_GONE, reason);
    }
    pthread_mutex_unlock(&lock);
    return first;
}

/* CUDA does not survive a fork: the child must not touch what the parent has started. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    for (int i = 0; i < MOST_DEVICES && cuda_in_use; i++) {
        set_reason(&entries[i], DEVICE_GONE, "the process was forked from one that uses CUDA");
    }
}

int devices_initialize(size_t memory)
{
    memory_limit = memory;
    pthread_atfork(NULL, NULL, after_fork_in_child);
    return 0;
}

int devices_list(char name[MOST_DEVICES][256], char *why, size_t size)
{
    int count = 0;
    if (device_state(0) == DEVICE_GONE) {
        device_reason(0, why, size);
        return 0;
    }
    Py_BEGIN_ALLOW_THREADS;
    const struct cuda_library *library = cuda_library_load(why, size);
    count = library != NULL ? count_devices(library, why, size) : 0;
    for (int i = 0; i < count; i++) {
        library->describe(i, name[i], sizeof name[i]);
    }
    Py_END_ALLOW_THREADS;
    return PyErr_Occurred() ? -1 : count;
}

bool device_is_usable(int ordinal, char *why, size_t size)
{
    if (device_state(ordinal) == DEVICE_GONE) {
        device_reason(ordinal, why, size);
        return false;
    }
    if (has_device(ordinal)) {
        return true;
    }
    int count;
    Py_BEGIN_ALLOW_THREADS;
    const struct cuda_library *library = cuda_library_load(why, size);
    count = library != NULL ? count_devices(library, why, size) : 0;
    Py_END_ALLOW_THREADS;
    if (count > 0 && count <= ordinal) {
        explain_number(ordinal, count, why, size);
    }
    return count > ordinal;
}

void devices_replace(struct device *device, bool is_up)
{
    struct device_entry *entry = &entries[0];
    pthread_mutex_lock(&lock);
    pipeline_delete(entry->pipeline);
    entry->pipeline = device != NULL ? pipeline_new(device, memory_limit) : NULL;
    entry->device = device;
    entry->state = entry->pipeline != NULL && is_up ? DEVICE_UP : DEVICE_UNUSED;
    cuda_in_use = entry->pipeline != NULL;
    pthread_mutex_unlock(&lock);
}
