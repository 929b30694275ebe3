/* Managed memory of a GPU. */
#ifndef NUMC_CUDA_MANAGED_H
#define NUMC_CUDA_MANAGED_H

#include "device/device.h"

void cuda_set_managed_entries(struct device *device);

#endif
