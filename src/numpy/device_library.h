/* Libraries of devices: found and loaded when a device is asked for first, never before. */
#ifndef NUMC_DEVICE_LIBRARY_H
#define NUMC_DEVICE_LIBRARY_H

#include "device/device.h"

#include <stdbool.h>

enum { DEVICE_KINDS = 1, MOST_BLAS = 8 };

/* The one table of kinds, by what users write before the colon of "cuda:1". A module of that name says
 * where the library is: numc_ufuncs/_cuda.py. */
extern const char *const device_kinds[DEVICE_KINDS];

/* Where the vendor's BLAS may be; what there is no room for is left out. */
struct blas_paths {
    char text[4096]; /* all paths: on the stack of the thread that starts a device */
    const char *list[MOST_BLAS + 1]; /* the last NULL */
};

/* Called without locks, as both may wait for the GIL. NULL or false: `why` says what is missing, or, if
 * it is "", a Python exception is set: a handler of a signal raised it. A library that could not be
 * loaded is looked for again at the next call. */
const struct device_library *device_library_load(int kind, char *why, size_t size);
bool device_library_find_blas(int kind, struct blas_paths *paths);

#endif
