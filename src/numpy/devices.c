/* Loads the library that knows CUDA when a device is asked for first, never before. */
#include "devices.h"

#include "numpy_api.h"

#include "device/cuda/entry.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PATHS = 8, PATH_BYTES = 1024, REASON_BYTES = 400 };

struct slot {
    _Atomic int state;
    struct device *device;
    struct pipeline *pipeline;
    char reason[REASON_BYTES];
};

struct choice device_choice;
_Thread_local struct pipeline_times device_times;

static struct slot slots[MOST_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* nobody waits for the GIL under it */
static size_t memory_limit;
static const struct cuda_library *library;
static _Atomic bool cuda_in_use;

/* ---- the library ---- */

static bool copy_path(PyObject *path, char to[PATH_BYTES])
{
    const char *text = PyUnicode_AsUTF8(path);
    if (text == NULL || strlen(text) >= PATH_BYTES) {
        return false;
    }
    strcpy(to, text);
    return true;
}

/* What `function` of _cuda.py returns, with the GIL. NULL: `why` says what went wrong. */
static PyObject *ask_python(const char *function, char *why, size_t size)
{
    PyObject *module = PyImport_ImportModule("numc_ufuncs._cuda");
    PyObject *found = module != NULL ? PyObject_CallMethod(module, function, NULL) : NULL;
    Py_XDECREF(module);
    if (found == NULL) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyObject *text = value != NULL ? PyObject_Str(value) : NULL;
        const char *utf8 = text != NULL ? PyUnicode_AsUTF8(text) : NULL;
        snprintf(why, size, "%s", utf8 != NULL ? utf8 : "the libraries cannot be looked for");
        Py_XDECREF(text);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        PyErr_Clear();
    }
    return found;
}

static bool find_library(char path[PATH_BYTES], char *why, size_t size)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *found = ask_python("library", why, size);
    const bool right = found != NULL && copy_path(found, path);
    if (right && path[0] == '\0') {
        snprintf(why, size, "this installation was built without CUDA");
    }
    Py_XDECREF(found);
    PyErr_Clear();
    PyGILState_Release(gil);
    return right && path[0] != '\0';
}

/* Where cuBLAS may be: nowhere, if Python cannot say. */
struct paths {
    char path[MOST_PATHS][PATH_BYTES];
    const char *list[MOST_PATHS + 1];
};

static void find_cublas(struct paths *paths)
{
    char why[REASON_BYTES];
    int count = 0;
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *found = ask_python("cublas", why, sizeof why);
    if (found != NULL && PyList_Check(found)) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found) && count < MOST_PATHS; i++) {
            if (copy_path(PyList_GET_ITEM(found, i), paths->path[count])) {
                paths->list[count] = paths->path[count];
                count++;
            }
        }
    }
    paths->list[count] = NULL;
    Py_XDECREF(found);
    PyErr_Clear();
    PyGILState_Release(gil);
}

