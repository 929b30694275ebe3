/* Finds libraries among those that the process has loaded, whoever loaded them. */
#ifndef NUMC_LOADED_H
#define NUMC_LOADED_H

#include <stddef.h>

enum { MOST_LOADED = 16, LIBRARY_FUNCTIONS = 3 };

/* Libraries of one kind have this in their files' names, and all of these functions. */
struct library_names {
    const char *file;
    const char *functions[LIBRARY_FUNCTIONS]; /* NULL: no more */
};

struct loaded_library {
    const char *path;
    void (*functions[LIBRARY_FUNCTIONS])(void); /* in the order of their names */
};

/* What was found so far. Kinds come first that shall be tried first. */
struct loaded_libraries {
    const struct library_names *kinds;
    size_t count_of_kinds;
    struct loaded_library library[MOST_LOADED];
    _Atomic int count;
    _Atomic unsigned long long loads_seen;
};

/* Adds those that the process has loaded since the last search; they will not be unloaded any more. The
 * search costs some 20 ns where nothing was loaded. */
void loaded_search(struct loaded_libraries *found);

#endif
