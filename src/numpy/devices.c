/* A device is started by the first call that needs it. */
#include "devices.h"

#include "dtypes.h"
#include "numpy_api.h"

#include "device/device_cutoffs.h"
#include "policy_in_use.h"
#include "threads/clock.h"
#include "threads/limit.h"
#include "threads/quiet_thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct device_entry {
    _Atomic int state;
    struct device *device;
    struct pipeline *pipeline;
    char name[32]; /* "cuda:1" */
    char reason[REASON_BYTES];
} entries[DEVICES];

/* Of all entries but their states and names. Nobody waits for the GIL under it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t memory_limit;
static _Atomic bool in_use;

bool device_has_type(int type, struct element_type *element)
{
    const struct dtype dtype = dtype_of(type);
    element->size = dtype.size;
    element->kind = dtype.kind == 'b'        ? ELEMENT_BOOL
                    : dtype_is_integer(type) ? ELEMENT_INTEGER
                    : dtype.kind == 'c'      ? ELEMENT_COMPLEX
                                             : ELEMENT_FLOAT;
    return dtype_is_number(type) && type != NPY_LONGDOUBLE && type != NPY_CLONGDOUBLE;
}

enum device_state device_state(int number)
{
    return (enum device_state)entries[number].state;
}

const char *device_name(int number)
{
    return entries[number].name;
}

static int count_devices(const struct device_library *library, char *why, size_t size)
{
    pthread_mutex_lock(&lock);
    in_use = true;
    const int count = library->count(why, size);
    pthread_mutex_unlock(&lock);
    return count < MOST_OF_A_KIND ? count : MOST_OF_A_KIND;
}

/* Whether it is one of the `count` of its kind; otherwise, if there are any, `why` names the last. */
static bool is_among(int number, int count, char *why, size_t size)
{
    const int ordinal = number % MOST_OF_A_KIND;
    if (count > 0 && count <= ordinal) {
        snprintf(why, size, "the last one here is '%s'", device_name(number - ordinal + count - 1));
    }
    return count > ordinal;
}

/* Under the lock. */
static void set_reason(struct device_entry *entry, enum device_state state, const char *reason)
{
    snprintf(entry->reason, sizeof entry->reason, "%s", reason);
    entry->state = (int)state;
}

static bool has_device(int number)
{
    pthread_mutex_lock(&lock);
    const bool has = entries[number].device != NULL;
    pthread_mutex_unlock(&lock);
    return has;
}

/* Under the lock. `library` may be NULL if the device was open when the caller looked. False: there is a reason
 * now why the device is not up. */
static bool open_device(int number, const struct device_library *library,
                        const struct blas_paths *paths)
{
    struct device_entry *entry = &entries[number];
    char why[REASON_BYTES] = "";
    if (entry->device == NULL && library == NULL) {
        set_reason(entry, DEVICE_UNAVAILABLE, "it was taken away");
        return false;
    }
    if (entry->device == NULL && library->open(number % MOST_OF_A_KIND, paths->list, &entry->device,
                                               why, sizeof why) != STATUS_OK) {
        entry->device = NULL;
        set_reason(entry, DEVICE_UNAVAILABLE, why);
        return false;
    }
    entry->device->number = number;
    if (entry->pipeline == NULL) {
        entry->pipeline = pipeline_new(entry->device, memory_limit);
    }
    if (entry->pipeline == NULL) {
        set_reason(entry, DEVICE_UNAVAILABLE, "out of host memory");
    }
    return entry->pipeline != NULL;
}

/* Whether there is such a device; otherwise `why` says why not, or is "" with an exception. */
static bool find_device(int number, const struct device_library **library, struct blas_paths *paths,
                        char *why, size_t size)
{
    const int kind = number / MOST_OF_A_KIND;
    *library = device_library_load(kind, why, size);
    const int count = *library != NULL ? count_devices(*library, why, size) : 0;
    return is_among(number, count, why, size) && device_library_find_blas(kind, paths);
}

