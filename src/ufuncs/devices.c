/* Loads the library that knows CUDA when a device is asked for first, never before. */
#include "devices.h"

#include "numpy_api.h"

#include "cuda/entry.h"

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

static struct slot slots[MOST_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* nobody waits for the GIL under it */
static size_t memory_limit;
static const struct cuda_library *library;
static _Atomic bool started;

/* Where the libraries may be. */
struct paths {
    char cuda[PATH_BYTES];
    char cublas[MOST_PATHS][PATH_BYTES];
    int count;
};

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

/* Asks _cuda.py. False without an exception: `why` says what went wrong. */
static bool find_paths(struct paths *paths, char *why, size_t size)
{
    PyObject *module = PyImport_ImportModule("numc_ufuncs._cuda");
    PyObject *found = module != NULL ? PyObject_CallMethod(module, "libraries", NULL) : NULL;
    PyObject *cuda, *cublas;
    bool right = found != NULL && PyArg_ParseTuple(found, "OO!", &cuda, &PyList_Type, &cublas) &&
                 copy_path(cuda, paths->cuda);
    paths->count = 0;
    for (Py_ssize_t i = 0; right && i < PyList_GET_SIZE(cublas) && i < MOST_PATHS; i++) {
        right = copy_path(PyList_GET_ITEM(cublas, i), paths->cublas[paths->count++]);
    }
    if (!right) {
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
    Py_XDECREF(found);
    Py_XDECREF(module);
    return right;
}

/* Under the lock. */
static bool load_library(const struct paths *paths, char *why, size_t size)
{
    if (library != NULL) {
        return true;
    }
    if (paths->cuda[0] == '\0') {
        snprintf(why, size, "this installation was built without CUDA");
        return false;
    }
    void *handle = dlopen(paths->cuda, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle != NULL ? dlsym(handle, CUDA_ENTRY) : NULL;
    if (symbol == NULL) {
        snprintf(why, size, "%s", dlerror());
        return false;
    }
    cuda_entry *entry;
    memcpy(&entry, &symbol, sizeof entry);
    library = entry(DEVICE_VERSION);
    if (library == NULL) {
        snprintf(why, size, "%s belongs to another version", paths->cuda);
    }
    return library != NULL;
}

/* ---- starting ---- */

enum device_state device_state(int ordinal)
{
    return (enum device_state)slots[ordinal].state;
}

static bool open_device(int ordinal, const struct paths *paths, struct slot *slot)
{
    const char *cublas[MOST_PATHS + 1] = {NULL};
    for (int i = 0; i < paths->count; i++) {
        cublas[i] = paths->cublas[i];
    }
    if (!load_library(paths, slot->reason, sizeof slot->reason)) {
        return false;
    }
    const int count = library->count(slot->reason, sizeof slot->reason);
    if (count <= 0) {
        return false;
    }
    if (ordinal >= count) {
        snprintf(slot->reason, sizeof slot->reason, "there are only %d CUDA devices", count);
        return false;
    }
    return library->open(ordinal, cublas, &slot->device, slot->reason, sizeof slot->reason) ==
           STATUS_OK;
}

enum device_state device_start(int ordinal)
{
    struct slot *slot = &slots[ordinal];
    if (slot->state != DEVICE_UNUSED) {
        return device_state(ordinal);
    }
    struct paths paths;
    char why[REASON_BYTES];
    const PyGILState_STATE gil = PyGILState_Ensure();
    const bool found = find_paths(&paths, why, sizeof why);
    PyGILState_Release(gil);
    pthread_mutex_lock(&lock);
    if (slot->state == DEVICE_UNUSED) {
        if (!found) {
            strcpy(slot->reason, why);
        }
        const double before = device_choice.clock();
        bool up = slot->pipeline != NULL; /* the fake device */
        if (!up && found && open_device(ordinal, &paths, slot)) {
            slot->pipeline = pipeline_new(slot->device, memory_limit);
            up = slot->pipeline != NULL;
        }
        if (up) {
            device_choice.startup = device_choice.clock() - before;
            started = true;
        }
        slot->state = up ? DEVICE_UP : DEVICE_UNAVAILABLE;
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
    for (int i = 0; i < MOST_DEVICES && started; i++) {
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
    struct paths paths;
    if (!find_paths(&paths, why, size)) {
        return 0;
    }
    int count = 0;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&lock);
    if (slots[0].state == DEVICE_GONE) {
        snprintf(why, size, "%s", slots[0].reason);
    } else if (load_library(&paths, why, size)) {
        count = library->count(why, size);
        count = count < MOST_DEVICES ? count : MOST_DEVICES;
        for (int i = 0; i < count; i++) {
            library->describe(i, name[i], sizeof name[i]);
        }
    }
    pthread_mutex_unlock(&lock);
    Py_END_ALLOW_THREADS return count;
}

/* ---- tests ---- */

static double fake_step;
static _Atomic double fake_now;

static double fake_clock(void)
{
    fake_now = fake_now + fake_step;
    return fake_now;
}

void devices_replace(struct device *fake, double clock_step)
{
    struct slot *slot = &slots[0];
    pthread_mutex_lock(&lock);
    pipeline_delete(slot->pipeline);
    slot->pipeline = fake != NULL ? pipeline_new(fake, memory_limit) : NULL;
    slot->device = fake;
    slot->state = slot->pipeline != NULL && clock_step == 0 ? DEVICE_UP : DEVICE_UNUSED;
    memset(&device_choice, 0, sizeof device_choice);
    choice_initialize(&device_choice);
    fake_step = clock_step;
    if (clock_step != 0) {
        device_choice.clock = fake_clock;
    }
    pthread_mutex_unlock(&lock);
}
