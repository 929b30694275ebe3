/* The one entry of the library that knows CUDA. It is loaded when a device is asked for first. */
#ifndef NUMC_CUDA_DEVICE_H
#define NUMC_CUDA_DEVICE_H

#include "device/device.h"

struct cuda_library {
    /* The number of devices. 0 or less: `why` says what is missing. Takes no memory on any. */
    int (*count)(char *why, size_t size);
    void (*describe)(int ordinal, char *text, size_t size);
    /* Makes device `ordinal`, which lives as long as the process. `cublas` are paths or names of
     * libcublas to be tried, the last NULL; without any the device computes without it. */
    enum status (*open)(int ordinal, const char *const cublas[], struct device **device, char *why,
                        size_t size);
};

#define CUDA_ENTRY "numc_cuda_library" /* cuda_entry, by name */

/* NULL if the library was built from another version of these files. */
typedef const struct cuda_library *cuda_entry(int version);

__attribute__((visibility("default"))) cuda_entry numc_cuda_library;

#endif
