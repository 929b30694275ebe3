/* Where memory of the host lives. */
#ifndef NUMC_HOST_MEMORY_H
#define NUMC_HOST_MEMORY_H

#include "device.h"

/* Of what we gave in nanoseconds; of other memory the driver tells. */
enum host_memory host_memory_of(struct device *device, const void *data);

#endif