/* Under the lock. */
static bool load_library(const char *path, char *why, size_t size)
{
    if (library != NULL) {
        return true;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle != NULL ? dlsym(handle, CUDA_ENTRY) : NULL;
    if (symbol == NULL) {
        snprintf(why, size, "%s", dlerror());
        return false;
    }
    cuda_entry *entry;
    memcpy(&entry, &symbol, sizeof entry);
    library = entry(DEVICE_VERSION);
    if (library == NULL) {
        snprintf(why, size, "%s belongs to another version", path);
    }
    return library != NULL;
}

/* How many devices there are; if none, `why` says so. */
static int count_devices(char *why, size_t size)
{
    char path[PATH_BYTES];
    if (!find_library(path, why, size)) {
        return 0;
    }
    int count = 0;
    pthread_mutex_lock(&lock);
    if (load_library(path, why, size)) {
        cuda_in_use = true;
        count = library->count(why, size);
    }
    pthread_mutex_unlock(&lock);
    return count < MOST_DEVICES ? count : MOST_DEVICES;
}

static void explain_number(int ordinal, int count, char *why, size_t size)
{
    snprintf(why, size, "there %s only %d CUDA device%s, the last one is 'cuda:%d', not 'cuda:%d'",
             count == 1 ? "is" : "are", count, count == 1 ? "" : "s", count - 1, ordinal);
}

/* ---- starting ---- */

enum device_state device_state(int ordinal)
{
    return (enum device_state)slots[ordinal].state;
}

/* Under the lock. */
static void start(struct slot *slot)
{
    if (slot->pipeline == NULL) { /* not a test's */
        slot->pipeline = pipeline_new(slot->device, memory_limit);
        if (slot->pipeline == NULL) {
            strcpy(slot->reason, "out of host memory");
            slot->state = DEVICE_UNAVAILABLE;
            return;
        }
        choice_calibrate(slot->pipeline, slot->device);
    }
    slot->state = DEVICE_UP;
}

enum device_state device_start(int ordinal)
{
    struct slot *slot = &slots[ordinal];
    if (slot->state != DEVICE_UNUSED) {
        return device_state(ordinal);
    }
    struct paths paths;
    char why[REASON_BYTES] = "";
    int count = 1;
    if (slot->device == NULL) { /* not a test's */
        count = count_devices(why, sizeof why);
        if (count > ordinal) {
            find_cublas(&paths);
        } else if (count > 0) {
            explain_number(ordinal, count, why, sizeof why);
        }
    }
    pthread_mutex_lock(&lock);
    if (slot->state == DEVICE_UNUSED) {
        if (slot->device == NULL && count > ordinal) {
            library->open(ordinal, paths.list, &slot->device, why, sizeof why);
        }
        if (slot->device != NULL) {
            start(slot);
        } else {
            strcpy(slot->reason, why);
            slot->state = DEVICE_UNAVAILABLE;
        }
    }
    pthread_mutex_unlock(&lock);
    return device_state(ordinal);
}

struct pipeline *device_pipeline(int ordinal)
{
    return slots[ordinal].pipeline;
}

struct device *device_of(int ordinal)
{
    return slots[ordinal].device;
}

const char *device_reason(int ordinal)
{
    return slots[ordinal].reason;
}

bool device_give_up(int ordinal, const char *reason)
{
    pthread_mutex_lock(&lock);
    struct slot *slot = &slots[ordinal];
    const bool first = slot->state == DEVICE_UP;
    if (first) {
        snprintf(slot->reason, sizeof slot->reason, "%s", reason);
        slot->state = DEVICE_GONE;
    }
    pthread_mutex_unlock(&lock);
    return first;
}

/* CUDA does not survive a fork: the child must not touch what the parent has started. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    for (int i = 0; i < MOST_DEVICES && cuda_in_use; i++) {
        slots[i].state = DEVICE_GONE;
        strcpy(slots[i].reason, "the process was forked from one that uses CUDA");
    }
}

int devices_initialize(size_t memory)
{
    memory_limit = memory;
    choice_initialize(&device_choice);
    pthread_atfork(NULL, NULL, after_fork_in_child);
    return 0;
}

int devices_list(char name[MOST_DEVICES][256], char *why, size_t size)
{
    int count = 0;
    if (slots[0].state == DEVICE_GONE) {
        snprintf(why, size, "%s", slots[0].reason);
        return 0;
    }
    Py_BEGIN_ALLOW_THREADS;
    count = count_devices(why, size);
    for (int i = 0; i < count; i++) {
        library->describe(i, name[i], sizeof name[i]);
    }
    Py_END_ALLOW_THREADS;
    return count;
}

bool device_is_usable(int ordinal, char *why, size_t size)
{
    const struct slot *slot = &slots[ordinal];
    if (slot->state >= DEVICE_UNAVAILABLE) {
        snprintf(why, size, "%s", slot->reason);
        return false;
    }
    if (slot->device != NULL) {
        return true;
    }
    int count;
    Py_BEGIN_ALLOW_THREADS;
    count = count_devices(why, size);
    Py_END_ALLOW_THREADS;
    if (count > 0 && count <= ordinal) {
        explain_number(ordinal, count, why, size);
    }
    return count > ordinal;
}

/* ---- tests ---- */

static double clock_step_set;
static _Atomic double clock_now;

static double stepping_clock(void)
{
    clock_now = clock_now + clock_step_set;
    return clock_now;
}

void devices_set_clock(double step)
{
    clock_step_set = step;
    device_choice.clock = step != 0 ? stepping_clock : choice_clock;
}

void devices_replace(struct device *device, double clock_step)
{
    struct slot *slot = &slots[0];
    pthread_mutex_lock(&lock);
    pipeline_delete(slot->pipeline);
    slot->pipeline = device != NULL ? pipeline_new(device, memory_limit) : NULL;
    slot->device = device;
    slot->state = slot->pipeline != NULL && clock_step == 0 ? DEVICE_UP : DEVICE_UNUSED;
    cuda_in_use = slot->pipeline != NULL;
    memset(&device_choice, 0, sizeof device_choice);
    choice_initialize(&device_choice);
    devices_set_clock(clock_step);
    pthread_mutex_unlock(&lock);
}
