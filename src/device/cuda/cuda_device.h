/* The entry of the library that knows CUDA. */
#ifndef NUMC_CUDA_DEVICE_H
#define NUMC_CUDA_DEVICE_H

#include "device/device.h"

__attribute__((visibility("default"))) device_entry numc_cuda_library;

#endif
