#include "loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t search_lock = PTHREAD_MUTEX_INITIALIZER;

/* Held while the loader's list is read. That takes a lock of the loader's, which stays locked in a child
 * if another thread forks meanwhile: so forks wait for this one. They must not wait for dlopen, which
 * may itself wait for the thread that forks. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void)
{
    pthread_mutex_lock(&list_lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&list_lock);
}

static void after_fork_in_child(void)
{
    pthread_mutex_unlock(&list_lock);
    pthread_mutex_init(&search_lock, NULL); /* who held it stayed in the parent */
}

static void install_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

typedef int see_object(struct dl_phdr_info *object, size_t size, void *context);

static void read_list(see_object *see, void *context)
{
    pthread_mutex_lock(&list_lock);
    dl_iterate_phdr(see, context);
    pthread_mutex_unlock(&list_lock);
}

/* Stops at the first object, which tells how many there have been. */
static int note_loads(struct dl_phdr_info *object, size_t size, void *loads)
{
    (void)size;
    *(unsigned long long *)loads = object->dlpi_adds;
    return 1;
}

struct candidates {
    const struct loaded_libraries *found;
    char *path[MOST_LOADED];
    int count;
};

static bool is_found(const struct loaded_libraries *found, const char *path)
{
    bool is = false;
    for (int i = 0; i < found->count; i++) {
        is = is || strcmp(found->library[i].path, path) == 0;
    }
    return is;
}

static bool is_of_kind(const struct library_names *kind, const char *path)
{
    const char *slash = strrchr(path, '/');
    return strstr(slash != NULL ? slash : path, kind->file) != NULL;
}

/* Notes paths only: the loader holds its lock meanwhile. */
static int note_candidate(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    struct candidates *candidates = context;
    const struct loaded_libraries *found = candidates->found;
    bool may_be = false;
    for (size_t kind = 0; kind < found->count_of_kinds; kind++) {
        may_be = may_be || is_of_kind(&found->kinds[kind], object->dlpi_name);
    }
    if (may_be && candidates->count < MOST_LOADED && !is_found(found, object->dlpi_name)) {
        char *path = strdup(object->dlpi_name);
        candidates->path[candidates->count] = path;
        candidates->count += path != NULL;
    }
    return 0;
}

static bool has_functions(void *handle, const struct library_names *kind,
                          struct loaded_library *library)
{
    for (int i = 0; i < LIBRARY_FUNCTIONS && kind->functions[i] != NULL; i++) {
        void *function = dlsym(handle, kind->functions[i]);
        if (function == NULL) {
            return false;
        }
        memcpy(&library->functions[i], &function, sizeof function);
    }
    return true;
}

static bool add(struct loaded_libraries *found, const struct library_names *kind, const char *path)
{
    struct loaded_library *library = &found->library[found->count];
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    char *copy = handle != NULL && has_functions(handle, kind, library) ? strdup(path) : NULL;
    if (copy == NULL) {
        if (handle != NULL) {
            dlclose(handle);
        }
        return false;
    }
    /* The handle stays open: the library is not unloaded any more. */
    library->path = copy;
    found->count++;
    return true;
}

static void search(struct loaded_libraries *found)
{
    struct candidates candidates = {.found = found};
    read_list(note_candidate, &candidates);
    for (int i = 0; i < candidates.count; i++) {
        bool is_added = found->count == MOST_LOADED;
        for (size_t kind = 0; kind < found->count_of_kinds && !is_added; kind++) {
            is_added = add(found, &found->kinds[kind], candidates.path[i]);
        }
        free(candidates.path[i]);
    }
}

void loaded_search(struct loaded_libraries *found)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_fork_handlers);
    unsigned long long loads = 0;
    read_list(note_loads, &loads);
    if (loads == atomic_load_explicit(&found->loads_seen, memory_order_acquire)) {
        return;
    }
    pthread_mutex_lock(&search_lock);
    if (loads != atomic_load(&found->loads_seen)) {
        search(found);
        atomic_store(&found->loads_seen, loads);
    }
    pthread_mutex_unlock(&search_lock);
}
