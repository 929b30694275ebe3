/* Where memory of the host lives. */
#ifndef NUMC_HOST_MEMORY_H
#define NUMC_HOST_MEMORY_H

#include "device.h"
#include "kernels/extent.h"

/* Of what we gave in nanoseconds; of other memory the driver tells. */
enum host_memory host_memory_of(struct device *device, const void *data);

/* Where both of its ends live. A part of an array may be pinned, too. */
enum host_memory host_memory_of_extent(struct device *device, struct extent extent);

/* Of a stack of matrices. */
struct extent host_memory_extent(const struct strided *operand, size_t size, ptrdiff_t batch,
                                 ptrdiff_t rows, ptrdiff_t columns);

#endif
