/* Python knows where libraries are: _cuda.py, and the like of other kinds. */
#include "device_library.h"

#include "numpy_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

const char *const device_kinds[DEVICE_KINDS] = {"cuda"};

/* The bytes that it takes; 0 if it is no path, or too long. */
static size_t copy_path(PyObject *path, char *to, size_t room)
{
    const char *text = PyUnicode_AsUTF8(path);
    const size_t bytes = text != NULL ? strlen(text) + 1 : 0;
    if (bytes == 0 || bytes > room) {
        PyErr_Clear();
        return 0;
    }
    memcpy(to, text, bytes);
    return bytes;
}

/* What `function` of the kind's module returns, with the GIL. It raises nothing of its own. */
static PyObject *ask_python(int kind, const char *function)
{
    char name[64];
    snprintf(name, sizeof name, "numc_ufuncs._%s", device_kinds[kind]);
    PyObject *module = PyImport_ImportModule(name);
    PyObject *found = module != NULL ? PyObject_CallMethod(module, function, NULL) : NULL;
    Py_XDECREF(module);
    return found;
}

static bool find_library(int kind, char path[PATH_BYTES], char *why, size_t size)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *found = ask_python(kind, "library");
    const bool is_path = found != NULL && copy_path(found, path, PATH_BYTES) > 0;
    if (is_path && path[0] == '\0') {
        snprintf(why, size, "this installation was built without %s", device_kinds[kind]);
    } else {
        snprintf(why, size, "%s", found == NULL || is_path ? "" : "its path is too long");
    }
    Py_XDECREF(found);
    PyGILState_Release(gil);
    return is_path && path[0] != '\0';
}

bool device_library_find_blas(int kind, struct blas_paths *paths)
{
    int count = 0;
    size_t used = 0;
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *found = ask_python(kind, "blas");
    const bool is_list = found != NULL && PyList_Check(found);
    for (Py_ssize_t i = 0; is_list && i < PyList_GET_SIZE(found) && count < MOST_BLAS; i++) {
        char *to = paths->text + used;
        const size_t bytes = copy_path(PyList_GET_ITEM(found, i), to, sizeof paths->text - used);
        used += bytes;
        if (bytes > 0) {
            paths->list[count++] = to;
        }
    }
    paths->list[count] = NULL;
    Py_XDECREF(found);
    PyGILState_Release(gil);
    return found != NULL;
}

static const struct device_library *load(int kind, const char *path, char *why, size_t size)
{
    char name[64];
    snprintf(name, sizeof name, "numc_%s_library", device_kinds[kind]);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle != NULL ? dlsym(handle, name) : NULL;
    if (symbol == NULL) {
        snprintf(why, size, "%s", dlerror());
        return NULL;
    }
    device_entry *entry;
    memcpy(&entry, &symbol, sizeof entry);
    const struct device_library *library = entry(DEVICE_VERSION);
    if (library == NULL) {
        snprintf(why, size, "%s belongs to another version", path);
    }
    return library;
}

const struct device_library *device_library_load(int kind, char *why, size_t size)
{
    /* Whoever loads one gets the same. */
    static const struct device_library *_Atomic libraries[DEVICE_KINDS];
    char path[PATH_BYTES];
    if (libraries[kind] == NULL && find_library(kind, path, why, size)) {
        libraries[kind] = load(kind, path, why, size);
    }
    return libraries[kind];
}
