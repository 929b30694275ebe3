/* Memory, streams, events, copies and products of a GPU. */
#ifndef NUMC_CUDA_WORK_H
#define NUMC_CUDA_WORK_H

#include "device/device.h"

/* Fills in the entries for them. */
void cuda_set_work_entries(struct device *device);

#endif
