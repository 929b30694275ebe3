/* Where memory of the host lives. */
#ifndef NUMC_HOST_MEMORY_H
#define NUMC_HOST_MEMORY_H

#include "device.h"

/* Of what we gave in nanoseconds; of other memory the driver tells. */
enum host_memory host_memory_of(struct device *device, const void *data);

/* The bytes that the elements of a stack of matrices begin in: [*first, *last]. */
void host_memory_reach(const struct strided *operand, ptrdiff_t batch, ptrdiff_t rows,
                       ptrdiff_t columns, const char **first, const char **last);

/* Of a stack of matrices: where both of its ends live. A part of an array may be pinned, too. */
enum host_memory host_memory_of_operand(struct device *device, const struct strided *operand,
                                        ptrdiff_t batch, ptrdiff_t rows, ptrdiff_t columns);

#endif