enum device_state device_start(int number, bool again)
{
    struct device_entry *entry = &entries[number];
    const enum device_state state = device_state(number);
    if (state == DEVICE_UP || state == DEVICE_GONE || (state == DEVICE_UNAVAILABLE && !again)) {
        return state;
    }
    const struct device_library *library = NULL;
    struct blas_paths paths;
    char why[REASON_BYTES] = "";
    const bool found = has_device(number) || find_device(number, &library, &paths, why, sizeof why);
    pthread_mutex_lock(&lock);
    if (entry->state == (int)state) { /* no other thread has changed it */
        if (found) {
            if (open_device(number, library, &paths)) {
                entry->state = DEVICE_UP;
            }
        } else if (why[0] != '\0') {
            set_reason(entry, DEVICE_UNAVAILABLE, why);
        }
    }
    pthread_mutex_unlock(&lock);
    return device_state(number);
}

/* ---- in the background, while calls go on ---- */

static struct {
    int number;
    const struct device_library *library;
    struct blas_paths paths;
    pthread_t thread;
    _Atomic bool is_taken, has_thread;
} starter;

/* What the first product makes for those that follow: a handle of the vendor's BLAS, rings, kernels that are
 * loaded when they are used. Whatever comes of it. Its own product runs on this thread alone: callers leave it
 * one processor, not more. */
static void warm_up(struct pipeline *pipeline)
{
    enum { SIDE = 512, SIZE = sizeof(double), BYTES = SIDE * SIDE * SIZE };
    char *data = calloc(3, BYTES);
    const struct matmul_task task = {
        .policy = &policy_in_use,
        .type = {ELEMENT_FLOAT, SIZE},
        .precision = PRECISION_IEEE,
        .kernel = GEMM_AUTO,
        .product = {.batch = 1,
                    .m = SIDE,
                    .n = SIDE,
                    .k = SIDE,
                    .a = {data, BYTES, SIDE * SIZE, SIZE},
                    .b = {data + BYTES, BYTES, SIDE * SIZE, SIZE},
                    .c = {data + 2 * BYTES, BYTES, SIDE * SIZE, SIZE}},
    };
    struct pipeline_report report;
    pipeline_prepare(pipeline);
    threads_set_for_this_thread(1);
    if (data != NULL) {
        pipeline_matmul(pipeline, &task, &report);
    }
    free(data);
}

