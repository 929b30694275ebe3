/* The library that knows CUDA: found and loaded when a device is asked for first, never before. */
#ifndef NUMC_CUDA_LIBRARY_H
#define NUMC_CUDA_LIBRARY_H

#include "device/cuda/cuda_device.h"

enum { MOST_CUBLAS = 8 };

/* Where cuBLAS may be; what there is no room for is left out. */
struct cublas_paths {
    char text[4096]; /* all paths: on the stack of the thread that starts a device */
    const char *list[MOST_CUBLAS + 1]; /* the last NULL */
};

/* Called without locks, as both may wait for the GIL. NULL or false: `why` says what is missing, or, if
 * it is "", a Python exception is set: a handler of a signal raised it. A library that could not be
 * loaded is looked for again at the next call. */
const struct cuda_library *cuda_library_load(char *why, size_t size);
bool cuda_library_find_cublas(struct cublas_paths *paths);

#endif
