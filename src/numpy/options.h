/* What set_config() and config() asked for. */
#ifndef NUMC_OPTIONS_H
#define NUMC_OPTIONS_H

#include "numpy_api.h"

#include "device/device.h"

enum { OFFLOAD_UNSET = 0, OFFLOAD_AUTO = 1, OFFLOAD_CPU = 2, OFFLOAD_CUDA = 3 /* + its number */ };

/* 0 where nothing was set. */
struct offload_options {
    int device, precision, kernel;
};

/* Those in effect for the calling thread: nothing is 0. */
struct offload_options offload_options(void);

int options_add_functions(PyObject *module);

#endif
