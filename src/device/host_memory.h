/* Where memory of the host lives. */
#ifndef NUMC_HOST_MEMORY_H
#define NUMC_HOST_MEMORY_H

#include "device.h"

/* Of what we gave in nanoseconds; of other memory the driver tells. */
enum host_memory host_memory_of(struct device *device, const void *data);

/* Of a stack of matrices: where both of its ends live. A part of an array may be pinned, too. */
enum host_memory host_memory_of_operand(struct device *device, const struct strided *operand,
                                        ptrdiff_t batch, ptrdiff_t rows, ptrdiff_t columns);

#endif
