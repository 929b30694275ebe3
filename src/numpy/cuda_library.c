/* Python knows where libraries are: _cuda.py. */
#include "cuda_library.h"

#include "numpy_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

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

/* What `function` of _cuda.py returns, with the GIL. It raises nothing of its own. */
static PyObject *ask_python(const char *function)
{
    PyObject *module = PyImport_ImportModule("numc_ufuncs._cuda");
    PyObject *found = module != NULL ? PyObject_CallMethod(module, function, NULL) : NULL;
    Py_XDECREF(module);
    return found;
}

static bool find_library(char path[PATH_BYTES], char *why, size_t size)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *found = ask_python("library");
    const bool is_path = found != NULL && copy_path(found, path, PATH_BYTES) > 0;
    snprintf(why, size, "%s",
             found == NULL     ? ""
             : !is_path        ? "its path is too long"
             : path[0] == '\0' ? "this installation was built without CUDA"
                               : "");
    Py_XDECREF(found);
    PyGILState_Release(gil);
    return is_path && path[0] != '\0';
}

bool cuda_library_find_cublas(struct cublas_paths *paths)
{
    int count = 0;
    size_t used = 0;
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *found = ask_python("cublas");
    const bool is_list = found != NULL && PyList_Check(found);
    for (Py_ssize_t i = 0; is_list && i < PyList_GET_SIZE(found) && count < MOST_CUBLAS; i++) {
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

static const struct cuda_library *load(const char *path, char *why, size_t size)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle != NULL ? dlsym(handle, CUDA_ENTRY) : NULL;
    if (symbol == NULL) {
        snprintf(why, size, "%s", dlerror());
        return NULL;
    }
    cuda_entry *entry;
    memcpy(&entry, &symbol, sizeof entry);
    const struct cuda_library *library = entry(DEVICE_VERSION);
    if (library == NULL) {
        snprintf(why, size, "%s belongs to another version", path);
    }
    return library;
}

const struct cuda_library *cuda_library_load(char *why, size_t size)
{
    static const struct cuda_library *_Atomic library; /* whoever loads it gets the same */
    char path[PATH_BYTES];
    if (library == NULL && find_library(path, why, size)) {
        library = load(path, why, size);
    }
    return library;
}
