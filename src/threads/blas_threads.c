/* The threads of libraries for linear algebra, while ours call their routines. */
#include "blas_threads.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LIBRARIES = 16 };

/* How to tell a library its number of threads. SciPy's builds of OpenBLAS have names of their own. */
static const struct names {
    const char *file; /* part of the library's */
    const char *get, *set;
} known[] = {
    {"openblas", "scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"},
    {"openblas", "scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"},
    {"openblas", "openblas_get_num_threads64_", "openblas_set_num_threads64_"},
    {"blas", "openblas_get_num_threads", "openblas_set_num_threads"},
    {"flexiblas", "flexiblas_get_num_threads", "flexiblas_set_num_threads"},
    {"mkl_rt", "MKL_Get_Max_Threads", "MKL_Set_Num_Threads"},
    {"blis", "bli_thread_get_num_threads", "bli_thread_set_num_threads"},
};

static struct library {
    const char *path;
    int (*get)(void);
    void (*set)(int);
    int before; /* threads, when the first caller came */
} libraries[MOST_LIBRARIES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count_of_libraries, holders;
static unsigned long long loads_seen; /* by the last search */

static bool is_known(const char *path)
{
    bool is = false;
    for (int i = 0; i < count_of_libraries; i++) {
        is = is || strcmp(libraries[i].path, path) == 0;
    }
    return is;
}

static void add(const char *path, const struct names *names)
{
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *get = handle != NULL ? dlsym(handle, names->get) : NULL;
    void *set = handle != NULL ? dlsym(handle, names->set) : NULL;
    char *copy = get != NULL && set != NULL ? strdup(path) : NULL;
    if (copy == NULL) {
        if (handle != NULL) {
            dlclose(handle);
        }
        return;
    }
    /* The handle stays open: the library is not unloaded any more. */
    struct library *library = &libraries[count_of_libraries++];
    library->path = copy;
    memcpy(&library->get, &get, sizeof get);
    memcpy(&library->set, &set, sizeof set);
}

struct found {
    char *path[MOST_LIBRARIES];
    int count;
};

static bool may_be_known(const char *path)
{
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash : path;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strstr(file, known[i].file) != NULL) {
            return true;
        }
    }
    return false;
}

/* Stops at the first object, which tells how many there have been. */
static int note_loads(struct dl_phdr_info *object, size_t size, void *loads)
{
    (void)size;
    *(unsigned long long *)loads = object->dlpi_adds;
    return 1;
}

/* Notes paths only: the loader holds its lock meanwhile. */
static int note_library(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    struct found *found = context;
    if (found->count < MOST_LIBRARIES && may_be_known(object->dlpi_name) &&
        !is_known(object->dlpi_name)) {
        char *path = strdup(object->dlpi_name);
        found->path[found->count] = path;
        found->count += path != NULL;
    }
    return 0;
}

static void find_libraries(void)
{
    unsigned long long loads = 0;
    dl_iterate_phdr(note_loads, &loads);
    if (loads == loads_seen) {
        return;
    }
    loads_seen = loads;
    struct found found = {.count = 0};
    dl_iterate_phdr(note_library, &found);
    for (int k = 0; k < found.count; k++) {
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            if (count_of_libraries < MOST_LIBRARIES && !is_known(found.path[k])) {
                add(found.path[k], &known[i]);
            }
        }
        free(found.path[k]);
    }
}

/* In a forked child: who held them stayed in the parent. */
static void start_anew(void)
{
    pthread_mutex_init(&lock, NULL);
    holders = 0;
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, start_anew);
}

void blas_threads_hold(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_fork_handler);
    pthread_mutex_lock(&lock);
    if (holders++ == 0) {
        find_libraries();
        for (struct library *x = libraries; x < libraries + count_of_libraries; x++) {
            x->before = x->get();
            if (x->before > 1) {
                x->set(1);
            }
        }
    }
    pthread_mutex_unlock(&lock);
}

void blas_threads_release(void)
{
    pthread_mutex_lock(&lock);
    if (holders > 0 && --holders == 0) {
        for (struct library *x = libraries; x < libraries + count_of_libraries; x++) {
            /* Unless somebody else has set another number meanwhile. */
            if (x->before > 1 && x->get() == 1) {
                x->set(x->before);
            }
        }
    }
    pthread_mutex_unlock(&lock);
}