static void *start_in_background(void *unused)
{
    (void)unused;
    struct device_entry *entry = &entries[starter.number];
    /* Until the thread sleeps that products leave out, this one would share the processor of another, for which the
     * product then waits. */
    if (threads_cpus() >= LEAST_SPARING_CPUS) {
        clock_sleep_ms(BLAS_SPINS_MS);
    }
    char why[REASON_BYTES] = "";
    const bool is_there =
        starter.library == NULL ||
        is_among(starter.number, count_devices(starter.library, why, sizeof why), why, sizeof why);
    pthread_mutex_lock(&lock);
    if (entry->state == DEVICE_UNUSED && !is_there) {
        set_reason(entry, DEVICE_UNAVAILABLE, why);
    } else if (entry->state == DEVICE_UNUSED &&
               open_device(starter.number, starter.library, &starter.paths)) {
        warm_up(entry->pipeline);
        entry->state = DEVICE_UP;
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

enum device_state device_start_in_background(int number, char *why, size_t size)
{
    const int kind = number / MOST_OF_A_KIND;
    bool is_taken = false;
    snprintf(why, size, "the device is being started");
    if (device_state(number) != DEVICE_UNUSED ||
        !atomic_compare_exchange_strong(&starter.is_taken, &is_taken, true)) {
        return device_state(number);
    }
    const bool is_open = has_device(number);
    why[0] = '\0';
    starter.number = number;
    starter.library = is_open ? NULL : device_library_load(kind, why, size);
    const bool found =
        is_open || (starter.library != NULL && device_library_find_blas(kind, &starter.paths));
    in_use = in_use || found;
    if (found && quiet_thread_create(&starter.thread, NULL, start_in_background, NULL)) {
        starter.has_thread = true;
        snprintf(why, size, "the device is being started");
        return DEVICE_UNUSED;
    }
    starter.is_taken = false;
    if (!found && why[0] != '\0') {
        pthread_mutex_lock(&lock);
        set_reason(&entries[number], DEVICE_UNAVAILABLE, why);
        pthread_mutex_unlock(&lock);
    }
    return found ? device_start(number, false) : device_state(number);
}

bool device_is_being_started(void)
{
    return starter.has_thread && device_state(starter.number) == DEVICE_UNUSED;
}

void devices_settle(void)
{
    if (starter.has_thread) {
        pthread_join(starter.thread, NULL);
        starter.has_thread = starter.is_taken = false;
    }
}

struct pipeline *device_pipeline(int number)
{
    return entries[number].pipeline;
}

struct device *device_of(int number)
{
    return entries[number].device;
}

void device_reason(int number, char *reason, size_t size)
{
    pthread_mutex_lock(&lock);
    snprintf(reason, size, "%s", entries[number].reason);
    pthread_mutex_unlock(&lock);
}

bool device_give_up(int number, const char *reason)
{
    pthread_mutex_lock(&lock);
    const bool first = entries[number].state == DEVICE_UP;
    if (first) {
        set_reason(&entries[number], DEVICE_GONE, reason);
    }
    pthread_mutex_unlock(&lock);
    return first;
}

/* No device survives a fork: the child must not touch what the parent has started. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    starter.has_thread = starter.is_taken = false;
    for (int i = 0; i < DEVICES && in_use; i++) {
        set_reason(&entries[i], DEVICE_GONE, "the process was forked from one that uses a device");
    }
}

int devices_initialize(size_t memory)
{
    memory_limit = memory;
    for (int i = 0; i < DEVICES; i++) {
        snprintf(entries[i].name, sizeof entries[i].name, "%s:%d", device_kinds[i / MOST_OF_A_KIND],
                 i % MOST_OF_A_KIND);
    }
    pthread_atfork(NULL, NULL, after_fork_in_child);
    /* The driver must not be taken down while a thread starts it. */
    return Py_AtExit(devices_settle);
}

size_t devices_memory_limit(void)
{
    return memory_limit;
}

int devices_describe(int kind, char text[MOST_OF_A_KIND][256], char *why, size_t size)
{
    int count = 0;
    if (device_state(kind * MOST_OF_A_KIND) == DEVICE_GONE) {
        device_reason(kind * MOST_OF_A_KIND, why, size);
        return 0;
    }
    Py_BEGIN_ALLOW_THREADS;
    const struct device_library *library = device_library_load(kind, why, size);
    count = library != NULL ? count_devices(library, why, size) : 0;
    for (int i = 0; i < count; i++) {
        library->describe(i, text[i], sizeof text[i]);
    }
    Py_END_ALLOW_THREADS;
    return PyErr_Occurred() ? -1 : count;
}

bool device_is_usable(int number, char *why, size_t size)
{
    if (device_state(number) == DEVICE_GONE) {
        device_reason(number, why, size);
        return false;
    }
    if (has_device(number)) {
        return true;
    }
    int count;
    Py_BEGIN_ALLOW_THREADS;
    const struct device_library *library = device_library_load(number / MOST_OF_A_KIND, why, size);
    count = library != NULL ? count_devices(library, why, size) : 0;
    Py_END_ALLOW_THREADS;
    return is_among(number, count, why, size);
}

void devices_replace(struct device *device, bool is_up)
{
    struct device_entry *entry = &entries[0];
    devices_settle();
    pthread_mutex_lock(&lock);
    pipeline_delete(entry->pipeline);
    entry->pipeline = device != NULL ? pipeline_new(device, memory_limit) : NULL;
    entry->device = device;
    entry->state = entry->pipeline != NULL && is_up ? DEVICE_UP : DEVICE_UNUSED;
    in_use = entry->pipeline != NULL;
    pthread_mutex_unlock(&lock);
}
